"""What must hold of groups inside a cluster, after every event: G1 to G9, and that a group skips nothing.

It decides when which invariant is looked at; G1 to G9 are those of `replication.groups.client.invariants`.

Goals, most important first
1. Checked is what brokers and members have, from outside; nothing of a run depends on it.
2. Only what an event may have changed is looked at again.

Constraints: what a coordinator has by itself (G1, G3 to G6, G8, G9) holds on every broker, also on one that has been
replaced and does not know it. What members and coordinator have together (G2) is looked at on the broker that leads
by the controller's word.

How: G7 in three ways: a commit is taken from current members only; what a coordinator shows follows its partition's
committed records, never back; and the members' own history (`commits`) can be explained.

Example: two cooperative members own a partition after a fail-over: G2, with time and names.

Left out: what follows for applications, such as work done twice: it is counted (`report`), and allowed.

Source: ours; the invariants name theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import Ticket
from broker.group.consumer import ConsumerGroup
from broker.group.members import MemberId
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse
from broker.group.records import CommittedOffset, OffsetKey, read_committed_offset, read_key
from broker.group.service import GroupService
from broker.ids import BrokerId, TopicPartition
from broker.units import TimeMs
from replication.checkers import Finding, Invariant
from replication.groups.alone.checking import is_from_current
from replication.groups.client import invariants
from replication.groups.client.invariants import Broken
from replication.groups.client.views import fingerprint
from replication.groups.hosted_coordinator import HostedCoordinator
from replication.groups.journal import records_of
from replication.groups.layout import Layout
from replication.groups.member import Member
from replication.groups.messages import Answered, Asked, ShardRead
from replication.groups.shard import Shard
from replication.roles.messages import CONTROLLER, HostedMessage, Message, NodeId, ProduceResponse
from replication.roles.outbox import Outbox
from replication.simulation.cluster import Cluster

GROUP_INVARIANTS: Final[Mapping[str, Invariant]] = MappingProxyType(
    {
        "G1": Invariant("generation ownership", "a stable generation gives a partition to one member at most"),
        "G2": Invariant("no overlap", "no two current members take the same partition for their own"),
        "G3": Invariant("legal target", "a target covers all subscribed partitions, each once"),
        "G4": Invariant("member epochs", "who is at the target's epoch owns nothing that is assigned elsewhere"),
        "G5": Invariant("partition epochs", "a partition has an epoch exactly when a member has it"),
        "G6": Invariant("stable is converged", "in a stable group every member owns its target"),
        "G7": Invariant("commits", "only current members commit, and what was acknowledged survives"),
        "G8": Invariant("no early expiry", "offsets are forgotten only when nobody can need them"),
        "G9": Invariant("legal steps", "groups and members step by their tables, epochs do not fall"),
        "GS": Invariant("nothing skipped", "a group is handed every record up to where it stands"),
    }
)
"""Every invariant of groups by its code."""


@attrs.define
class _Known:
    """What a coordinator was seen to have of one group."""

    service: GroupService
    fingerprint: object = None
    values: dict[TopicPartition, CommittedOffset] = attrs.field(factory=dict)
    group: ConsumerGroup | None = None


class GroupChecker:
    """Looks after each event; each breach is noted the first time only. `hosted_roles` are the brokers' present
    ones."""

    def __init__(
        self, layout: Layout, members: list[Member], hosted_roles: Mapping[BrokerId, HostedCoordinator]
    ) -> None:
        self.findings: list[Finding] = []
        self._layout = layout
        self._members = members
        self._hosted_roles = hosted_roles
        self._seen: set[Broken] = set()
        self._arrived: set[tuple[BrokerId, NodeId, int, Ticket]] = set()
        """The commits that have arrived where: what the network doubles is taken once."""
        self._zombies: dict[tuple[NodeId, int, Ticket], tuple[MemberId, str]] = {}
        """Commits under way of those who were no current members when they asked, by client, session and ticket."""
        self._known: dict[tuple[BrokerId, str], _Known] = {}
        self._held: dict[NodeId, object] = {}
        """What each member was seen to hold, and as whom."""

    def after(self, cluster: Cluster, node: NodeId, message: Message, out: Outbox) -> None:
        """Look at what an event may have changed."""
        if node > CONTROLLER:
            self._look_at_member(cluster, node)
            return
        if not isinstance(message, HostedMessage | ProduceResponse):
            return
        hosted = self._hosted_roles.get(BrokerId(node))
        if hosted is None or hosted.host is not cluster.nodes[BrokerId(node)].role:
            return
        if isinstance(message, Asked):
            partition = self._layout.of_group(message.group_id)
        else:
            partition = getattr(message, "partition", -1)
        shard = hosted.shards.get(partition)
        if shard is None or shard.is_loading:
            return
        if isinstance(message, Asked):
            self._note_commit(hosted, shard.services.get(message.group_id), message)
        self._check_fence(cluster, out)
        for group_id, service in sorted(shard.services.items()):
            if not isinstance(message, Asked) or group_id == message.group_id:
                self._check_service(cluster, hosted, service)
            if isinstance(message, ShardRead):
                self._check_log(cluster, hosted, shard, service)

    def check_all(self, cluster: Cluster) -> None:
        """Hold what every coordinator knows against its partition, once all is quiet."""
        for _, hosted in sorted(self._hosted_roles.items()):
            for _, shard in sorted(hosted.shards.items()):
                for _, service in sorted(shard.services.items()):
                    self._check_log(cluster, hosted, shard, service)

    def authority(self, cluster: Cluster, group_id: str) -> GroupService | None:
        """Return the group on the broker that leads its partition by the controller's word; None while it loads."""
        partition = self._layout.of_group(group_id)
        state = cluster.controller.image.partitions.get(partition)
        if state is None or not state.has_leader:
            return None
        hosted, role = self._hosted_roles.get(state.leader), cluster.nodes[state.leader].role
        if hosted is None or role is None or hosted.host is not role:
            return None
        known = role.image.partitions.get(partition)
        shard = hosted.shards.get(partition)
        if known is None or known.leader_epoch != state.leader_epoch or shard is None or shard.is_loading:
            return None
        return shard.services.get(group_id)

    def note(self, now_ms: TimeMs, found: Iterable[Broken], group_id: str) -> None:
        """Note breaches that are new."""
        for broken in found:
            named = attrs.evolve(broken, what=f"{group_id}: {broken.what}")
            if named not in self._seen:
                self._seen.add(named)
                self.findings.append(Finding(broken.code, now_ms, -1, named.what))

    def _look_at_member(self, cluster: Cluster, node: NodeId) -> None:
        """Look at the owners of a member's group, if it holds something else now, or in another generation."""
        for member in self._members:
            if member.node == node and member.client is not None:
                client = member.client
                held = client.member_id, client.generation, client.reader.owned
                if held != self._held.get(node):
                    self._held[node] = held
                    self._check_owners(cluster, member.plan.spec.group_id)

    def _check_owners(self, cluster: Cluster, group_id: str) -> None:
        service = self.authority(cluster, group_id)
        if service is None:
            return
        of_group = [member for member in self._members if member.plan.spec.group_id == group_id and member.is_alive]
        clients = [member.client for member in of_group if member.client is not None]
        self.note(cluster.now_ms, invariants.single_owners(service, clients), group_id)

    def _check_service(self, cluster: Cluster, hosted: HostedCoordinator, service: GroupService) -> None:
        known = self._known.get((hosted.broker, service.group_id))
        if known is None or known.service is not service:
            known = self._known[hosted.broker, service.group_id] = _Known(service)
        seen = fingerprint(service)
        if seen != known.fingerprint:
            known.fingerprint = seen
            self._check_group(cluster.now_ms, known, service)
            self._check_owners(cluster, service.group_id)
        self._check_forgotten(cluster, known, service)

    def _check_group(self, now_ms: TimeMs, known: _Known, service: GroupService) -> None:
        group_id = service.group_id
        if not service.is_consumer_group:
            self.note(now_ms, invariants.legal_transition(service.classic.group), group_id)
            self.note(now_ms, invariants.generation_ownership(service.classic.group), group_id)
            return
        group = service.consumer.group
        for check in invariants.CONSUMER_CHECKS:
            self.note(now_ms, check(group), group_id)
        if known.group is not None:
            self.note(now_ms, invariants.legal_epochs(known.group, group), group_id)
        known.group = group

    def _check_log(self, cluster: Cluster, hosted: HostedCoordinator, shard: Shard, service: GroupService) -> None:
        """G7: a coordinator shows what is committed in its partition, no more and no less."""
        led = hosted.host.led_log(shard.partition)
        if led is None:
            return
        stored: dict[TopicPartition, CommittedOffset] = {}
        for offset, key_bytes, value in records_of(led.log):
            key = read_key(key_bytes)
            if offset < led.log.high_watermark and isinstance(key, OffsetKey) and key.group_id == service.group_id:
                partition = TopicPartition(key.topic, key.partition)
                stored.pop(partition, None)
                if value is not None:
                    stored[partition] = read_committed_offset(value)
        self.note(cluster.now_ms, invariants.commits_fenced(stored, service), service.group_id)

    def _check_forgotten(self, cluster: Cluster, known: _Known, service: GroupService) -> None:
        """G8: what is known no more was old enough."""
        values = service.offsets.of_group(service.group_id)
        for partition in sorted(known.values.keys() - values.keys()):
            retention_ms = service.offsets.options.retention_ms
            found = invariants.premature_expiry(
                known.values[partition], partition.topic, service, retention_ms, service.classic.now_ms
            )
            self.note(cluster.now_ms, found, service.group_id)
        known.values = values

    def _note_commit(self, hosted: HostedCoordinator, service: GroupService | None, asked: Asked) -> None:
        """Remember a commit, when it first arrives, of who is no current member."""
        request = asked.request
        named = asked.client, asked.session, asked.ticket
        if isinstance(request, OffsetCommitRequest) and (hosted.broker, *named) not in self._arrived:
            self._arrived.add((hosted.broker, *named))
            if service is not None and not is_from_current(service, request):
                self._zombies[named] = request.member_id, asked.group_id

    def _check_fence(self, cluster: Cluster, out: Outbox) -> None:
        """G7: a commit of who is no current member is not taken."""
        for receiver, told in out.sent:
            if isinstance(told, Answered) and isinstance(told.response, OffsetCommitResponse):
                zombie = self._zombies.pop((receiver.node, told.session, told.ticket), None)
                if zombie is not None and ErrorCode.NONE in told.response.errors:
                    member_id, group_id = zombie
                    self.note(cluster.now_ms, [Broken("G7", f"a commit of {member_id} is taken")], group_id)
