"""Check groups in the cluster after every event: G1 to G13, and that a group skips no record.

Constraints: a coordinator's own state (G1, G3 to G6, G8, G9) is checked on every broker, also on one that has been
replaced and does not know it. Members are compared with their coordinator (G2) on the broker that leads by the
controller's metadata.

Source: ours; the invariants name theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import GroupState, Ticket
from broker.group.consumer import ConsumerGroup, ConsumerGroupState
from broker.group.members import MemberId
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest
from broker.group.protocol import read_assignment
from broker.group.records import CommittedOffset, OffsetKey, read_committed_offset, read_key
from broker.group.service import GroupService, Request
from broker.ids import BrokerId, Offset, TopicPartition
from broker.units import TimeMs
from replication.checkers import Finding
from replication.groups import invariants
from replication.groups.accounts import Answered, Given, GroupAccount
from replication.groups.client.client import Client
from replication.groups.client.messages import Request as ClientRequest
from replication.groups.client.messages import Response
from replication.groups.connections import GroupRequest, GroupResponse, ShardDue, ShardRead
from replication.groups.history import Loss
from replication.groups.hosted_coordinator import HostedCoordinator
from replication.groups.invariants import Broken
from replication.groups.member import Member
from replication.groups.offsets_log import Journal, read_groups, records_of
from replication.groups.plan import Layout
from replication.groups.shard import Shard
from replication.roles.messages import CONTROLLER, HostedMessage, Message, NodeId, ProduceResponse
from replication.roles.outbox import Outbox
from replication.simulation.cluster import Cluster


def fingerprint(service: GroupService) -> object:
    """Return a value that changes when the group's members, generation, state or assignments do."""
    if service.is_consumer_group:
        return id(service), service.consumer.group
    group = service.classic.group
    return id(service), group.state, group.generation, tuple(group.members)


def given(service: GroupService) -> Mapping[MemberId, frozenset[TopicPartition]] | None:
    """Return each member's assignment in a stable group; None where the group is not stable."""
    if service.is_consumer_group:
        modern = service.consumer.group
        return dict(modern.target) if modern.state is ConsumerGroupState.STABLE else None
    group = service.classic.group
    if group.state is not GroupState.STABLE:
        return None
    return {
        member_id: read_assignment(member.assignment) if member.assignment else frozenset()
        for member_id, member in group.members.items()
    }


def is_settled(service: GroupService, clients: Iterable[Client], partition_counts: Mapping[str, int]) -> bool:
    """Return whether the group is stable, all members run, and they own every partition as assigned."""
    shares = given(service)
    alive = {client.member_id: client for client in clients}
    if shares is None or shares.keys() - alive.keys():
        return False
    if any(alive[member_id].subscriptions.owned != share for member_id, share in shares.items()):
        return False
    topics = {topic for client in alive.values() for topic in client.spec.topics}
    return sum(map(len, shares.values())) == sum(partition_counts.get(topic, 0) for topic in topics)


@attrs.define
class ServiceChecker:
    """Check one coordinator's group without looking at any client."""

    service: GroupService
    _fingerprint: object = None
    _before: ConsumerGroup | None = None

    def has_changed(self) -> bool:
        """Return whether the group has changed since the last call."""
        before, self._fingerprint = self._fingerprint, fingerprint(self.service)
        return before != self._fingerprint

    def broken(self) -> Iterator[Broken]:
        """Yield the invariants that the group breaks now, or broke since the state last checked."""
        if not self.service.is_consumer_group:
            yield from invariants.legal_transition(self.service.classic.group)
            yield from invariants.generation_ownership(self.service.classic.group)
            return
        group = self.service.consumer.group
        for check in invariants.CONSUMER_CHECKS:
            yield from check(group)
        if self._before is not None:
            yield from invariants.legal_epochs(self._before, group)
        self._before = group


Key: TypeAlias = tuple[NodeId, int, Ticket]
"""A request: its client, session and ticket."""


class CommitFence:
    """Track commits under way whose sender was no current member when they arrived."""

    def __init__(self) -> None:
        self._stale: dict[Key, MemberId] = {}

    def asked(self, key: Key, service: GroupService, request: Request) -> None:
        """Record a commit that the coordinator must refuse."""
        if isinstance(request, OffsetCommitRequest) and not is_from_current(service, request):
            self._stale[key] = request.member_id

    def accepted(self, key: Key, response: Response) -> MemberId | None:
        """Return the sender of a wrongly accepted commit (G7); None for all other responses."""
        if not isinstance(response, OffsetCommitResponse):
            return None
        member_id = self._stale.pop(key, None)
        return member_id if ErrorCode.NONE in response.errors else None


def is_from_current(service: GroupService, request: OffsetCommitRequest) -> bool:
    """Return whether a current member sent this commit; a classic group between JoinGroup and SyncGroup has none.

    A member of a consumer group may use a former epoch for partitions that it has held since then (KIP-1251).
    """
    if service.is_consumer_group:
        member = service.consumer.group.members.get(request.member_id)
        if member is None or not request.commits:
            return member is not None and member.epoch == request.generation
        epochs = member.assignment_epochs
        held_from = max(epochs.get(each.partition, member.epoch) for each in request.commits)
        return held_from <= request.generation <= member.epoch
    group = service.classic.group
    is_member = request.member_id in group.members and request.generation == group.generation
    return is_member and group.state is not GroupState.COMPLETING_REBALANCE


@attrs.define
class _Known:
    """The checks of one coordinator's group, and the offsets that it was last seen to have."""

    checker: ServiceChecker
    values: dict[TopicPartition, CommittedOffset] = attrs.field(factory=dict)


class GroupChecker:
    """Check all groups of a run; note each breach the first time only.

    `hosted_roles` holds the coordinator role of each running broker, `losses` when records of each group may have
    been lost by an unclean election.
    """

    def __init__(
        self,
        layout: Layout,
        members: list[Member],
        hosted_roles: Mapping[BrokerId, HostedCoordinator],
        losses: Mapping[str, Sequence[Loss]],
    ) -> None:
        self.findings: list[Finding] = []
        self._layout = layout
        self._members = members
        self._hosted_roles = hosted_roles
        self._seen: set[Broken] = set()
        self._arrived: set[tuple[BrokerId, NodeId, int, Ticket]] = set()
        """The commits that have arrived, by broker and request: a doubled one is checked once."""
        self._heard: set[tuple[BrokerId, Key]] = set()
        """The requests that have arrived: a doubled one is answered as before."""
        self._fence = CommitFence()
        self._known: dict[tuple[BrokerId, str], _Known] = {}
        self._accounts: dict[GroupService, GroupAccount] = {}
        self._given: Given = {}
        self._pending: dict[tuple[BrokerId, Key], tuple[str, ClientRequest]] = {}
        """The requests that have arrived and are not answered, with their groups."""
        self._ends: dict[Shard, Offset] = {}
        """Where the log of each coordinator's partition ended after the last event."""
        self._stable_ends: dict[tuple[BrokerId, Key], Offset] = {}
        """Up to where the log has to be committed before each OffsetFetch under way is answered."""
        self._late: dict[Shard, tuple[Offset, int]] = {}
        """The last offset that was not committed in time, or not yet when its coordinator read the log, until it is
        committed; by coordinator, with its requests so far."""
        self._held: dict[NodeId, tuple[object, TimeMs]] = {}
        """The member id, generation and partitions that each member was last seen to have, and since when."""
        self._ahead: dict[str, Mapping[str, frozenset[TopicPartition]]] = {}
        """By group, what members own by a generation that the present coordinator did not find when it loaded."""
        self._losses = losses
        self._disowned: dict[NodeId, frozenset[TopicPartition]] = {}
        """The partitions that each member reported not to own while it was about to own them."""

    def after(self, cluster: Cluster, node: NodeId, message: Message, out: Outbox) -> None:
        """Check every group that an event may have changed."""
        if node > CONTROLLER:
            self._look_at_member(cluster, node)
            return
        if not isinstance(message, HostedMessage | ProduceResponse):
            return
        hosted = self._hosted_roles.get(BrokerId(node))
        if hosted is None or hosted.host is not cluster.nodes[BrokerId(node)].role:
            return
        if isinstance(message, GroupRequest):
            partition = self._layout.of_group(message.group_id)
        else:
            partition = getattr(message, "partition", -1)
        shard = hosted.shards.get(partition)
        if shard is None or shard.is_loading:
            return
        if isinstance(message, GroupRequest):
            self._note_commit(hosted, shard.services.get(message.group_id), message)
            self._check_late(cluster, hosted, shard)
        elif isinstance(message, ProduceResponse) and message.error is ErrorCode.REQUEST_TIMED_OUT:
            self._late[shard] = message.offset, shard.request_count
        self._account(cluster, hosted, shard, message, out)
        has_loaded = isinstance(message, ShardRead) and hosted.has_read(message)
        if has_loaded:
            self._await_uncommitted(hosted, shard)
        self._check_fence(cluster, out)
        for group_id, service in sorted(shard.services.items()):
            if not isinstance(message, GroupRequest) or group_id == message.group_id:
                self._check_service(cluster, hosted, service)
            if has_loaded:
                self._check_log(cluster, hosted, shard, service)

    def check_all(self, cluster: Cluster) -> None:
        """Compare every coordinator's offsets with its partition, once the cluster is quiet."""
        for _, hosted in sorted(self._hosted_roles.items()):
            for _, shard in sorted(hosted.shards.items()):
                for _, service in sorted(shard.services.items()):
                    self._check_log(cluster, hosted, shard, service)
                    self.check_stored(cluster, hosted, shard, service)

    def check_stored(self, cluster: Cluster, hosted: HostedCoordinator, shard: Shard, service: GroupService) -> None:
        """Check G10, unless an append is under way: a coordinator that reads the partition knows the same group."""
        led, options = hosted.host.led_log(shard.partition), hosted.options.service
        if led is None or shard.is_loading or shard.is_waiting:
            return
        reader = GroupService(service.group_id, options, SplitMix64(0))
        stored = read_groups(Journal(options.context.topics), led.log).get(service.group_id)
        reader.load(() if stored is None else stored.entries(), service.classic.now_ms)
        self.note(cluster.now_ms, invariants.stored_is_known(service, reader), service.group_id)

    def authority(self, cluster: Cluster, group_id: str) -> GroupService | None:
        """Return a group on the leader of its partition, by the controller's metadata; None while it loads."""
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
        """Add breaches that are new to the findings."""
        for broken in found:
            named = attrs.evolve(broken, what=f"{group_id}: {broken.what}")
            if named not in self._seen:
                self._seen.add(named)
                self.findings.append(Finding(broken.code, now_ms, -1, named.what))

    def reported(self, member: Member, owned: frozenset[TopicPartition]) -> None:
        """Record the partitions that a member is about to own beyond those in its heartbeat."""
        if member.client is not None:
            self._disowned[member.node] = self._disowned.get(member.node, frozenset()) | (member.client.coming - owned)

    def _look_at_member(self, cluster: Cluster, node: NodeId) -> None:
        """Check the owners of a member's group, if the member's partitions or generation have changed."""
        for member in self._members:
            if member.node == node and member.client is not None:
                client = member.client
                held = client.member_id, client.generation, client.subscriptions.owned
                if node in self._disowned:
                    self._disowned[node] &= client.coming | client.subscriptions.owned
                if node not in self._held or held != self._held[node][0]:
                    self._held[node] = held, cluster.now_ms
                    self._check_owners(cluster, member.plan.spec.group_id)

    def _group_of(self, node: NodeId) -> str:
        """Return the group of the member at this node."""
        return next(member.plan.spec.group_id for member in self._members if member.node == node)

    def _clients_of(self, group_id: str) -> Iterator[Client]:
        """Yield the running consumers of a group."""
        for member in self._members:
            if member.client is not None and member.plan.spec.group_id == group_id:
                yield member.client

    def _check_owners(self, cluster: Cluster, group_id: str) -> None:
        service = self.authority(cluster, group_id)
        if service is None:
            return
        # What a member was given before an unclean election of its group's partition, no later coordinator may know.
        since_ms = max((loss.end_ms for loss in self._losses.get(group_id, ())), default=TimeMs(-1))
        clients = [
            member.client
            for member in self._members
            if member.plan.spec.group_id == group_id
            and member.client is not None
            and member.is_alive
            and self._held.get(member.node, (None, since_ms))[1] >= since_ms
            and not self._is_ahead(group_id, member.client)
        ]
        disowned = {
            member.client.member_id: self._disowned.get(member.node, frozenset())
            for member in self._members
            if member.client is not None
        }
        self.note(cluster.now_ms, invariants.single_owners(service, clients, disowned), group_id)

    def _check_service(self, cluster: Cluster, hosted: HostedCoordinator, service: GroupService) -> None:
        known = self._known.get((hosted.broker, service.group_id))
        if known is None or known.checker.service is not service:
            known = self._known[hosted.broker, service.group_id] = _Known(ServiceChecker(service))
            self._note_ahead(service)
        if known.checker.has_changed():
            self.note(cluster.now_ms, known.checker.broken(), service.group_id)
            self._check_owners(cluster, service.group_id)
        self._check_forgotten(cluster, known, service)

    def _note_ahead(self, service: GroupService) -> None:
        """Note the members that a former coordinator gave a generation which it did not store.

        A classic group is stored when its leader has synced. A coordinator that loads it goes on from the generation
        before and gives its number again, so that who has it of the former one looks current, with what that one gave.
        """
        self._ahead[service.group_id] = {
            client.member_id: frozenset(client.subscriptions.owned)
            for client in self._clients_of(service.group_id)
            if invariants.is_ahead(service, client)
        }

    def _is_ahead(self, group_id: str, client: Client) -> bool:
        """Return whether a member may own what only a former coordinator gave it, until it owns something else."""
        return self._ahead.get(group_id, {}).get(client.member_id) == client.subscriptions.owned

    def _check_log(self, cluster: Cluster, hosted: HostedCoordinator, shard: Shard, service: GroupService) -> None:
        """Check G7: a coordinator shows the offsets that are committed in its partition, no more and no less."""
        led = hosted.host.led_log(shard.partition)
        if led is None:
            return
        stored: dict[TopicPartition, CommittedOffset] = {}
        for offset, record in records_of(led.log):
            key = read_key(record.key)
            if offset < led.log.high_watermark and isinstance(key, OffsetKey) and key.group_id == service.group_id:
                partition = TopicPartition(key.topic, key.partition)
                stored.pop(partition, None)
                if record.value is not None:
                    stored[partition] = read_committed_offset(record.value)
        self.note(cluster.now_ms, invariants.commits_fenced(stored, service), service.group_id)

    def _await_uncommitted(self, hosted: HostedCoordinator, shard: Shard) -> None:
        """Note up to where a coordinator has read above its high watermark; G7 is checked once that is committed."""
        led = hosted.host.led_log(shard.partition)
        if led is not None and led.log.high_watermark < led.log.log_end_offset:
            self._late[shard] = Offset(led.log.log_end_offset - 1), shard.request_count

    def _check_late(self, cluster: Cluster, hosted: HostedCoordinator, shard: Shard) -> None:
        """Check G7 at the first request after the high watermark has passed records that were not committed in time."""
        if shard not in self._late:
            return
        offset, count = self._late[shard]
        self._late[shard] = offset, shard.request_count
        led = hosted.host.led_log(shard.partition)
        # A request of a former connection does not reach the coordinator.
        if shard.request_count == count or shard.is_waiting or led is None or led.log.high_watermark <= offset:
            return
        del self._late[shard]
        for _, service in sorted(shard.services.items()):
            self._check_log(cluster, hosted, shard, service)

    def _check_forgotten(self, cluster: Cluster, known: _Known, service: GroupService) -> None:
        """Check G8: an offset that was deleted was old enough."""
        values = service.offsets.of_group(service.group_id)
        for partition in sorted(known.values.keys() - values.keys()):
            retention_ms = service.offsets.options.retention_ms
            found = invariants.premature_expiry(
                known.values[partition], partition.topic, service, retention_ms, service.classic.now_ms
            )
            self.note(cluster.now_ms, found, service.group_id)
        known.values = values

    def _account(
        self, cluster: Cluster, hosted: HostedCoordinator, shard: Shard, message: Message, out: Outbox
    ) -> None:
        """Check what a coordinator has just answered and done against the account of its groups (G11 to G13)."""
        now_ms, led = cluster.now_ms, hosted.host.led_log(shard.partition)
        if isinstance(message, GroupRequest) and message.group_id in shard.services:
            named = hosted.broker, (message.client, message.session, message.ticket)
            if named not in self._heard:
                self._heard.add(named)
                self._pending[named] = message.group_id, message.request
                if isinstance(message.request, OffsetFetchRequest) and shard in self._ends:
                    self._stable_ends[named] = self._ends[shard]
                self._account_of(shard.services[message.group_id], now_ms).asked(message.request, now_ms)
        for receiver, answer in out.sent:
            if isinstance(answer, GroupResponse):
                named = hosted.broker, (receiver.node, answer.session, answer.ticket)
                found, end_offset = self._pending.pop(named, None), self._stable_ends.pop(named, Offset(0))
                if found is not None and led is not None:
                    broken = invariants.stable_offsets(answer.response, end_offset, led.log.high_watermark)
                    self.note(now_ms, broken, found[0])
                if found is not None and found[0] in shard.services:
                    account = self._account_of(shard.services[found[0]], now_ms)
                    self.note(now_ms, account.answered(Answered(found[1], answer.response), now_ms), found[0])
        if isinstance(message, GroupRequest | ShardDue):
            for group_id, service in sorted(shard.services.items()):
                # A broker that has stood still takes requests of others before its groups' timers.
                is_awake = service.classic.now_ms == hosted.options.wall_clock_ms + now_ms
                if is_awake and (isinstance(message, ShardDue) or group_id == message.group_id):
                    self.note(now_ms, self._account_of(service, now_ms).after(now_ms), group_id)
        if led is not None:
            self._ends[shard] = led.log.log_end_offset

    def _account_of(self, service: GroupService, now_ms: TimeMs) -> GroupAccount:
        account = self._accounts.get(service)
        if account is None:
            account = self._accounts[service] = GroupAccount(service, self._given, now_ms)
        return account

    def _note_commit(self, hosted: HostedCoordinator, service: GroupService | None, asked: GroupRequest) -> None:
        """Remember a commit of a sender that is no current member, when it first arrives."""
        request = asked.request
        named = asked.client, asked.session, asked.ticket
        if isinstance(request, OffsetCommitRequest) and (hosted.broker, *named) not in self._arrived:
            self._arrived.add((hosted.broker, *named))
            if service is not None:
                self._fence.asked(named, service, request)

    def _check_fence(self, cluster: Cluster, out: Outbox) -> None:
        """Check G7: a commit is refused unless a current member sent it."""
        for receiver, answer in out.sent:
            if isinstance(answer, GroupResponse):
                named = receiver.node, answer.session, answer.ticket
                member_id = self._fence.accepted(named, answer.response)
                if member_id is not None:
                    group_id = self._group_of(receiver.node)
                    self.note(cluster.now_ms, [Broken("G7", f"a commit of {member_id} is taken")], group_id)
