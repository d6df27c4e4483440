"""Ours against the released Kafka's own classes, on thousands of random inputs, and on pinned ones."""

from __future__ import annotations

import pytest

from broker.cluster import BrokerView
from broker.entropy import JavaRandom
from broker.ids import BrokerId
from placement.placers.classic import ClassicPlacer
from placement.placers.striped import StripedPlacer
from placement.spec import PlacementSpec
from tests.kafka.differential.placers import algorithms_of, check, placed_by
from tests.kafka.jvm import KafkaError, KafkaJvm
from tests.kafka.releases import DEFAULTS, VERSIONS, WITH_ADMIN_UTILS

pytestmark = pytest.mark.kafka

CASES = 2000
SEED = 20250909


@pytest.mark.parametrize(
    ("kafka", "algorithm"),
    [(release, algorithm) for release in DEFAULTS for algorithm in algorithms_of(release)],
    indirect=["kafka"],
    ids=str,
)
def test_ours_says_what_kafka_says_on_random_inputs(kafka: KafkaJvm, algorithm: str) -> None:
    for case in range(CASES):
        try:
            check(kafka, algorithm, seed=SEED, case=case)
        except AssertionError as mismatch:
            options = f"--kafka {kafka.release} --only {algorithm} --seed {SEED} --first {case} --cases 1"
            raise AssertionError(f"replay with: python -m tests.kafka {options}\n{mismatch}") from None


def test_the_oracle_is_the_release_that_was_asked_for(kafka: KafkaJvm) -> None:
    assert kafka.versions().kafka == VERSIONS[kafka.release]


@pytest.mark.parametrize("kafka", [WITH_ADMIN_UTILS], indirect=True, ids=str)
def test_the_oracle_tells_a_wrong_row_from_a_right_one(kafka: KafkaJvm) -> None:
    brokers = [BrokerView(id=BrokerId(number)) for number in range(4)]
    spec = PlacementSpec(0, 9, 3)
    theirs, _ = kafka.classic(brokers, spec, fixed_start_index=0, seed=0)
    ours = placed_by(ClassicPlacer(fixed_start_index=1), spec, brokers, JavaRandom(0))
    assert not isinstance(ours, KafkaError)
    assert not isinstance(theirs, KafkaError)
    assert ours.tolist() != theirs.tolist()


def test_both_agree_on_a_large_striped_topic_with_many_racks_and_fenced_brokers(kafka: KafkaJvm) -> None:
    brokers = [
        BrokerView(id=BrokerId(number), rack=f"zone-{number % 70}", fenced=number % 11 == 0) for number in range(700)
    ]
    spec = PlacementSpec(0, 20_000, 5)
    (theirs,), next_int = kafka.striped(brokers, [spec], seed=99)
    entropy = JavaRandom(99)
    ours = placed_by(StripedPlacer(), spec, brokers, entropy)
    assert not isinstance(ours, KafkaError)
    assert not isinstance(theirs, KafkaError)
    assert ours.tolist() == theirs.tolist()
    assert entropy.next_int() == next_int
