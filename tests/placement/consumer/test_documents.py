"""The worked examples of the texts that explain Kafka's assignment strategies, each by its name."""

from __future__ import annotations

import pytest

from broker.entropy import SplitMix64
from placement.consumer.assignment import ConsumerAssignor
from placement.consumer.client_range import RangeAssignor
from placement.consumer.random_assignor import RandomAssignor
from placement.consumer.round_robin import RoundRobinAssignor
from placement.consumer.sticky.assignor import CooperativeStickyAssignor, StickyAssignor
from tests.placement.consumer.groups import answer, group, kept, sizes

TWO = {"c0": "t0 t1", "c1": "t0 t1"}
THREE = {"c0": "t0 t1 t2", "c1": "t0 t1 t2", "c2": "t0 t1 t2"}
FOUR_TOPICS = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
ALL_FOUR = "t0 t1 t2 t3"
ALL_THREE = dict.fromkeys(("c0", "c1", "c2"), ALL_FOUR)
DEALT = {"c0": "t0-0 t1-1 t3-0", "c1": "t0-1 t2-0 t3-1", "c2": "t1-0 t2-1"}
NESTED_TOPICS = {"t0": 1, "t1": 2, "t2": 3}
NESTED = {"c0": "t0", "c1": "t0 t1", "c2": "t0 t1 t2"}


@pytest.mark.parametrize(
    ("make", "topics", "subscribed", "expected"),
    [
        (RangeAssignor, {"t0": 4, "t1": 4}, TWO, {"c0": "t0-0 t0-1 t1-0 t1-1", "c1": "t0-2 t0-3 t1-2 t1-3"}),
        (RangeAssignor, {"t0": 3, "t1": 3}, TWO, {"c0": "t0-0 t0-1 t1-0 t1-1", "c1": "t0-2 t1-2"}),
        (
            RangeAssignor,
            {"t0": 8, "t1": 2, "t2": 2},
            THREE,
            {"c0": "t0-0 t0-1 t0-2 t1-0 t2-0", "c1": "t0-3 t0-4 t0-5 t1-1 t2-1", "c2": "t0-6 t0-7"},
        ),
        (RoundRobinAssignor, {"t0": 3, "t1": 3}, TWO, {"c0": "t0-0 t0-2 t1-1", "c1": "t0-1 t1-0 t1-2"}),
        (StickyAssignor, FOUR_TOPICS, ALL_THREE, DEALT),
        (RoundRobinAssignor, FOUR_TOPICS, ALL_THREE, DEALT),
        (RoundRobinAssignor, NESTED_TOPICS, NESTED, {"c0": "t0-0", "c1": "t1-0", "c2": "t1-1 t2-0 t2-1 t2-2"}),
        (StickyAssignor, NESTED_TOPICS, NESTED, {"c0": "t0-0", "c1": "t1-0 t1-1", "c2": "t2-0 t2-1 t2-2"}),
    ],
)
def test_a_first_assignment_is_that_of_the_text(
    make: type[ConsumerAssignor], topics: dict[str, int], subscribed: dict[str, str], expected: dict[str, str]
) -> None:
    found = answer(make(), group(topics, subscribed))
    assert {member: set(held.split()) for member, held in found.items()} == {
        member: set(held.split()) for member, held in expected.items()
    }


def test_when_c1_leaves_sticky_keeps_all_of_the_others_and_round_robin_moves_more() -> None:
    before = {"c0": "t0-0 t1-1 t3-0", "c2": "t1-0 t2-1"}
    asked = group(FOUR_TOPICS, {"c0": ALL_FOUR, "c2": ALL_FOUR}, before)
    after = answer(StickyAssignor(), asked)
    assert (sizes(after), kept(before, after)) == ([4, 4], 5)
    # The document gives t2-0 to c0; Kafka's present code gives t0-1. The sizes and what is kept are the same.
    assert {member: set(held.split()) - set(before[member].split()) for member, held in after.items()} == {
        "c0": {"t0-1"},
        "c2": {"t2-0", "t3-1"},
    }
    # The cooperative assignor has nothing to revoke, and hands out the rest at once.
    assert answer(CooperativeStickyAssignor(), asked) == after
    dealt = answer(RoundRobinAssignor(), asked)
    assert dealt == {"c0": "t0-0 t1-0 t2-0 t3-0", "c2": "t0-1 t1-1 t2-1 t3-1"}
    assert kept(before, dealt) == 3


def test_when_c0_of_the_nested_group_leaves_sticky_keeps_five_of_six_and_round_robin_three() -> None:
    left = {member: topics for member, topics in NESTED.items() if member != "c0"}
    sticky = {"c1": "t1-0 t1-1", "c2": "t2-0 t2-1 t2-2"}
    after = answer(StickyAssignor(), group(NESTED_TOPICS, left, sticky))
    assert kept(sticky, after) == 5
    assert set(after["c1"].split()) == {"t0-0", "t1-0", "t1-1"}
    dealt = {"c1": "t1-0", "c2": "t1-1 t2-0 t2-1 t2-2"}
    after = answer(RoundRobinAssignor(), group(NESTED_TOPICS, left, dealt))
    assert after == {"c1": "t0-0 t1-1", "c2": "t1-0 t2-0 t2-1 t2-2"}
    assert kept(dealt, after) == 3


def test_the_random_assignor_gives_each_partition_to_one_subscriber_and_repeats_itself_for_a_seed() -> None:
    asked = group(NESTED_TOPICS, NESTED)
    drawn = [RandomAssignor().assign(asked, SplitMix64(seed)).owners.tolist() for seed in (7, 7, 8, 9)]
    assert drawn[0] == drawn[1]
    assert len({tuple(owners) for owners in drawn}) > 1
    # Only c2 reads t2; whoever reads t0 and t1 is drawn.
    assert all(owners[3:] == [2, 2, 2] for owners in drawn)
