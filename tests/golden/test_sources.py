"""What a `source` names is what answers: a release, or the one known commit between two releases."""

from __future__ import annotations

from typing import Any, Final

import pytest

from broker.releases import Release
from tests.golden.between_releases import COMMIT
from tests.golden.files import run_case
from tests.golden.log.settings import config_of
from tests.golden.sources import UnknownSourceError, runners_of, source_of, source_of_case

BETWEEN: Final = f"Apache Kafka 4.0.0-SNAPSHOT {COMMIT}, OpenJDK 17"
TOPIC: Final = "Vf8evzWxAzIUakWO6gPFdg"
MEMBERS: Final = ("mø-2tj-0", "mø-3p3-1", "member-2", "mø-65e-3", "mø-74-4", "mø-1ng-5", "mø-tj-6")


def uniform(first: str, second: str) -> dict[str, Any]:
    """Return a case of more members than partitions, and who gets the two partitions of the topic."""
    members = [{"id": member, "topics": [TOPIC], "assignment": []} for member in MEMBERS]
    step = {"subscription_type": "homogeneous", "topics": [{"id": TOPIC, "partitions": 2}], "members": members}
    given: dict[str, list[Any]] = {member: [] for member in MEMBERS}
    given[first], given[second] = [[TOPIC, [0]]], [[TOPIC, [1]]]
    return {"input": {"assignor": "uniform", "steps": [step]}, "expected": {"steps": [{"assignment": given}]}}


@pytest.mark.parametrize(
    ("source", "case"),
    [
        (BETWEEN, uniform("mø-2tj-0", "member-2")),
        ("Apache Kafka 4.0.1, OpenJDK 17", uniform("mø-65e-3", "mø-3p3-1")),
        ("Apache Kafka 4.3.1, OpenJDK 17", uniform("mø-65e-3", "mø-3p3-1")),
    ],
    ids=["between", "4.0.1", "4.3.1"],
)
def test_each_kafka_answers_as_it_did_and_no_other_does(source: str, case: dict[str, Any]) -> None:
    assert run_case(case, runners_of(source_of(source))["server_uniform"]) is None
    other = "Apache Kafka 4.3.1" if source == BETWEEN else BETWEEN
    assert run_case(case, runners_of(source_of(other))["server_uniform"]) is not None


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
