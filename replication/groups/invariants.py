"""Define G1 to G9, the invariants of a group, as functions of a coordinator's state, or two successive ones.

G1 the assignments of a stable classic generation give each partition once. G2 no two current members own the same
partition in their own view. G3 a target covers all subscribed partitions once. G4 a member at the target's epoch owns
no partition that another member holds. G5 a partition has an epoch exactly when a member holds it. G6 a stable group
has reached its target. G7 the committed offset is the last one accepted from a current member, across coordinators. G8
an offset expires only after its retention. G9 states change only as the table allows.

Source: the invariants G2 to G6 are those of the TLA+ model of KIP-848; the others follow from GroupMetadataManager and
OffsetMetadataManager, 4.3.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import ClassicGroup, GroupState
from broker.group.consumer import ConsumerGroup, ConsumerGroupState, MemberState
from broker.group.consumer.member import JOINING_EPOCH, NOT_OWNED, NOTHING, STATIC_LEAVING_EPOCH
from broker.group.members import MemberId
from broker.group.messages import OffsetFetchResponse
from broker.group.protocol import read_assignment
from broker.group.records import CommittedOffset
from broker.group.service import GroupService
from broker.ids import Offset, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.checkers import Invariant
from replication.groups.client.client import Client
from replication.groups.client.messages import Response

GROUP_INVARIANTS: Final[Mapping[str, Invariant]] = MappingProxyType(
    {
        "G1": Invariant("generation ownership", "a stable generation gives a partition to one member at most"),
        "G2": Invariant("no overlap", "no two current members take the same partition for their own"),
        "G3": Invariant("legal target", "a target covers all subscribed partitions, each once"),
        "G4": Invariant("member epochs", "who is at the target's epoch owns nothing that is assigned elsewhere"),
        "G5": Invariant("partition epochs", "a partition has an epoch exactly when a member has it"),
        "G6": Invariant("stable is converged", "in a stable group every member owns its target"),
        "G7": Invariant(
            "commits", "only current members commit, what was acknowledged survives, and only stable offsets are shown"
        ),
        "G8": Invariant("no early expiry", "offsets are forgotten only when nobody can need them"),
        "G9": Invariant("legal steps", "groups and members step by their tables, epochs do not fall"),
        "G10": Invariant(
            "stored is known", "a coordinator that reads the stored records knows what the one that wrote them knew"
        ),
        "G11": Invariant(
            "former is fenced", "a request of a former generation, member epoch or process of a static member fails"
        ),
        "G12": Invariant(
            "assignments hold",
            "a member is told what its generation's leader gave it; a static one keeps its place as it comes back",
        ),
        "G13": Invariant("sessions", "a member is gone when its session is over, and a static one not before"),
        "GS": Invariant("nothing skipped", "a group is handed every record up to where it stands"),
    }
)
"""Every invariant of groups by its code; G10 is checked in clusters as they are quiet."""


PREDECESSORS: Final = {
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.PREPARING_REBALANCE: {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY},
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
}
"""From where each state of a classic group may be reached; a group that is new, or loaded, comes from DEAD."""


@attrs.frozen
class Broken:
    """Describe a broken invariant: its code, and the violation in words."""

    code: str
    what: str


def generation_ownership(group: ClassicGroup) -> Iterator[Broken]:
    """Yield G1: a stable generation gives a partition to two members."""
    if group.state is not GroupState.STABLE:
        return
    given = Counter(
        partition
        for member in group.members.values()
        if member.assignment
        for partition in read_assignment(member.assignment)
    )
    for partition in _twice(given):
        yield Broken("G1", f"generation {group.generation} gives {partition} to {given[partition]} members")


def single_owners(
    service: GroupService,
    clients: Iterable[Client],
    disowned: Mapping[MemberId, frozenset[TopicPartition]] = MappingProxyType({}),
) -> Iterator[Broken]:
    """Yield G2: two current members own the same partition in their own view.

    `disowned` holds what is exempt, by member: what members of consumer groups reported not to own, and took after
    that. It is a weakness of Kafka's own: a member that reconciles commits first, and after an
    error of a heartbeat the next one reports what it owns till then. The coordinator takes a partition that was given
    and is not reported for given up, and gives it to another (CurrentAssignmentBuilder.ownsRevokedPartitions), while
    the member still takes it (AbstractMembershipManager.maybeReconcile, both 4.3.1; no ticket known).
    """
    owners: dict[TopicPartition, str] = {}
    for client in clients:
        if not is_current(service, client):
            continue
        for partition in sorted(client.subscriptions.owned - disowned.get(client.member_id, frozenset())):
            if partition in owners:
                yield Broken("G2", f"{owners[partition]} and {client.spec.name} both own {partition}")
            owners[partition] = client.spec.name


def is_current(service: GroupService, client: Client) -> bool:
    """Return whether a client is a current member, in a classic group of the present generation."""
    if service.is_consumer_group:
        # A member ahead of the coordinator got its epoch by records that an unclean election lost; it will be fenced.
        known = service.consumer.group.members.get(client.member_id)
        return known is not None and JOINING_EPOCH < client.generation <= known.epoch
    group = service.classic.group
    return client.member_id in group.members and client.generation == group.generation


def is_ahead(service: GroupService, client: Client) -> bool:
    """Return whether a client has a later generation, or member epoch, than its coordinator knows."""
    if service.is_consumer_group:
        known = service.consumer.group.members.get(client.member_id)
        return known is not None and client.generation > known.epoch
    return client.generation > service.classic.group.generation


def legal_target(group: ConsumerGroup) -> Iterator[Broken]:
    """Yield G3: a partition of a subscribed topic is in no member's target, or in two."""
    if not group.members or group.epoch != group.target_epoch:
        return
    given = Counter(partition for share in group.target.values() for partition in share)
    for partition in _twice(given):
        yield Broken("G3", f"the target gives {partition} to {given[partition]} members")
    wanted = sum(group.topics.get(topic, 0) for topic in group.subscribed_topics())
    if len(given) != wanted:
        yield Broken("G3", f"the target has {len(given)} of {wanted} partitions")


def epoch_meaning(group: ConsumerGroup) -> Iterator[Broken]:
    """Yield G4: a member at the target's epoch owns a partition that another holds, assigned or revoking."""
    for member in group.ordered():
        if member.epoch != group.target_epoch:
            continue
        for other in group.ordered():
            both = member.assigned & (other.assigned | other.revoking)
            if other is not member and both:
                yield Broken("G4", f"{min(both)} is assigned to {member.member_id} and at {other.member_id}")


def partition_epochs(group: ConsumerGroup) -> Iterator[Broken]:
    """Yield G5: a partition has an epoch without an owner, or an owner without an epoch."""
    held = {one for member in group.members.values() for one in (*member.assigned, *member.revoking)}
    known = held.union(*group.target.values())
    for partition in sorted(known):
        if (group.owner_epoch(partition) != NOT_OWNED) != (partition in held):
            yield Broken("G5", f"{partition} has epoch {group.owner_epoch(partition)}")


def stable_means_converged(group: ConsumerGroup) -> Iterator[Broken]:
    """Yield G6: a group is stable, but some member has not reached the group's epoch and target."""
    if group.state is not ConsumerGroupState.STABLE:
        return
    for member in group.ordered():
        target = group.target.get(member.member_id, NOTHING)
        if member.state is not MemberState.STABLE or member.epoch != group.epoch or member.assigned != target:
            yield Broken("G6", f"{member.member_id} is {member.state.name} at epoch {member.epoch} of {group.epoch}")


def commits_fenced(accepted: dict[TopicPartition, CommittedOffset], service: GroupService) -> Iterator[Broken]:
    """Yield G7: the coordinator's committed offsets differ from those that were accepted last."""
    known = service.offsets.of_group(service.group_id)
    if known == accepted:
        return
    for partition in sorted(accepted.keys() | known.keys()):
        if accepted.get(partition) != known.get(partition):
            yield Broken("G7", f"{partition}: accepted was {accepted.get(partition)}, known is {known.get(partition)}")


def stable_offsets(response: Response, end_offset: Offset, high_watermark: Offset) -> Iterator[Broken]:
    """Yield G7: an OffsetFetch is answered before the high watermark reaches the log end at its arrival (KIP-447)."""
    if isinstance(response, OffsetFetchResponse) and response.error is ErrorCode.NONE and high_watermark < end_offset:
        yield Broken("G7", f"offsets are shown while {high_watermark} of {end_offset} records are committed")


def premature_expiry(
    value: CommittedOffset, topic: str, service: GroupService, retention_ms: DurationMs, now_ms: TimeMs
) -> Iterator[Broken]:
    """Yield G8: an offset is deleted though its retention has not passed, or a member still needs it."""
    group = service.classic.group
    age_ms = now_ms - value.committed_ms
    if service.is_consumer_group:
        is_due = age_ms >= retention_ms and topic not in service.consumer.group.subscribed_topics()
    elif group.state is GroupState.EMPTY:
        is_due = now_ms - group.state_time_ms >= retention_ms
    else:
        is_due = group.state is GroupState.STABLE and age_ms >= retention_ms
    if not is_due:
        yield Broken("G8", f"an offset of {topic} is forgotten {age_ms} ms after its commit in {group.state.name}")


def stored_is_known(writer: GroupService, reader: GroupService) -> Iterator[Broken]:
    """Yield G10: a coordinator that has read what another stored knows another group.

    A classic group is stored as its generation is complete; what members have asked for since then nobody stores.
    """
    known, written = (each.offsets.of_group(each.group_id) for each in (writer, reader))
    for partition in sorted(known.keys() | written.keys(), key=str):
        offset, other = known.get(partition), written.get(partition)
        if offset != other:
            yield Broken("G10", f"of {partition} is known {offset}, stored is {other}")
    if writer.is_consumer_group:
        if writer.consumer.group != reader.consumer.group:
            yield Broken("G10", f"known is {writer.consumer.group}, stored is {reader.consumer.group}")
        return
    group, stored = writer.classic.group, reader.classic.group
    if group.state in (GroupState.STABLE, GroupState.EMPTY) and _kept(group) != _kept(stored):
        yield Broken("G10", f"known is {_kept(group)}, stored is {_kept(stored)}")


def _kept(group: ClassicGroup) -> object:
    """Return what a classic group's record holds."""
    members = {
        member.member_id: (
            *(member.instance_id, member.client_id, member.client_host, member.protocol_type),
            *(member.session_timeout_ms, member.rebalance_timeout_ms, member.metadata(group.protocol_name)),
            member.assignment,
        )
        for member in group.members.values()
    }
    return (
        *(group.state, group.generation, group.protocol_type, group.protocol_name, group.leader_id),
        *(sorted(group.static_members.items()), sorted(members.items())),
    )


def legal_transition(group: ClassicGroup) -> Iterator[Broken]:
    """Yield G9: a classic group came to its state from a state that does not lead there."""
    if group.previous_state is GroupState.DEAD or group.state is GroupState.DEAD:
        return
    if group.previous_state not in PREDECESSORS[group.state]:
        yield Broken("G9", f"{group.previous_state.name} became {group.state.name}")


def legal_epochs(before: ConsumerGroup, group: ConsumerGroup) -> Iterator[Broken]:
    """Yield G9: an epoch has fallen, though its member has neither joined anew nor left."""
    if group.epoch < before.epoch or group.target_epoch < before.target_epoch:
        yield Broken("G9", f"epoch {before.epoch} became {group.epoch}")
    for member_id, member in sorted(group.members.items()):
        former = before.members.get(member_id)
        if former is None or member.epoch in (JOINING_EPOCH, STATIC_LEAVING_EPOCH):
            continue
        if member.epoch < former.epoch:
            yield Broken("G9", f"{member_id} went from epoch {former.epoch} to {member.epoch}")


def _twice(given: Counter[TopicPartition]) -> list[TopicPartition]:
    return sorted(partition for partition, count in given.items() if count > 1)


Check = Callable[[ConsumerGroup], Iterator[Broken]]
CONSUMER_CHECKS: Final[tuple[Check, ...]] = (legal_target, epoch_meaning, partition_epochs, stable_means_converged)
"""G3 to G6."""
