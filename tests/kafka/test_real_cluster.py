"""A cluster of six released brokers: views, dumps, recovery and what consumers read are Kafka's.

How: one scenario of some two minutes (`tests.kafka.cluster_scenario`), then a test for each kind of evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from broker.releases import NEWEST
from tests.kafka.cluster_checks import (
    DUMPED,
    consumer_differences,
    dump_differences,
    dumped_files,
    moment_differences,
    recovery_differences,
)
from tests.kafka.cluster_scenario import Evidence, run_scenario
from tests.kafka.jvm import KafkaJvm, KafkaUnavailableError

pytestmark = pytest.mark.kafka

RELEASES = (NEWEST,)


@pytest.fixture(scope="session")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    try:
        yield run_scenario(tmp_path_factory.mktemp("cluster"), NEWEST)
    except KafkaUnavailableError as missing:
        pytest.skip(f"released brokers cannot be run here: {missing}")


def test_at_each_moment_the_metadata_log_of_every_node_says_what_kafka_topics_said(evidence: Evidence) -> None:
    assert [moment.name for moment in evidence.moments] == [
        "created",
        "node 6 killed",
        "node 6 back",
        "rack b lost",
        "rack b back",
        "deleted",
    ]
    assert list(moment_differences(evidence)) == []


def test_a_moment_is_unlike_another(evidence: Evidence) -> None:
    first, second, *rest = evidence.moments
    swapped = [attrs.evolve(first, text=second.text), second, *rest]
    (*found,) = moment_differences(attrs.evolve(evidence, moments=swapped))
    assert len(found) == 6


@pytest.mark.parametrize("kind", DUMPED)
def test_every_file_is_dumped_as_kafka_dumps_it(evidence: Evidence, kafka: KafkaJvm, kind: str) -> None:
    assert dumped_files(evidence, kind)
    assert list(dump_differences(evidence, kafka, kind)) == []


def test_killed_brokers_are_recovered_as_kafka_recovers_them(
    evidence: Evidence, kafka: KafkaJvm, tmp_path: Path
) -> None:
    assert sorted(evidence.killed) == [5, 6]
    assert list(recovery_differences(evidence, kafka, tmp_path)) == []


def test_consumers_read_what_was_acknowledged_and_what_we_recovered_compacted_and_made(
    evidence: Evidence, tmp_path: Path
) -> None:
    assert len(evidence.acknowledged) > 1000
    assert len(evidence.aborted) > 30
    assert list(consumer_differences(evidence, tmp_path)) == []


def test_a_record_that_no_consumer_read_is_reported(evidence: Evidence, tmp_path: Path) -> None:
    lost = {**evidence.acknowledged, ("orders", 0, 10**6): ("lost", None)}
    assert len(list(consumer_differences(attrs.evolve(evidence, acknowledged=lost), tmp_path))) == 2
