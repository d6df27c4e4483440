"""Range, round-robin and the server's assignors: against slow and obvious programs, and where they refuse."""

from __future__ import annotations

from itertools import cycle
from random import Random

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.entropy import SplitMix64
from broker.errors import UsageError
from broker.releases import Release
from placement.consumer.client_range import RangeAssignor, ServerRangeAssignor, range_rows
from placement.consumer.errors import EmptyGroupError, PartitionAssignorError, PartitionIndexError
from placement.consumer.group import Group
from placement.consumer.invariants import check_assignment
from placement.consumer.ragged import Ragged
from placement.consumer.random_assignor import RandomAssignor
from placement.consumer.range_racks import assign_with_racks
from placement.consumer.registry import load_assignor
from placement.consumer.round_robin import RoundRobinAssignor
from placement.consumer.strategies import check_assignor, groups
from placement.consumer.subscribers import same_sets, subscribers_of
from placement.consumer.topic_ids import id_text, topic_id
from placement.consumer.uniform.assignor import UniformAssignor
from tests.placement.consumer.groups import answer, group, rows

ENTROPY = SplitMix64(0)


@settings(max_examples=30)
@given(groups(racks=False))
def test_ranges_in_arrays_are_those_dealt_topic_by_topic(asked: Group) -> None:
    subscribers = subscribers_of(asked, asked.static_first)
    every = np.arange(len(asked.topics))
    fast = range_rows(asked, subscribers, every)
    owners = assign_with_racks(asked, subscribers, np.zeros(len(asked.topics), np.bool_))
    assert list(fast.lists()) == [np.flatnonzero(owners == member).tolist() for member in range(len(asked.members))]


@settings(max_examples=30)
@given(groups())
def test_round_robin_deals_as_one_who_goes_round_and_skips(asked: Group) -> None:
    subscribed = [set(row) for row in asked.subscribed.lists()]
    turn = cycle(asked.static_first.tolist())
    dealt: list[list[int]] = [[] for _ in asked.members]
    for partition, topic in enumerate(asked.partition_topics[: asked.partition_count].tolist()):
        if any(topic in topics for topics in subscribed):
            member = next(member for member in turn if topic in subscribed[member])
            dealt[member].append(partition)
    assert rows(RoundRobinAssignor().assign(asked, ENTROPY)) == dealt


@settings(max_examples=30)
@given(groups(equal=True))
def test_uniform_sizes_differ_by_one_at_most_and_what_fits_the_quota_stays(asked: Group) -> None:
    assigned = UniformAssignor().assign(asked, ENTROPY)
    assert check_assignment(assigned, balanced=True) == []
    least = min(map(len, rows(assigned)))
    for held, kept in zip(asked.owned.lists(), rows(assigned), strict=True):
        subscribed = [one for one in held if asked.partition_topics[one] in asked.subscribed.row(0)]
        assert set(subscribed) <= set(kept) or len(set(subscribed) & set(kept)) >= least


@pytest.mark.parametrize("make", [RangeAssignor, RoundRobinAssignor, ServerRangeAssignor, UniformAssignor])
def test_every_assignor_of_kafkas_keeps_the_rules(make: type[RangeAssignor]) -> None:
    check_assignor(make, example_count=60)


def test_the_example_keeps_the_rules() -> None:
    check_assignor(RandomAssignor, example_count=20)


@pytest.mark.deep
def test_the_example_is_not_balanced() -> None:
    with pytest.raises(AssertionError, match="balanced: "):
        check_assignor(RandomAssignor, example_count=60, balanced=True)


def test_static_members_come_first_by_instance_id() -> None:
    asked = group({"t": 3}, {"a": "t", "b": "t", "c": "t"})
    moved = attrs.evolve(asked, instance_ids=(None, "i2", "i1"))
    assert answer(RangeAssignor(), moved) == {"a": "t-2", "b": "t-1", "c": "t-0"}


def test_a_list_of_ranges_holds_the_topics_in_javas_hash_order() -> None:
    topics = {"BB": 1, "Aa": 1, "b": 1}
    # "BB" and "Aa" share a bin, in the order in which the members name them.
    assert answer(RangeAssignor(), group(topics, {"m": "BB b Aa"})) == {"m": "BB-0 Aa-0 b-0"}
    assert answer(RangeAssignor(), group(topics, {"m": "Aa b BB"})) == {"m": "Aa-0 BB-0 b-0"}


def test_round_robin_without_members_is_refused_in_kafkas_words() -> None:
    with pytest.raises(EmptyGroupError) as refusal:
        RoundRobinAssignor().assign(group({"t": 1}, {}), ENTROPY)
    assert str(refusal.value) == "CircularIterator can only be used on non-empty lists"


def test_a_topic_without_metadata_is_passed_over_by_clients_and_refused_by_servers() -> None:
    asked = group({"t": 1}, {"m": "t PTbYb4j67mdVntpRPBbzHg"})
    assert answer(RangeAssignor(), asked) == {"m": "t-0"}
    with pytest.raises(PartitionAssignorError) as refusal:
        ServerRangeAssignor().assign(asked, ENTROPY)
    assert str(refusal.value) == "Member is subscribed to a non-existent topic"
    with pytest.raises(PartitionAssignorError) as refusal:
        UniformAssignor().assign(asked, ENTROPY)
    assert str(refusal.value) == (
        "Members are subscribed to topic PTbYb4j67mdVntpRPBbzHg which doesn't exist in the topic metadata."
    )


def test_uniform_names_no_member_when_nothing_is_subscribed() -> None:
    silent = UniformAssignor().assign(group({"t": 1}, {"a": "", "b": ""}), ENTROPY)
    assert silent.silent
    assert rows(silent) == [[], []]


def test_uniform_gives_a_partition_more_to_who_holds_it() -> None:
    # "b" comes before "c" in Java's order; "c" holds both that there are for it, and one is one too many.
    asked = group({"t": 3}, {"b": "t", "c": "t"}, {"c": "t-0 t-1", "b": ""})
    assert asked.member_hash_order.tolist() == [0, 1]
    assert answer(UniformAssignor(), asked) == {"b": "t-2", "c": "t-0 t-1"}
    # What 4.0.1, 4.1.2, 4.2.2 and 4.3.1 answer, and nobody holds anything.
    assert answer(UniformAssignor(), group({"t": 5}, {"a": "t", "b": "t"})) == {"a": "t-0 t-1", "b": "t-2 t-3 t-4"}


def test_the_assignors_of_a_release_before_4_0_are_refused() -> None:
    with pytest.raises(UsageError) as refusal:
        load_assignor("uniform", release=Release("3.9"))
    assert str(refusal.value) == "the assignors of Kafka 3.9 are not known; allowed are 4.0 to 4.4"


@pytest.mark.parametrize("others", ["t u", "u t", "u"])
def test_uniform_gives_a_partition_once_to_a_member_that_names_a_topic_twice(others: str) -> None:
    asked = group({"t": 3, "u": 2}, {"a": "t u t", "b": others})
    given = [one for row in rows(UniformAssignor().assign(asked, ENTROPY)) for one in row]
    assert sorted(given) == list(range(5))


@settings(max_examples=30)
@given(groups(equal=True), st.randoms(use_true_random=False))
def test_uniform_does_not_see_in_which_order_or_how_often_partitions_are_listed(asked: Group, chance: Random) -> None:
    listed = []
    for member, numbers in enumerate(asked.owned_topics.lists()):
        begin = int(asked.owned_topics.starts[member])
        pairs = list(zip(numbers, asked.owned_numbers[begin : begin + len(numbers)].tolist(), strict=True))
        pairs += pairs[:1]
        chance.shuffle(pairs)
        listed.append(pairs)
    shuffled = attrs.evolve(
        asked,
        owned_topics=Ragged.of([topic for topic, _ in pairs] for pairs in listed),
        owned_numbers=np.array([number for pairs in listed for _, number in pairs], np.int32),
    )
    expected = rows(UniformAssignor().assign(asked, ENTROPY))
    assert rows(UniformAssignor().assign(shuffled, ENTROPY)) == expected


def test_of_a_set_of_numbers_those_beyond_its_table_come_earlier() -> None:
    # "a" holds six and keeps four: a set of six has 16 bins, so that 16 is met after 0 and 17 after 1.
    asked = group({"t": 20}, dict.fromkeys("abcdef", "t"), {"a": "t-17 t-16 t-5 t-2 t-1 t-0"})
    assert answer(UniformAssignor(), asked)["a"] == "t-0 t-16 t-1 t-17"


def test_uniform_of_different_subscriptions_refuses_a_partition_beyond_the_end() -> None:
    asked = group({"t": 2, "u": 1}, {"a": "t", "b": "t u"}, {"a": "t-5"})
    assert not same_sets(asked)
    with pytest.raises(PartitionIndexError) as refusal:
        UniformAssignor().assign(asked, ENTROPY)
    assert str(refusal.value) == "Index 5 out of bounds for length 2"


def test_a_partition_that_two_members_hold_stays_with_both_in_uniform() -> None:
    twice = group({"t": 2, "u": 1}, {"a": "t", "b": "t u"}, {"a": "t-0", "b": "t-0"})
    held = answer(UniformAssignor(), twice)
    assert [member for member, row in held.items() if "t-0" in row] == ["a", "b"]


def test_a_partition_that_two_members_hold_is_lost_to_the_one_that_gives_it_up_in_uniform() -> None:
    # What Kafka 4.3.1 answers: t-15, which both hold, moves to "consumer-76" and back while t is balanced.
    ids = {"7WbAjY0Cc8zfMmvt12WKIw": 3, "V2-5_jokDh7aTjSqKVLHDg": 16}
    small, t = ids
    asked = group(
        ids,
        {"consumer-926": f"{small} {t}", "consumer-76": t, "consumer-141": small},
        {
            "consumer-926": " ".join([f"{t}-{k}" for k in range(1, 16, 2)] + [f"{small}-{k}" for k in range(3)]),
            "consumer-76": f"{t}-15",
        },
    )
    assert answer(UniformAssignor(), asked) == {
        "consumer-926": " ".join(f"{t}-{k}" for k in range(1, 16, 2)),
        "consumer-76": " ".join(f"{t}-{k}" for k in range(0, 16, 2)),
        "consumer-141": " ".join(f"{small}-{k}" for k in range(3)),
    }


def test_ids_of_topics_are_given_or_read_from_the_name_or_made_from_it() -> None:
    text = "PTbYb4j67mdVntpRPBbzHg"
    assert id_text(topic_id("orders", text)) == text
    assert id_text(topic_id(text, None)) == text
    assert topic_id("orders", None) == topic_id("orders", None) != topic_id("audit", None)
    with pytest.raises(UsageError) as refusal:
        topic_id("orders", "short")
    assert str(refusal.value) == "topic 'orders' has the id 'short'; an id is 22 characters of URL-safe base64"
