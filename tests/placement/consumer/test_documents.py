"""The worked examples of the texts that explain Kafka's assignment strategies, each by its name."""

from __future__ import annotations

from broker.entropy import SplitMix64
from placement.consumer.client_range import RangeAssignor
from placement.consumer.random_assignor import RandomAssignor
from placement.consumer.round_robin import RoundRobinAssignor
from placement.consumer.sticky.assignor import CooperativeStickyAssignor, StickyAssignor
from tests.placement.consumer.groups import answer, group, kept, sizes

TWO = {"c0": "t0 t1", "c1": "t0 t1"}
FOUR_TOPICS = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
ALL_FOUR = "t0 t1 t2 t3"
NESTED_TOPICS = {"t0": 1, "t1": 2, "t2": 3}
NESTED = {"c0": "t0", "c1": "t0 t1", "c2": "t0 t1 t2"}


def test_range_with_two_topics_of_four_splits_evenly() -> None:
    assert answer(RangeAssignor(), group({"t0": 4, "t1": 4}, TWO)) == {
        "c0": "t0-0 t0-1 t1-0 t1-1",
        "c1": "t0-2 t0-3 t1-2 t1-3",
    }


def test_range_with_two_topics_of_three_splits_four_to_two() -> None:
    assert answer(RangeAssignor(), group({"t0": 3, "t1": 3}, TWO)) == {"c0": "t0-0 t0-1 t1-0 t1-1", "c1": "t0-2 t1-2"}


def test_range_with_eight_partitions_over_three_members_gives_three_three_two() -> None:
    three = {"c0": "t0", "c1": "t0", "c2": "t0"}
    assert answer(RangeAssignor(), group({"t0": 8}, three)) == {
        "c0": "t0-0 t0-1 t0-2",
        "c1": "t0-3 t0-4 t0-5",
        "c2": "t0-6 t0-7",
    }


def test_range_with_two_more_topics_of_two_leaves_the_third_member_without_any_of_them() -> None:
    topics = "t0 t1 t2"
    after = answer(RangeAssignor(), group({"t0": 8, "t1": 2, "t2": 2}, {"c0": topics, "c1": topics, "c2": topics}))
    assert {member: set(held.split()) for member, held in after.items()} == {
        "c0": {"t0-0", "t0-1", "t0-2", "t1-0", "t2-0"},
        "c1": {"t0-3", "t0-4", "t0-5", "t1-1", "t2-1"},
        "c2": {"t0-6", "t0-7"},
    }


def test_round_robin_with_two_topics_of_three_deals_them_through() -> None:
    assert answer(RoundRobinAssignor(), group({"t0": 3, "t1": 3}, TWO)) == {
        "c0": "t0-0 t0-2 t1-1",
        "c1": "t0-1 t1-0 t1-2",
    }


def test_sticky_with_three_members_and_four_topics_of_two_begins_like_round_robin() -> None:
    asked = group(FOUR_TOPICS, {"c0": ALL_FOUR, "c1": ALL_FOUR, "c2": ALL_FOUR})
    expected = {"c0": "t0-0 t1-1 t3-0", "c1": "t0-1 t2-0 t3-1", "c2": "t1-0 t2-1"}
    assert answer(StickyAssignor(), asked) == expected
    assert answer(RoundRobinAssignor(), asked) == expected


def test_when_c1_leaves_sticky_keeps_all_of_the_others_and_deals_its_three() -> None:
    before = {"c0": "t0-0 t1-1 t3-0", "c2": "t1-0 t2-1"}
    after = answer(StickyAssignor(), group(FOUR_TOPICS, {"c0": ALL_FOUR, "c2": ALL_FOUR}, before))
    assert sizes(after) == [4, 4]
    assert kept(before, after) == 5
    # The document gives t2-0 to c0; Kafka's present code gives t0-1. The sizes and what is kept are the same.
    assert {member: set(held.split()) - set(before[member].split()) for member, held in after.items()} == {
        "c0": {"t0-1"},
        "c2": {"t2-0", "t3-1"},
    }


def test_when_c1_leaves_round_robin_moves_more_than_sticky() -> None:
    before = {"c0": "t0-0 t1-1 t3-0", "c2": "t1-0 t2-1"}
    after = answer(RoundRobinAssignor(), group(FOUR_TOPICS, {"c0": ALL_FOUR, "c2": ALL_FOUR}, before))
    assert after == {"c0": "t0-0 t1-0 t2-0 t3-0", "c2": "t0-1 t1-1 t2-1 t3-1"}
    assert kept(before, after) == 3


def test_when_c1_leaves_the_cooperative_assignor_revokes_nothing_and_hands_out_the_rest_at_once() -> None:
    before = {"c0": "t0-0 t1-1 t3-0", "c2": "t1-0 t2-1"}
    asked = group(FOUR_TOPICS, {"c0": ALL_FOUR, "c2": ALL_FOUR}, before)
    assert answer(CooperativeStickyAssignor(), asked) == answer(StickyAssignor(), asked)


def test_round_robin_with_nested_subscriptions_gives_c2_one_of_t1_and_all_of_t2() -> None:
    assert answer(RoundRobinAssignor(), group(NESTED_TOPICS, NESTED)) == {
        "c0": "t0-0",
        "c1": "t1-0",
        "c2": "t1-1 t2-0 t2-1 t2-2",
    }


def test_sticky_with_nested_subscriptions_gives_c1_both_of_t1() -> None:
    after = answer(StickyAssignor(), group(NESTED_TOPICS, NESTED))
    assert {member: set(held.split()) for member, held in after.items()} == {
        "c0": {"t0-0"},
        "c1": {"t1-0", "t1-1"},
        "c2": {"t2-0", "t2-1", "t2-2"},
    }


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
