"""A group in columns: ids of partitions, claims that do not exist, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import UsageError
from broker.ids import PartitionId, TopicPartition
from placement.consumer.assignment import NOBODY, GroupAssignment
from placement.consumer.group import NO_METADATA, Group, Member, Topic
from placement.consumer.invariants import BrokenRule, check_assignment
from placement.consumer.racks import ReplicaRacks
from placement.consumer.ragged import Ragged, grouped, inverse
from placement.consumer.subscribers import same_sets, subscribers_of
from tests.placement.consumer.groups import group


def test_partitions_are_numbered_by_topic_and_number_and_nonexistent_ones_behind_them() -> None:
    asked = group({"b": 3, "a": 2}, {"m": "a b"}, {"m": "b-7 a-1 gone-0 b-5"})
    assert asked.topics == ("a", "b", "gone")
    assert asked.partition_counts.tolist() == [2, 3, NO_METADATA]
    assert (asked.partition_count, asked.nonexistent_count) == (5, 2)
    assert list(asked.owned.lists()) == [[6, 1, 5]]
    assert [str(asked.name_of(number)) for number in range(7)] == ["a-0", "a-1", "b-0", "b-1", "b-2", "b-5", "b-7"]


def test_topics_are_sorted_as_java_sorts_strings() -> None:
    assert group({"\uffee": 1, "\N{GRINNING FACE}": 1, "b": 1, "B": 1}, {}).topics == (
        "B",
        "b",
        "\N{GRINNING FACE}",
        "\uffee",
    )


def test_the_generation_of_the_subscription_is_the_members_unless_it_says_another() -> None:
    members = [
        Member(id="a", topics=(), generation=4),
        Member(id="b", topics=(), generation=4, subscription_generation=-1),
    ]
    assert Group.of(members, []).subscription_generations.tolist() == [4, -1]


@pytest.mark.parametrize(
    ("members", "topics", "message"),
    [
        ((), ("t", "t"), "topic 't' is given twice"),
        (("m", "m"), (), "member 'm' is given twice"),
    ],
)
def test_what_is_given_twice_is_refused(members: tuple[str, ...], topics: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        Group.of(
            [Member(id=name, topics=()) for name in members], [Topic(name=name, partition_count=1) for name in topics]
        )
    assert str(refusal.value) == message


def test_counts_are_bounded_before_memory_is_taken() -> None:
    with pytest.raises(UsageError) as refusal:
        Group.of([], [Topic(name="t", partition_count=10**9)])
    assert str(refusal.value) == "topic 't' has 1000000000 partitions; allowed are 0 to 10000000"
    with pytest.raises(UsageError) as refusal:
        Group.of([], [Topic(name=name, partition_count=9_000_000) for name in "tu"])
    assert str(refusal.value) == "the topics have 18000000 partitions together; at most 10000000 are handled"


def test_racks_of_more_partitions_than_there_are_are_refused() -> None:
    with pytest.raises(UsageError) as refusal:
        ReplicaRacks.of([[["a"], ["b"]]], [1])
    assert str(refusal.value) == "topic 0 has 1 partition and the replicas' racks of 2"


def test_racks_are_looked_at_only_when_they_can_tell_partitions_apart() -> None:
    racks = ReplicaRacks.of([[["a", "b"], ["a"]]], [2])
    assert racks.aware(["a", None], racks.codes)
    assert not racks.aware(["c", ""], racks.codes), "no member stands where a replica does"
    assert not racks.aware(["a"], racks.codes[:1]), "all partitions stand in all racks"


@given(st.lists(st.integers(-1, 5), max_size=40))
def test_grouping_by_counting_is_a_stable_sort(keys: list[int]) -> None:
    found = grouped(np.array(keys, np.int32), 6)
    assert list(found.lists()) == [[place for place, key in enumerate(keys) if key == one] for one in range(6)]


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6))
def test_rows_can_be_taken_filtered_and_put_behind_each_other(some: list[list[int]]) -> None:
    ragged = Ragged.of(some)
    order = list(range(len(some)))[::-1]
    assert list(ragged.lists()) == some
    assert list(ragged.take(np.array(order, np.int64)).lists()) == some[::-1]
    assert list(ragged.then(ragged).lists()) == [row + row for row in some]
    assert list(ragged.where(ragged.values > 4).lists()) == [[one for one in row if one > 4] for row in some]
    assert ragged.rows.tolist() == [place for place, row in enumerate(some) for _ in row]
    assert inverse(np.array(order, np.int64)).tolist() == order


def test_subscribers_stand_once_in_the_order_asked_for() -> None:
    asked = group({"t": 1, "u": 1}, {"a": "t u t", "b": "u"})
    assert list(subscribers_of(asked, np.array([1, 0])).lists()) == [[0], [1, 0]]
    same = group({"t": 1, "u": 1}, {"a": "t u", "b": "t u"})
    assert list(subscribers_of(same, np.array([1, 0])).lists()) == [[1, 0], [1, 0]]


def test_sets_of_topics_can_be_the_same_where_lists_are_not() -> None:
    asked = group({"t": 1, "u": 1}, {"a": "t u", "b": "u t"})
    assert (asked.same_lists, same_sets(asked)) == (False, True)
    assert not group({"t": 1}, {}).same_lists


def test_the_owner_of_a_partition_is_the_last_member_that_has_it() -> None:
    asked = group({"t": 3}, {"a": "t", "b": "t"})
    assigned = GroupAssignment(asked, Ragged.of([[0, 1], [1]]))
    assert assigned.owners.tolist() == [0, 1, NOBODY]
    assert assigned.of("a") == (TopicPartition("t", PartitionId(0)), TopicPartition("t", PartitionId(1)))


@pytest.mark.parametrize(
    ("answered", "broken"),
    [
        ([[0, 1], [2]], []),
        ([[0, 1], [1, 2]], [BrokenRule("one-member", "t-1 is given to a and b")]),
        ([[0], [2]], [BrokenRule("every-partition", "t-1 is given to nobody")]),
        ([[0, 1, 3], [2]], [BrokenRule("existing", "t-9 does not exist")]),
        ([[0, 1, 2], []], [BrokenRule("balanced", "sizes go from 0 to 3")]),
    ],
)
def test_a_broken_rule_is_told_with_what_breaks_it(answered: list[list[int]], broken: list[BrokenRule]) -> None:
    asked = group({"t": 3}, {"a": "t", "b": "t"}, {"a": "t-9"})
    balanced = bool(broken) and broken[0].rule == "balanced"
    assert check_assignment(GroupAssignment(asked, Ragged.of(answered)), balanced=balanced) == broken


def test_a_partition_of_a_stranger_and_one_that_could_move_are_told() -> None:
    asked = group({"t": 3, "u": 1}, {"a": "t", "b": "t u"})
    stranger = GroupAssignment(asked, Ragged.of([[0, 3], [1, 2]]))
    assert check_assignment(stranger) == [BrokenRule("subscribed", "u-0 is given to a, which does not subscribe to it")]
    uneven = GroupAssignment(asked, Ragged.of([[], [0, 1, 2, 3]]))
    assert check_assignment(uneven, balanced=True) == [
        BrokenRule("balanced", "t-0 could go from b to a, which has at least two fewer")
    ]
    waiting = GroupAssignment(group({"t": 1}, {"a": "t"}, {"a": "t-0"}), Ragged.of([[]]))
    assert check_assignment(waiting, withheld=True) == []
