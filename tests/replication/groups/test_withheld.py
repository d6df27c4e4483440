"""What L8 excuses: a partition whose static owner began anew between the two rebalances of a cooperative group."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from broker.group.classic import GroupState
from broker.group.protocol import Subscription, write_assignment
from broker.ids import PartitionId, TopicPartition
from broker.units import DurationMs
from replication.groups import GroupsExtension, with_groups
from replication.groups.weaknesses import WithheldPartitions
from replication.simulation import Simulation, varied

A0, A1, B0 = (TopicPartition(topic, PartitionId(each)) for topic, each in (("a", 0), ("a", 1), ("b", 0)))


def member(member_id: str, owned: tuple[TopicPartition, ...], given: tuple[TopicPartition, ...], **names: str) -> Any:
    """A member that said it owns `owned` as it joined, and is given `given`."""
    subscription = Subscription(topics=("a", "b"), owned=owned).to_bytes()
    return SimpleNamespace(
        member_id=member_id,
        instance_id=names.get("instance_id"),
        metadata=lambda _: subscription,
        assignment=write_assignment(given),
    )


def group(*members: Any, generation: int = 8, state: GroupState = GroupState.STABLE) -> Any:
    static = {each.instance_id: each.member_id for each in members if each.instance_id is not None}
    named = {each.member_id: each for each in members}
    fields = SimpleNamespace(
        state=state, generation=generation, members=named, static_members=static, protocol_name="cooperative-sticky"
    )
    return SimpleNamespace(group_id="g", classic=SimpleNamespace(group=fields))


OWNER = member("x-1", (A1, B0), (B0,), instance_id="x")
ANEW = member("x-2", (), (B0,), instance_id="x")
OTHER = member("y", (), (A0,))


def withheld(first: Any, now: Any) -> frozenset[TopicPartition]:
    noted = WithheldPartitions()
    noted.note(first)
    noted.note(now)
    return noted.of(now)


def test_what_a_static_owner_was_to_give_up_as_it_began_anew_is_given_to_nobody() -> None:
    assert withheld(group(OWNER, OTHER), group(ANEW, OTHER)) == {A1}


@pytest.mark.parametrize(
    ("first", "now"),
    [
        (group(OWNER, OTHER), group(OWNER, OTHER)),
        (group(member("x-1", (A1, B0), (B0,)), OTHER), group(member("x-2", (), (B0,)), OTHER)),
        (group(OWNER, OTHER), group(ANEW, OTHER, generation=9)),
        (group(OWNER, OTHER), group(ANEW, member("y", (), ()))),
        (group(OWNER, OTHER), group(ANEW, OTHER, state=GroupState.PREPARING_REBALANCE)),
        (group(OWNER, OTHER, state=GroupState.COMPLETING_REBALANCE), group(ANEW, OTHER)),
        (group(member("x-1", (B0,), (B0,), instance_id="x"), OTHER), group(ANEW, OTHER)),
        (group(OWNER, OTHER), group(OTHER, member("z", (), (B0,)))),
    ],
    ids=[
        "its owner is there and joins again",
        "its owner was no static member",
        "there was another rebalance",
        "others were given something else",
        "a rebalance has begun",
        "the first rebalance had not ended",
        "nobody owned it",
        "its owner is gone, so that there is a rebalance",
    ],
)
def test_a_partition_that_is_given_to_nobody_for_another_reason_is_not_excused(first: Any, now: Any) -> None:
    assert withheld(first, now) == frozenset()


@pytest.mark.deep
def test_l8_a_static_owner_begins_anew_between_two_rebalances(monkeypatch: pytest.MonkeyPatch) -> None:
    """Member 0 owned topic-a-1, was to give it up in generation 8, and dies; nobody joins until the end."""
    options = with_groups(varied(970_231, DurationMs(600_000)))
    groups = GroupsExtension.drawn(options, 2)
    simulation = Simulation(options, extension=groups)
    assert simulation.finish().findings == ()
    monkeypatch.setattr(WithheldPartitions, "of", lambda *_: frozenset())
    assert groups.missing(simulation.cluster) == "group-0: not every partition is given to somebody (L8)"
