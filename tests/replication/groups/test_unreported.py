"""What G2 excuses: a static member that has not reported a partition, which a generation without it gave to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from broker.group.classic import GroupState, JoinedMember
from broker.group.members import MemberId
from broker.group.protocol import Subscription, read_subscription, write_assignment
from broker.ids import PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.groups import GroupsExtension, with_groups
from replication.groups.client.assigning import ClientAssignor
from replication.groups.weaknesses import UnreportedPartitions
from replication.simulation import Simulation, varied

A0, A1, B0 = (TopicPartition(topic, PartitionId(each)) for topic, each in (("a", 0), ("a", 1), ("b", 0)))
_Partitions = tuple[TopicPartition, ...]


def client(owned: _Partitions, generation: int = 5) -> Any:
    return SimpleNamespace(member_id="x", generation=generation, subscriptions=SimpleNamespace(owned=frozenset(owned)))


def group(reported: _Partitions = (), *, given: _Partitions = (A1,), others: _Partitions = (A0,), **fields: Any) -> Any:
    """A group in generation 6 in which x reported `reported`, and is given `given`."""
    static = {"x": fields.pop("instance_id", "i")}
    members = {
        name: SimpleNamespace(
            member_id=name,
            instance_id=static.get(name),
            metadata=lambda _: Subscription(topics=("a", "b"), owned=reported).to_bytes(),
            assignment=write_assignment(share),
        )
        for name, share in (("x", given), ("y", others))
    }
    named = {"state": GroupState.STABLE, "generation": 6, "protocol_name": "cooperative-sticky", **fields}
    return SimpleNamespace(classic=SimpleNamespace(group=SimpleNamespace(members=members, **named)))


def test_what_a_static_member_owns_and_has_not_reported_is_given_to_another() -> None:
    noted = UnreportedPartitions()
    noted.note(group(), [client((A0, B0))])
    assert noted.of(client((A0, B0), generation=7)) == {A0}


def test_what_was_not_reported_stays_noted_while_the_next_generation_comes() -> None:
    noted = UnreportedPartitions()
    noted.note(group(), [client((A0,))])
    noted.note(group((A0,), generation=7), [client((A0,), generation=7)])
    assert noted.of(client((A0,), generation=7)) == {A0}


@pytest.mark.parametrize(
    ("there", "generation"),
    [
        (group((A0,)), 5),
        (group(instance_id=None), 5),
        (group(protocol_name="range"), 5),
        (group(state=GroupState.COMPLETING_REBALANCE), 5),
        (group(), 6),
        (group(others=(B0,)), 5),
        (group(given=(A0,)), 5),
    ],
    ids=[
        "it has reported it",
        "it is no static member, and would have been removed",
        "members of eager groups own nothing as they join",
        "the generation is not complete",
        "it has heard of the generation",
        "nobody else is given it",
        "it is given it as well",
    ],
)
def test_other_partitions_that_two_members_own_are_not_excused(there: Any, generation: int) -> None:
    noted = UnreportedPartitions()
    noted.note(there, [client((A0,), generation)])
    assert noted.of(client((A0,), generation=7)) == frozenset()


def test_nothing_is_excused_of_a_client_that_is_no_member() -> None:
    noted, stranger = UnreportedPartitions(), client((A0, B0))
    stranger.member_id = "z"
    noted.note(group(), [stranger])
    assert noted.of(stranger) == frozenset()


def test_a_partition_that_was_given_up_or_given_again_is_not_excused_any_more() -> None:
    noted = UnreportedPartitions()
    noted.note(group(), [client((A0, B0))])
    noted.look(client((B0,), generation=7))
    assert noted.of(client((A0,), generation=8)) == frozenset()
    noted.note(group(), [client((A0, B0))])
    noted.note(group(given=(A0,), generation=7), [client((A0,), generation=7)])
    assert noted.of(client((A0,), generation=7)) == frozenset()


@pytest.mark.parametrize("is_noted", [True, False])
def test_who_was_given_it_is_excused_where_it_comes_back_until_it_is_given_up(is_noted: bool) -> None:
    """In generation 7 x is given A0 again, and y still owns it."""
    noted, other = UnreportedPartitions(), client((A0, B0), generation=7)
    other.member_id = "y"
    if is_noted:
        noted.note(group(), [client((A0,))])
    back = group((A0,), given=(A0,), others=(B0,), generation=7)
    noted.note(back, [other, client((A0,), generation=7)])
    noted.note(back, [other, client((A0,), generation=7)])
    assert noted.of(client((A0,), generation=7)) == frozenset()
    assert noted.of(other) == ({A0} if is_noted else frozenset())
    other.subscriptions.owned = frozenset({B0})
    noted.look(other)
    other.subscriptions.owned = frozenset({A0, B0})
    assert noted.of(other) == frozenset()


def ran_until(at_ms: int, seed: int = 990_088) -> tuple[GroupsExtension, Simulation]:
    options = with_groups(varied(seed, DurationMs(600_000)))
    groups = GroupsExtension.drawn(options, 2)
    simulation = Simulation(options, extension=groups)
    simulation.run_until(TimeMs(at_ms))
    return groups, simulation


def found(groups: GroupsExtension) -> list[str]:
    return [f"{each.code} {each.what}" for each in groups.checker.findings]


BOTH_OWN = ["G2 group-1: group-1-member-0 and group-1-member-2 both own topic-a-0"]


@pytest.mark.deep
def test_g2_a_static_member_comes_into_the_generation_after_one_that_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Member 0 stands still from 392 s to 432 s while its JoinGroup waits; member 2 is given topic-a-0 at 431 s."""
    groups, simulation = ran_until(434_530)
    assert found(groups) == []
    monkeypatch.setattr(UnreportedPartitions, "of", lambda *_: frozenset())
    simulation.run_until(TimeMs(434_545))
    assert found(groups) == BOTH_OWN


@pytest.mark.deep
def test_g2_the_same_member_is_not_excused_where_it_has_reported_what_it_owns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same history, but the coordinator has the report of topic-a-0, and the leader assigns as if it had not."""
    groups, simulation = ran_until(431_200)
    service = groups.checker.authority(simulation.cluster, "group-1")
    assert service is not None
    (away,) = (each for each in service.classic.group.members.values() if each.client_id == "group-1-member-0")
    (protocol,) = away.protocols
    told = read_subscription(protocol.metadata)
    assert told.owned == ()
    reported = attrs.evolve(told, owned=(TopicPartition("topic-a", PartitionId(0)),), generation=5)
    away.protocols = (attrs.evolve(protocol, metadata=reported.to_bytes()),)
    real = ClientAssignor.assign

    def assign(
        self: ClientAssignor, members: Sequence[JoinedMember], counts: Mapping[str, int]
    ) -> tuple[tuple[MemberId, bytes], ...]:
        silent = [
            attrs.evolve(each, metadata=protocol.metadata) if each.member_id == away.member_id else each
            for each in members
        ]
        return real(self, silent, counts)

    monkeypatch.setattr(ClientAssignor, "assign", assign)
    simulation.run_until(TimeMs(434_530))
    assert found(groups) == BOTH_OWN


@pytest.mark.deep
def test_g2_two_members_report_it_after_a_generation_that_came_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Member 1 misses generation 4, 5 ends as it begins, and 6 gives topic-a-1 to member 1, not to member 3."""
    groups, simulation = ran_until(491_990, 995_103)
    assert found(groups) == []
    monkeypatch.setattr(UnreportedPartitions, "of", lambda *_: frozenset())
    simulation.run_until(TimeMs(492_005))
    assert found(groups) == ["G2 group-1: group-1-member-1 and group-1-member-3 both own topic-a-1"]


@pytest.mark.deep
def test_g2_two_members_that_report_it_are_excused_until_one_has_heard() -> None:
    groups, simulation = ran_until(495_000, 995_103)
    assert found(groups) == []
    assert simulation.findings == ()
