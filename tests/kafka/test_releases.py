"""Which Java files are compiled for a release, and under which names they call Kafka's classes."""

from __future__ import annotations

import pytest

from broker.errors import UsageError
from broker.releases import NEWEST, Release
from tests.kafka.releases import DEFAULTS, VERSIONS, sources, text_for, version_of


def chosen(release: str) -> dict[str, str]:
    return {path.name: path.parent.name for path in sources(Release(release))}


def test_of_a_file_in_several_folders_the_newest_that_a_release_has_is_taken() -> None:
    folders = {release: chosen(release)["Logs.java"] for release in ("3.9", "4.0", "4.1", "4.2", "4.3")}
    assert folders == {
        "3.9": "since_3_9",
        "4.0": "since_4_0",
        "4.1": "since_4_1",
        "4.2": "since_4_1",
        "4.3": "since_4_1",
    }
    assert "Appends.java" not in chosen("4.0")
    assert chosen("4.3")["Oracle.java"] == "java"


def test_classes_have_the_names_that_they_had_in_the_release() -> None:
    source = (
        "import org.apache.kafka.storage.internals.log.UnifiedLog;\nimport org.apache.kafka.tools.DumpLogSegments;\n"
    )
    assert text_for(Release("4.3"), source) == source
    assert "internals.log.UnifiedLog" in text_for(Release("4.1"), source)
    assert text_for(Release("4.0"), source) == "import kafka.log.UnifiedLog;\nimport kafka.tools.DumpLogSegments;\n"


def test_the_newest_release_and_4_0_are_run_by_default() -> None:
    assert (NEWEST, Release("4.0")) == DEFAULTS
    assert [version_of(release) for release in DEFAULTS] == ["4.3.1", "4.0.1"]


def test_a_release_without_classes_is_refused_with_those_that_have_them() -> None:
    with pytest.raises(UsageError) as refusal:
        version_of(Release("3.8"))
    assert str(refusal.value) == (
        "the live tests have no classes of release 3.8; allowed are " + ", ".join(str(known) for known in VERSIONS)
    )
