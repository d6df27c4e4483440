"""Uniform with equal subscriptions: the compiled loops and their readable twin agree, and know their bounds."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from broker.entropy import SplitMix64
from broker.ids import TopicPartition
from broker.releases import Release
from placement.consumer.errors import PartitionAssignorError
from placement.consumer.group import Group, Member, Topic
from placement.consumer.strategies import groups
from placement.consumer.topic_ids import topic_ids
from placement.consumer.uniform import assignor, homogeneous_kernel
from placement.consumer.uniform.assignor import UniformAssignor
from placement.consumer.uniform.holdings import topic_order, walked
from placement.consumer.uniform.homogeneous import assign_homogeneous
from placement.consumer.uniform.homogeneous_kernel import assign_sound_equal
from tests.placement.consumer.groups import group, rows

RELEASES = (Release("3.9"), Release("4.3"))
TWICE = group({"t": 3}, {"a": "t", "b": "t"}, {"a": "t-0", "b": "t-0"})
BEYOND = group({"t": 2}, {"a": "t", "b": "t"}, {"a": "t-2"})
UNKNOWN = group({"t": 2}, {"a": "t u", "b": "t u"})


def fast(asked: Group, release: Release) -> list[list[int]] | None:
    """Return the rows of the compiled loops, sorted; None where they do not answer."""
    ids = topic_ids(asked)
    found = assign_sound_equal(asked, topic_order(asked, ids), ids, release=release)
    return None if found is None else [sorted(row) for row in found.lists()]


def slow(asked: Group, release: Release) -> list[list[int]]:
    """Return the rows of the readable twin, sorted."""
    ids = topic_ids(asked)
    topics = topic_order(asked, ids)
    return [sorted(row) for row in assign_homogeneous(walked(asked, topics, ids), topics, release=release).lists()]


def next_life(chance: random.Random, topics: list[Topic], held: list[tuple[TopicPartition, ...]]) -> Group:
    """Return a group whose members hold what they held, some gone, some new, a topic no longer subscribed."""
    rows = [row for row in held if chance.random() < 0.8] + [()] * chance.randrange(3)
    names = tuple(one.name for one in topics if chance.random() < 0.9)
    shuffled = [tuple(chance.sample(row, len(row))) for row in rows or [()]]
    members = [
        Member(id=f"member-{number * 37 % 101}", topics=names, owned=(*row, *row[: chance.randrange(2)]))
        for number, row in enumerate(shuffled)
    ]
    return Group.of(members, topics)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("case", range(25))
def test_the_compiled_loops_give_what_the_readable_ones_give_over_several_lives(case: int, release: Release) -> None:
    chance = random.Random(f"equal/{case}")
    topics = [
        Topic(name=f"t{number}", partition_count=chance.choice((0, 1, 2, 5, 9, 40))) for number in range(case % 9 + 1)
    ]
    held: list[tuple[TopicPartition, ...]] = []
    for _ in range(8):
        asked = next_life(chance, topics, held)
        expected = slow(asked, release)
        assert fast(asked, release) == expected
        held = [tuple(asked.name_of(partition) for partition in row) for row in expected]


@given(groups(equal=True, racks=False, sound=False))
def test_whatever_is_claimed_the_compiled_loops_agree_or_leave_it_to_the_readable_ones(asked: Group) -> None:
    found = fast(asked, RELEASES[1])
    assert found is None or found == slow(asked, RELEASES[1])


@pytest.mark.parametrize("asked", [TWICE, BEYOND, UNKNOWN])
def test_unsound_claims_and_unknown_topics_are_left_to_the_readable_loops(asked: Group) -> None:
    assert fast(asked, RELEASES[1]) is None


def test_an_unknown_topic_is_refused_in_one_sentence() -> None:
    with pytest.raises(PartitionAssignorError, match="which doesn't exist in the topic metadata"):
        UniformAssignor().assign(UNKNOWN, SplitMix64(0))


def test_sound_groups_take_the_compiled_way_and_order_nothing_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignor, "assign_homogeneous", None)
    monkeypatch.setattr(homogeneous_kernel, "walked", None)
    asked = group({"t": 4, "u": 2}, {"a": "t u", "b": "t u"}, {"a": "t-3 t-1", "b": "t-2"})
    answered = [set(row) for row in rows(UniformAssignor().assign(asked, SplitMix64(0)))]
    assert [len(row) for row in answered] == [3, 3]
    assert answered[0] >= {1, 3}
    assert 2 in answered[1]


def test_the_loops_say_the_same_in_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = group({"t": 40, "u": 2}, {"a": "t u", "b": "t u"}, {"a": " ".join(f"t-{k}" for k in range(33)), "b": "u-1"})
    compiled = fast(asked, RELEASES[1])
    for name in ("own_claims", "revoke", "fill_members"):
        monkeypatch.setattr(homogeneous_kernel, name, getattr(homogeneous_kernel, name).__wrapped__)
    assert fast(asked, RELEASES[1]) == compiled == slow(asked, RELEASES[1])
