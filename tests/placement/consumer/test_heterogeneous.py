"""Uniform with different subscriptions: the compiled loops and their readable twin agree, and know their bounds."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest
from hypothesis import given

from broker.entropy import SplitMix64
from broker.ids import PartitionId, TopicPartition
from placement.consumer.errors import PartitionAssignorError
from placement.consumer.group import Group, Member, Topic
from placement.consumer.ragged import Ragged
from placement.consumer.strategies import groups
from placement.consumer.uniform import assignor, heterogeneous_kernel
from placement.consumer.uniform.assignor import UniformAssignor
from placement.consumer.uniform.heterogeneous import assign_heterogeneous
from placement.consumer.uniform.heterogeneous_kernel import assign_sound
from tests.placement.consumer.groups import group, rows


def lists(rows: Ragged | None) -> list[list[int]] | None:
    return None if rows is None else list(rows.lists())


def next_life(chance: random.Random, topics: list[Topic], held: list[tuple[TopicPartition, ...]]) -> Group:
    """Return a group whose members hold what they held, some gone, some new, with new subscriptions."""
    rows = [row for row in held if chance.random() < 0.8] + [()] * chance.randrange(1, 4)
    members = [
        Member(
            id=f"m{number}",
            topics=tuple(one.name for one in topics if chance.random() < chance.choice((0.2, 0.5, 0.9))),
            owned=row,
        )
        for number, row in enumerate(rows)
    ]
    return Group.of(members, topics)


@pytest.mark.parametrize("case", range(40))
def test_the_compiled_loops_give_what_the_readable_ones_give_over_several_lives(case: int) -> None:
    chance = random.Random(f"levels/{case}")
    topics = [
        Topic(name=f"t{number}", partition_count=chance.choice((0, 1, 2, 5, 9, 30))) for number in range(case % 9 + 1)
    ]
    held: list[tuple[TopicPartition, ...]] = []
    for _ in range(8):
        asked = next_life(chance, topics, held)
        expected = assign_heterogeneous(asked)
        assert lists(assign_sound(asked)) == lists(expected)
        held = [tuple(asked.name_of(partition) for partition in row) for row in expected.lists()]


@given(groups(equal=False, racks=False, sound=False))
def test_whatever_is_claimed_the_compiled_loops_agree_or_leave_it_to_the_readable_ones(asked: Group) -> None:
    fast = lists(assign_sound(asked))
    assert fast is None or fast == lists(assign_heterogeneous(asked))


TWICE = group({"t": 2, "u": 1}, {"a": "t", "b": "t u"}, {"a": "t-0", "b": "t-0"})
BEYOND = group({"t": 2, "u": 1}, {"a": "t", "b": "t u"}, {"a": "t-2"})
UNKNOWN = group({"t": 2}, {"a": "t", "b": "t u"})


@pytest.mark.parametrize("asked", [TWICE, BEYOND, UNKNOWN])
def test_unsound_claims_and_unknown_topics_are_left_to_the_readable_loops(asked: Group) -> None:
    assert assign_sound(asked) is None


def test_an_unknown_topic_is_refused_in_one_sentence() -> None:
    with pytest.raises(PartitionAssignorError, match="which doesn't exist in the topic metadata"):
        UniformAssignor().assign(UNKNOWN, SplitMix64(0))


def test_claims_on_topics_that_are_not_subscribed_do_not_make_a_group_unsound() -> None:
    asked = group({"t": 2, "u": 3}, {"a": "t", "b": "t u"}, {"a": "t-0 u-0 u-7", "b": "u-0"})
    assert lists(assign_sound(asked)) == lists(assign_heterogeneous(asked)) == [[0, 1], [2, 3, 4]]


def test_sound_groups_take_the_compiled_way(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = group({"t": 4, "u": 2}, {"a": "t", "b": "t u"})
    monkeypatch.setattr(assignor, "assign_heterogeneous", None)
    assert rows(UniformAssignor().assign(asked, SplitMix64(0))) == [[0, 1, 2], [3, 4, 5]]


def test_the_loops_say_the_same_in_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [Topic(name=name, partition_count=9) for name in "tuvw"]
    owned = tuple(TopicPartition("t", PartitionId(number)) for number in range(9))
    members = [
        Member(id="a", topics=("t",), owned=owned),
        Member(id="b", topics=("t", "u")),
        Member(id="c", topics=("t", "u", "v", "w")),
    ]
    asked = Group.of(members, topics)
    compiled = lists(assign_sound(attrs.evolve(asked)))
    for name in ("take_claims", "share_out"):
        monkeypatch.setattr(heterogeneous_kernel, name, getattr(heterogeneous_kernel, name).__wrapped__)
    with np.errstate(over="raise"):
        assert lists(assign_sound(attrs.evolve(asked))) == compiled
