"""The shipped strategies draw what they say, and the check of a policy finds what is wrong with it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import find, settings

from broker.cluster import BrokerView, Int32Array
from broker.entropy import RandomSource, SplitMix64
from broker.ids import BrokerId
from broker.java.string_hash import java_string_key
from placement.examples.least_loaded import LeastLoadedPlacer
from placement.spec import PlacementSpec, ReplicaPlacer
from placement.strategies import RACK_NAMES, Case, PlacerFailure, brokers, check_placer


def test_rack_names_stand_in_another_order_for_java() -> None:
    assert sorted(RACK_NAMES) != sorted(RACK_NAMES, key=java_string_key)


@pytest.mark.deep
@pytest.mark.parametrize(
    "wanted",
    [
        lambda some: any(broker.fenced for broker in some),
        lambda some: len({broker.rack for broker in some}) > 2,
        lambda some: any(second.id - first.id > 1 for first, second in itertools.pairwise(some)),
    ],
    ids=["fenced", "three racks", "a gap between ids"],
)
def test_brokers_reach_what_breaks_placers(wanted: Callable[[tuple[BrokerView, ...]], bool]) -> None:
    assert find(brokers(), wanted, settings=settings(database=None, derandomize=True))


class RoundRobin:
    """A policy that forgets racks: partition p stands on brokers p, p + 1, … of the list."""

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        ids = np.array([broker.id for broker in brokers], dtype=np.int32)
        first = np.arange(spec.start_partition, spec.start_partition + spec.partition_count)
        rows: Int32Array = ids[(first[:, None] + np.arange(spec.replication_factor)) % ids.size]
        return rows


def test_the_policy_that_forgets_racks_is_caught_with_the_smallest_case_there_is() -> None:
    with pytest.raises(PlacerFailure) as failure:
        check_placer(RoundRobin(), fenced=False)
    assert str(failure.value) == (
        "rack-spread: partition 0: on 1 rack where 2 are possible\n"
        "  broker 0: rack 'a'\n"
        "  broker 1: rack 'a'\n"
        "  broker 2: rack 'b'\n"
        "  asked: partitions 0 to 0, factor 2\n"
        "  placed: [[0, 1]], seed 0"
    )


def test_the_policy_of_the_example_passes_every_check() -> None:
    check_placer(LeastLoadedPlacer(), example_count=50)


class Answering:
    """A policy that answers whatever it was given."""

    def __init__(self, *answers: object) -> None:
        self.answers = [np.array(answer, dtype=np.int32) for answer in answers]
        self.calls = 0

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        self.calls += 1
        return self.answers[self.calls % len(self.answers)]


def test_a_result_of_the_wrong_shape_is_named() -> None:
    with pytest.raises(PlacerFailure, match=r"^shape: shape \(1, 0\) where \(1, 1\) is asked for\n"):
        check_placer(Answering([[]]))


def test_a_policy_that_forgets_its_seed_is_named() -> None:
    with pytest.raises(PlacerFailure, match=r"^same-seed: the same seed gave other rows the second time\n"):
        check_placer(Answering([[0]], [[1]]))


def test_the_least_loaded_policy_fills_new_brokers_first() -> None:
    some = tuple(BrokerView(id=BrokerId(number)) for number in (1, 2, 3))
    placer = LeastLoadedPlacer(held=((1, 10), (2, 10)))
    from_zero = place(placer, PlacementSpec(0, 10, 1), some)
    assert set(from_zero.ravel().tolist()) == {3}
    assert Counter(place(placer, PlacementSpec(0, 13, 1), some).ravel().tolist()) == {3: 11, 1: 1, 2: 1}


def test_the_least_loaded_policy_passes_over_brokers_that_kafka_would_not_name() -> None:
    flags = ({}, {"cordoned": True}, {"in_controlled_shutdown": True}, {})
    some = tuple(BrokerView(id=BrokerId(number), **flag) for number, flag in enumerate(flags))
    assert set(place(LeastLoadedPlacer(), PlacementSpec(0, 9, 2), some).ravel().tolist()) == {0, 3}


def place(placer: ReplicaPlacer, spec: PlacementSpec, some: Sequence[BrokerView]) -> Int32Array:
    return placer.place(spec, some, SplitMix64(1))


def test_the_same_cases_are_tried_on_every_run() -> None:
    def seen() -> list[Case]:
        found: list[Case] = []

        class Watching(LeastLoadedPlacer):
            def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
                found.append(Case(tuple(brokers), spec, 0))
                return super().place(spec, brokers, entropy)

        check_placer(Watching(), example_count=20)
        return found

    assert seen() == seen()
