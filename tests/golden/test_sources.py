"""What a `source` names is what answers: a release, or the one known commit between two releases."""

from __future__ import annotations

from typing import Any, Final

import pytest

from broker.releases import Release
from tests.golden.log.settings import config_of
from tests.golden.sources import COMMIT, UnknownSourceError, source_of, source_of_case

BETWEEN: Final = f"Apache Kafka 4.0.0-SNAPSHOT {COMMIT}, OpenJDK 17"


@pytest.mark.parametrize(
    ("case", "release", "indexes_whole_appends"),
    [
        ({}, "3.9", True),
        ({"case": "compact-basic"}, "4.0", True),
        ({"case": "compact-v1-none"}, "3.9", True),
        ({"source": BETWEEN, "case": "compact-basic"}, "4.0", True),
        ({"source": "4.0.0", "case": "log-roll"}, "4.0", True),
        ({"source": "4.0.1", "case": "log-roll"}, "4.0", False),
        ({"source": "Apache Kafka 4.3.1, OpenJDK 17", "case": "compact-v1-none"}, "4.3", False),
    ],
)
def test_a_log_is_that_of_the_kafka_that_the_case_names(
    case: dict[str, Any], release: str, indexes_whole_appends: bool
) -> None:
    config = config_of({"config": {}, **case})
    assert config.release == Release(release)
    assert config.indexes_whole_appends is indexes_whole_appends


def test_a_log_case_that_names_nothing_is_of_the_commit_between_releases() -> None:
    assert source_of_case({}) == source_of(BETWEEN)


def test_another_commit_between_releases_is_not_known() -> None:
    with pytest.raises(UnknownSourceError) as refusal:
        source_of(BETWEEN.replace(COMMIT, "f" * 40))
    assert str(refusal.value).endswith("is not known; it is 'Apache Kafka' and a released version, such as 4.3.1")
