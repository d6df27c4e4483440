"""Which Java files are compiled for a release, with which lines, and under which names they call Kafka's classes."""

from __future__ import annotations

import pytest

from broker.errors import UsageError
from broker.releases import NEWEST, Release
from tests.kafka.releases import DEFAULTS, SETTINGS_ONLY, VERSIONS, sources, text_for, version_of

MARKED = """always
//@ before 4.1
scala
//@ since 4.1 before 4.4
java
//@ since 4.4
newest
//@ end
always
"""


@pytest.mark.parametrize(("release", "lines"), [("4.0", "scala"), ("4.1", "java"), ("4.3", "java"), ("4.4", "newest")])
def test_marked_lines_are_of_their_releases_alone(release: str, lines: str) -> None:
    assert text_for(Release(release), MARKED).split() == ["always", lines, "always"]


def test_marked_files_are_compiled_for_their_releases_alone() -> None:
    marked = {"Controllers.java": ["4.1", "4.2", "4.3", "4.4"], "Mirrors.java": ["4.3"]}
    found = {name: [str(release) for release in VERSIONS if name in sources(release)] for name in marked}
    assert found == marked
    assert tuple(sources(Release("3.9"))) == SETTINGS_ONLY


def test_classes_have_the_names_that_they_had_in_the_release() -> None:
    source = (
        "import org.apache.kafka.storage.internals.log.UnifiedLog;\nimport org.apache.kafka.tools.DumpLogSegments;\n"
    )
    assert text_for(Release("4.3"), source) == source
    assert "internals.log.UnifiedLog" in text_for(Release("4.1"), source)
    assert text_for(Release("4.0"), source) == "import kafka.log.UnifiedLog;\nimport kafka.tools.DumpLogSegments;\n"


def test_the_newest_release_and_4_0_are_run_by_default() -> None:
    assert (NEWEST, Release("4.0")) == DEFAULTS


def test_a_release_without_classes_is_refused_with_those_that_have_them() -> None:
    with pytest.raises(UsageError) as refusal:
        version_of(Release("3.8"))
    known = ", ".join(str(known) for known in VERSIONS)
    assert str(refusal.value) == f"the live tests have no classes of release 3.8; allowed are {known}"
