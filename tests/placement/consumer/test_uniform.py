"""Uniform with equal subscriptions: what stays and what is revoked, in the order in which Java's tables are walked."""

from __future__ import annotations

import random
from collections.abc import Sequence

import attrs
import numpy as np
import pytest

from broker.entropy import SplitMix64
from broker.ids import PartitionId, TopicPartition
from broker.java.tree_bin import TreeKey
from placement.consumer.errors import PartitionAssignorError
from placement.consumer.group import Group, Member, Topic
from placement.consumer.topic_ids import id_text, topic_ids
from placement.consumer.uniform import holdings, homogeneous
from placement.consumer.uniform.assignor import UniformAssignor
from placement.consumer.uniform.holdings import topic_keys, topic_order, topic_ranks, walk_order
from placement.consumer.uniform.homogeneous import distinct_claims
from placement.consumer.uniform.records import Row, listed_record, walked, walked_numbers
from tests.placement.consumer.groups import group, rows


def answered(asked: Group) -> list[list[int]]:
    """Return each member's partitions by id."""
    return rows(UniformAssignor().assign(asked, SplitMix64(0)))


def test_nothing_is_ordered_where_everything_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homogeneous, "walk_order", None)
    asked = group({"t": 4, "u": 2}, {"a": "t u", "b": "t u"}, {"a": "t-3 t-1", "b": "t-2"})
    assert answered(asked) == [[1, 3, 4], [2, 5, 0]]


def test_what_is_over_the_quota_is_met_in_the_order_of_javas_set() -> None:
    # A set made of 33 numbers has 64 bins, so that they are met in ascending order: the last twelve go.
    held = {"a": " ".join(f"t-{number}" for number in range(33)), "b": "u-1"}
    assert answered(group({"t": 40, "u": 2}, {"a": "t u", "b": "t u"}, held)) == [
        [*range(21)],
        [41, 40, *range(33, 40), *range(21, 33)],
    ]


@pytest.mark.parametrize(
    "asked",
    [
        group({"t": 3}, {"a": "t", "b": "t"}, {"a": "t-0", "b": "t-0"}),
        group({"t": 2}, {"a": "t", "b": "t"}, {"a": "t-2"}),
    ],
    ids=["claimed by two", "beyond the end"],
)
def test_claims_that_no_assignor_made_leave_partitions_over_as_in_kafka(asked: Group) -> None:
    with pytest.raises(PartitionAssignorError, match="Partitions were left unassigned"):
        answered(asked)


@pytest.mark.parametrize("seed", range(20))
def test_any_claims_are_answered_as_those_of_one_member_each(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    topics = {name: chance.randrange(1, 40) for name in "tuvw"[: chance.randrange(1, 5)]}
    members = [f"m{number}" for number in range(chance.randrange(1, 6))]
    owned: dict[str, list[str]] = {}
    for name, count in {**topics, "gone": 12}.items():
        for number in range(count):
            owned.setdefault(chance.choice(members[:2] if seed % 2 else [*members, ""]), []).append(f"{name}-{number}")
    held = {member: " ".join(chance.sample(owned.get(member, []), len(owned.get(member, [])))) for member in members}
    asked = group({**topics, "gone": 12}, dict.fromkeys(members, " ".join(topics)), held)
    expected = answered(asked)
    monkeypatch.setattr(homogeneous, "own", lambda *_: False)
    assert answered(asked) == expected


def colliding_group(chance: random.Random) -> Group:
    """Return a group of one member whose topic ids and partition numbers often share bins, each listed in any order."""
    topics, owned = [], []
    for _ in range(chance.randrange(1, 60)):
        value = bytearray(chance.randbytes(16))
        if chance.random() < 0.5:
            value[8:] = value[:8]
            value[15] ^= chance.choice((0, 1, 16, 64))
        topics.append(Topic(name=id_text(bytes(value)), partition_count=3000))
        numbers = range(0, 3000, chance.choice((1, 16, 32, 7)))[: chance.randrange(25)]
        owned += [TopicPartition(topics[-1].name, PartitionId(number)) for number in numbers]
    chance.shuffle(owned)
    subscribed = tuple(topic.name for topic in topics if chance.random() < 0.9)
    return Group.of([Member(id="m", topics=subscribed, owned=tuple(owned))], topics)


@pytest.mark.parametrize("case", range(15))
def test_the_walk_in_columns_is_that_of_javas_tables(case: int) -> None:
    asked = colliding_group(random.Random(f"holdings/{case}"))
    ids = topic_ids(asked)
    order, keys = topic_order(asked, ids), topic_keys(ids)
    listed = list(zip(asked.owned_topics.values.tolist(), asked.owned_numbers.tolist(), strict=True))
    record = listed_record(listed, topic_ranks(asked, order).tolist())
    for recorded, lists, expected in ((), sorted(listed), record), ((0,), listed, listed):
        claims = distinct_claims(attrs.evolve(asked, recorded=frozenset(recorded)))
        assert list(zip(claims.owned_topics.values.tolist(), claims.owned_numbers.tolist(), strict=True)) == lists
        met = walk_order(claims, order, ids).tolist()
        assert [lists[place] for place in met] == walked(expected, keys)


def test_crowded_bins_are_walked_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_of = []

    def noted(record: Row, keys: Sequence[TreeKey]) -> Row:
        asked_of.append(record)
        return walked(record, keys)

    monkeypatch.setattr(holdings, "walked", noted)
    crowded = colliding_group(random.Random("crowded"))
    numbers = np.arange(0, 32 * 12, 32, dtype=np.int32)
    topics = attrs.evolve(crowded.owned_topics, starts=np.array([0, 12]), values=np.zeros(12, np.int32))
    ids = topic_ids(crowded)
    walk_order(attrs.evolve(crowded, owned_topics=topics, owned_numbers=numbers), topic_order(crowded, ids), ids)
    assert len(asked_of) == 1


def test_only_a_recorded_order_gives_up_the_topic_that_the_member_gained_first() -> None:
    # Both ids fall into bin 0: computeIfAbsent puts the later topic in front, and the member keeps what it meets first.
    ids = {name: id_text(bytes(15) + bytes([last])) for name, last in (("t", 16), ("u", 32))}
    topics = [Topic(name=name, partition_count=1, id=uuid) for name, uuid in ids.items()]
    one = UniformAssignor().assign(Group.of([Member(id="a", topics=("t", "u"))], topics), SplitMix64(0))
    order = [topics[place].name for place in topic_order(one.group, topic_ids(one.group)).tolist()]
    assert [partition.topic for partition in one.of("a")] == order[::-1]
    for owned, kept in ((one.of("a"), order[1]), (tuple(one.of("a")), order[0])):
        members = [Member(id="a", topics=("t", "u"), owned=owned), Member(id="b", topics=("t", "u"))]
        two = UniformAssignor().assign(Group.of(members, topics), SplitMix64(0))
        assert [partition.topic for partition in two.of("a")] == [kept]


def test_a_topic_gained_later_is_met_before_one_of_its_bin() -> None:
    ids = {name: id_text(bytes(15) + bytes([last])) for name, last in (("t", 16), ("u", 32))}
    topics = [Topic(name=name, partition_count=2, id=uuid) for name, uuid in ids.items()]
    alone = UniformAssignor().assign(Group.of([Member(id="a", topics=("t", "u"))], topics), SplitMix64(0))
    first, second = (topics[place] for place in topic_order(alone.group, topic_ids(alone.group)).tolist())
    held = UniformAssignor().assign(Group.of([Member(id="a", topics=(second.name,))], [second]), SplitMix64(0)).of("a")
    grown = Group.of([Member(id="a", topics=("t", "u"), owned=held)], topics)
    assert [one.topic for one in UniformAssignor().assign(grown, SplitMix64(0)).of("a")] == [first.name] * 2 + [
        second.name
    ] * 2


def test_numbers_beyond_the_table_of_a_set_come_before_smaller_ones() -> None:
    assert walked_numbers([0, 1, 16]) == [0, 16, 1]
    assert walked_numbers(list(range(40))) == list(range(40))
