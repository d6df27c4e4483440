"""Kafka's placers keep the share they promise between brokers in one call, and attain it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster import BrokerView
from broker.entropy import SplitMix64
from broker.ids import BrokerId
from placement.balance.broker_share import CLASSIC_SHARE, STRIPED_SHARE, ShareBound, classic_bound, striped_bound
from placement.balance.constraints import STANDARD, Violation
from placement.placers.classic import ClassicPlacer
from placement.placers.striped import StripedPlacer
from placement.spec import Assignment, PlacementSpec
from placement.strategies import SEED_MAX, PlacerFailure, RackPattern, brokers, check_placer
from tests.oracles import placers as oracle

START = st.integers(0, 20)


def plain(*racks: str | None) -> tuple[BrokerView, ...]:
    return tuple(BrokerView(id=BrokerId(number), rack=rack) for number, rack in enumerate(racks))


def classic(some: Sequence[BrokerView], count: int, factor: int, start: int, shift: int, first: int) -> Assignment:
    pairs = [(int(broker.id), broker.rack) for broker in some]
    rows = oracle.classic(pairs, count, factor, start=start % len(some), shift=shift, first=first)
    return Assignment.of_topic("t", np.array(rows).reshape(count, factor), start_partition=first)


def spread(assignment: Assignment, some: Sequence[BrokerView]) -> tuple[int, int]:
    """(leaders, replicas): the largest difference between two unfenced brokers."""
    rows = assignment.replicas.tolist()
    led, held = Counter(row[0] for row in rows), Counter(number for row in rows for number in row)
    ids = [int(broker.id) for broker in some if not broker.fenced]
    return (
        max(led[number] for number in ids) - min(led[number] for number in ids),
        max(held[number] for number in ids) - min(held[number] for number in ids),
    )


@given(st.data(), st.integers(1, 60), START, START, st.just(0) | st.integers(0, 30))
def test_the_classic_placer_keeps_its_promise(
    data: st.DataObject, count: int, start: int, shift: int, first: int
) -> None:
    some = data.draw(
        brokers(fenced=False, racks=data.draw(st.sampled_from([RackPattern.NONE, RackPattern.EVEN, RackPattern.ALL])))
    )
    factor = data.draw(st.integers(1, len(some)))
    assert CLASSIC_SHARE.violations(classic(some, count, factor, start, shift, first), some).count == 0


@given(st.data(), st.integers(1, 60), st.integers(0, SEED_MAX))
def test_the_striped_placer_keeps_its_promise(data: st.DataObject, count: int, seed: int) -> None:
    rack = data.draw(st.none() | st.just("a"))
    some = [
        BrokerView(id=broker.id, rack=rack, fenced=broker.fenced)
        for broker in data.draw(brokers(racks=RackPattern.NONE))
    ]
    factor = data.draw(st.integers(1, len(some)))
    rows = oracle.striped(
        [(int(broker.id), broker.rack, broker.fenced) for broker in some],
        count,
        factor,
        SplitMix64(seed).next_int_bound,
    )
    assert STRIPED_SHARE.violations(Assignment.of_topic("t", rows), some).count == 0


@pytest.mark.parametrize("racks", [RackPattern.NONE, RackPattern.EVEN, RackPattern.ALL])
def test_our_classic_placer_keeps_the_promise_and_every_constraint(racks: RackPattern) -> None:
    check_placer(ClassicPlacer(), constraints=(*STANDARD, CLASSIC_SHARE), racks=racks, fenced=False)


def test_our_striped_placer_keeps_the_promise_and_every_constraint() -> None:
    check_placer(StripedPlacer(), constraints=(*STANDARD, STRIPED_SHARE))


def test_the_classic_placer_leads_from_fenced_brokers_as_it_knows_of_none() -> None:
    with pytest.raises(
        PlacerFailure, match=r"^leader-unfenced: partition 0: the preferred leader, broker 1, is fenced"
    ):
        check_placer(ClassicPlacer())


@given(st.data(), st.integers(1, 40), START, st.just(0) | st.integers(0, 30))
def test_the_twins_place_as_our_placers_do(data: st.DataObject, count: int, start: int, first: int) -> None:
    some = data.draw(brokers(fenced=False, racks=data.draw(st.sampled_from([RackPattern.NONE, RackPattern.ALL]))))
    factor = data.draw(st.integers(1, len(some)))
    spec = PlacementSpec(first, count, factor)
    pairs = [(int(broker.id), broker.rack) for broker in some]
    twin = oracle.classic(pairs, count, factor, start=start, shift=start, first=first)
    assert ClassicPlacer(start).place(spec, some, SplitMix64(0)).tolist() == twin
    bare = [BrokerView(id=broker.id) for broker in some]
    draw = SplitMix64(start).next_int_bound
    twin = oracle.striped([(number, None, False) for number, _ in pairs], count, factor, draw)
    assert StripedPlacer().place(spec, bare, SplitMix64(start)).tolist() == twin


def test_the_bounds_of_the_classic_placer_are_attained() -> None:
    ten = plain(*[None] * 10)
    new = classic(ten, 4, 4, 0, 0, 0)
    grown = classic(ten, 58, 4, 0, 0, 15)
    assert (spread(new, ten), classic_bound(new, ten)) == ((1, 4), ShareBound(leaders=1, replicas=4))
    worst = max(spread(classic(ten, count, 4, 0, shift, first), ten)[1] for count, shift, first in several())
    assert (worst, classic_bound(grown, ten)) == (7, ShareBound(leaders=1, replicas=7))


def several() -> list[tuple[int, int, int]]:
    return [(count, shift, first) for count in range(1, 60) for shift in range(10) for first in (13, 15, 17)]


def test_unequal_racks_make_the_classic_placer_promise_leaders_only() -> None:
    uneven = plain("a", "b", "b", "b")
    placed = classic(uneven, 12, 2, 0, 0, 0)
    assert classic_bound(placed, uneven) == ShareBound(leaders=1, replicas=None)
    assert spread(placed, uneven) == (0, 8)


def test_several_racks_make_the_striped_placer_promise_nothing() -> None:
    two_racks = plain("a", "a", "b", "b")
    rows = oracle.striped([(int(b.id), b.rack, False) for b in two_racks], 4, 2, lambda bound: 0)
    placed = Assignment.of_topic("t", rows)
    assert striped_bound(placed, two_racks) == ShareBound(leaders=None, replicas=None)
    assert spread(placed, two_racks)[0] == 2


def test_a_broken_share_names_the_broker_and_both_counts() -> None:
    three = plain("a", "a", "a")
    found = CLASSIC_SHARE.violations(Assignment.of_topic("t", [[0], [0], [0], [1]]), three)
    detail = (
        "broker 0 leads 3, 3 more than broker 2, where 1 is the most between two; "
        "broker 0 holds 3, 3 more than broker 2, where 1 is the most between two"
    )
    assert found.explain() == (Violation("broker-share", "t", None, (0,), ("a",), detail),)


def test_fenced_brokers_are_not_compared() -> None:
    one_out = (BrokerView(id=BrokerId(0)), BrokerView(id=BrokerId(1), fenced=True))
    for only in (0, 1):
        assert STRIPED_SHARE.violations(Assignment.of_topic("t", [[only]] * 5), one_out).count == 0
