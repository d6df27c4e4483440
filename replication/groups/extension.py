"""Put groups into a run of the cluster: coordinators on brokers, members as clients, checks and counts.

Constraints: it is an extension of a run (`replication.simulation.run.Extension`). It adds to the trace the events of
members, and the coordinators that begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from broker.clock import Clock
from broker.entropy import SplitMix64, derive
from broker.error_codes import ErrorCode
from broker.group.classic import Ticket
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from broker.group.service import GroupService, ServiceOptions
from broker.ids import BrokerId, TopicPartition, partition_id
from broker.releases import NEWEST, Release
from broker.units import TimeMs
from replication.checkers import Finding
from replication.groups.checker import GroupChecker, given
from replication.groups.client.assigning import DEFAULT_ASSIGNORS, GroupProtocol
from replication.groups.client.messages import Died, Note, Send
from replication.groups.connections import GroupResponse, ShardRead
from replication.groups.history import CommitHistory, CommitMade, GroupCounts, Loss, OffsetShown
from replication.groups.hosted_coordinator import HostedCoordinator, HostedRoleOptions
from replication.groups.invariants import Broken
from replication.groups.member import Member
from replication.groups.plan import GroupsPlan, MemberPlan, draw_plan
from replication.groups.shard import service_options
from replication.roles.hosted import Host
from replication.roles.messages import CONTROLLER, Message, NodeId, PartitionRecord
from replication.roles.outbox import Outbox
from replication.simulation.cluster import Cluster
from replication.simulation.history import Trace
from replication.simulation.options import Options

_HOSTED_STREAM: Final = 7
_MEMBER_STREAM: Final = 8
_ASSIGNOR_STREAM: Final = 9
_SAMPLE_MS: Final = 1_000
_Asked = tuple[NodeId, int, Ticket]
"""A request: who asked, in which session, by which ticket."""


class GroupsExtension:
    """Add groups to one run; `counts` counts, `checker` and `history` find breaches."""

    def __init__(self, options: Options, plan: GroupsPlan) -> None:
        self.plan = plan
        self.counts = GroupCounts()
        self.history = CommitHistory()
        self.members: list[Member] = []
        self.hosted_roles: dict[BrokerId, HostedCoordinator] = {}
        self.checker = GroupChecker(plan.layout, self.members, self.hosted_roles, self.history.losses)
        self._options = options
        self._hosted_role_count = 0
        self._sampled_ms = 0
        self._records_seen = 0
        self._deposed: list[tuple[PartitionRecord, list[Loss]]] = []
        """The unclean elections of which a former leader has not heard yet, with the losses that go on."""
        self._commits: dict[_Asked, list[CommitMade]] = {}
        self._fetches: dict[_Asked, tuple[OffsetFetchRequest, TimeMs]] = {}
        self._trace: Trace | None = None

    @classmethod
    def drawn(cls, options: Options, group_count: int, release: Release = NEWEST) -> GroupsExtension:
        """Return `group_count` groups, drawn from the seed, with coordinators of a release."""
        return cls(options, draw_plan(options, group_count, release))

    # What a run calls.

    def join(self, cluster: Cluster) -> None:
        """Add the coordinators and members to a cluster, and watch its events."""
        self._trace = cluster.trace
        cluster.host(lambda host: self._new_hosted(host, cluster.clock))
        for plan in self.plan.members:
            cluster.join(partial(self._new_member, plan))
        cluster.watches.append(self._after)

    def missing(self, cluster: Cluster) -> str | None:
        """Return the reason why a group has not recovered yet (L8); None if all have."""
        for group_id in self.plan.group_ids:
            service = self.checker.authority(cluster, group_id)
            if service is None:
                return f"{group_id} has no coordinator (L8)"
            members = [each for each in self.members if each.plan.spec.group_id == group_id and each.plan.stays]
            missing = _unsettled(self.plan, service, members) or self._lag(cluster, service, members)
            if missing is not None:
                return f"{group_id}: {missing} (L8)"
        return None

    def findings(self, cluster: Cluster) -> Sequence[Finding]:
        """Return the breaches that were found."""
        self.checker.check_all(cluster)
        for each in self.history.impossible():
            (group_id, partition), shown = each.shown.key, each.shown.offset
            what = f"{each.shown.member} was shown {shown} for {partition}, but {each.why}"
            self.checker.note(each.shown.end_ms, [Broken("G7", what)], group_id)
        return tuple(self.checker.findings)

    # What members tell.

    def acted(self, member: Member, text: str, now_ms: TimeMs) -> None:
        """Write an event of a member to the trace."""
        assert self._trace is not None
        self._trace.line(now_ms, f"{member.plan.spec.name} {text}")

    def sent(self, member: Member, send: Send, now_ms: TimeMs) -> None:
        """Record a member's commit, offset fetch, or report of what it owns."""
        request, spec = send.request, member.plan.spec
        asked = member.node, member.session, send.ticket
        if isinstance(request, OffsetCommitRequest):
            made = [
                CommitMade((spec.group_id, each.partition), each.offset, spec.name, now_ms) for each in request.commits
            ]
            self._commits[asked] = made
            self.history.commits += made
        elif isinstance(request, OffsetFetchRequest):
            self._fetches[asked] = request, now_ms
        self.note_report(member, send)

    def note_report(self, member: Member, send: Send) -> None:
        """Pass a member's report of what it owns to the checker."""
        if isinstance(send.request, ConsumerGroupHeartbeatRequest) and send.request.owned is not None:
            self.checker.reported(member, send.request.owned)

    def heard(self, member: Member, answer: GroupResponse, now_ms: TimeMs) -> None:
        """Add the response to a commit or an offset fetch to the history."""
        asked, spec = (member.node, answer.session, answer.ticket), member.plan.spec
        self.counts.hear(spec.name, answer.response)
        if isinstance(answer.response, OffsetCommitResponse):
            for commit, error in zip(self._commits.pop(asked), answer.response.errors, strict=True):
                commit.answer(error, now_ms)
        elif isinstance(answer.response, OffsetFetchResponse):
            request, start_ms = self._fetches.pop(asked)
            if answer.response.error is ErrorCode.NONE:
                for partition, offset in zip(request.partitions, answer.response.offsets, strict=True):
                    key = spec.group_id, partition
                    self.history.shown.append(OffsetShown(key, offset, spec.name, start_ms, now_ms))

    def noted(self, member: Member, note: Note, now_ms: TimeMs) -> None:
        """Count one note of a consumer."""
        spec = member.plan.spec
        broken = self.counts.note(spec.group_id, note)
        if broken:
            self.checker.note(now_ms, [Broken("GS", broken)], spec.group_id)
        if isinstance(note, Died):
            self.acted(member, f"ends: {note.reason}", now_ms)

    # Making, watching.

    def _new_hosted(self, host: Host, clock: Clock) -> HostedCoordinator:
        """Return the coordinator of a broker that starts, with its own random generator."""
        self._hosted_role_count += 1
        entropy = SplitMix64(derive(self._options.seed, _HOSTED_STREAM, self._hosted_role_count))
        options = HostedRoleOptions(
            layout=self.plan.layout,
            service=self._service_options(),
            load_ms_max=self.plan.load_ms_max,
            wall_clock_ms=self._options.wall_clock_ms,
        )
        hosted = self.hosted_roles[host.broker] = HostedCoordinator(host, options, clock, entropy)
        return hosted

    def _service_options(self) -> ServiceOptions:
        if self.plan.coordinator is not None:
            return self.plan.coordinator
        assignor, seed = DEFAULT_ASSIGNORS[GroupProtocol.CONSUMER], derive(self._options.seed, _ASSIGNOR_STREAM)
        return service_options(assignor, self.plan.layout.counts, seed, release=self.plan.release)

    def _new_member(self, plan: MemberPlan, node: NodeId) -> Member:
        entropy = SplitMix64(derive(self._options.seed, _MEMBER_STREAM, node - CONTROLLER))
        member = Member(node, plan, (self._options, self.plan.layout), entropy, self)
        self.members.append(member)
        return member

    def _after(self, cluster: Cluster, node: NodeId, message: Message, out: Outbox) -> None:
        self.checker.after(cluster, node, message, out)
        if node == CONTROLLER:
            self._note_unclean(cluster)
        if self._deposed:
            self._note_deposed(cluster)
        if isinstance(message, ShardRead) and self.hosted_roles[BrokerId(node)].has_read(message):
            self.counts.load_count += 1
            cluster.trace.line(cluster.now_ms, f"broker {node} coordinates the groups of partition {message.partition}")
        if cluster.now_ms - self._sampled_ms >= _SAMPLE_MS:
            self._sampled_ms = cluster.now_ms
            self.counts.lag_max = max(self.counts.lag_max, self._whole_lag(cluster))

    def _note_unclean(self, cluster: Cluster) -> None:
        """Note the groups that may have lost acknowledged commits by an unclean election."""
        log = cluster.controller.log
        for record in log[self._records_seen :]:
            if isinstance(record, PartitionRecord) and record.state.recovering and record.state.has_leader:
                losses = []
                for group_id in self.plan.group_ids:
                    if self.plan.layout.of_group(group_id) == record.partition:
                        losses.append(Loss(cluster.now_ms, cluster.now_ms))
                        self.history.losses.setdefault(group_id, []).append(losses[-1])
                self._deposed += [(record, losses)] if losses else []
        self._records_seen = len(log)

    def _note_deposed(self, cluster: Cluster) -> None:
        """Lengthen the losses of elections of which a former leader, which still takes commits, has not heard."""
        going_on = []
        for record, losses in self._deposed:
            if any(_leads_before(cluster, broker, record) for broker in self.hosted_roles):
                going_on.append((record, losses))
            for loss in losses:
                loss.end_ms = cluster.now_ms
        self._deposed = going_on

    def _whole_lag(self, cluster: Cluster) -> int:
        ends = {partition: _end_of(cluster, self.plan.layout.number_of(partition)) for partition in self._partitions()}
        wanted = {(member.plan.spec.group_id, topic) for member in self.members for topic in member.plan.spec.topics}
        return sum(
            max(ends[partition] - self.counts.highs.get((group_id, partition), 0), 0)
            for partition in ends
            for group_id, topic in sorted(wanted)
            if topic == partition.topic
        )

    def _partitions(self) -> list[TopicPartition]:
        return [
            TopicPartition(name, partition_id(number))
            for name, count in self.plan.layout.topics
            for number in range(count)
        ]

    def _lag(self, cluster: Cluster, service: GroupService, members: list[Member]) -> str | None:
        """Return the first partition whose committed records the group has not committed; None for none."""
        topics = {topic for member in members for topic in member.plan.spec.topics}
        for partition in self._partitions():
            end = _end_of(cluster, self.plan.layout.number_of(partition))
            value = service.offsets.fetch(service.group_id, partition)
            stands = 0 if value is None else value.offset
            if partition.topic in topics and stands < end:
                return f"of {partition} {end} records are committed, the group stands at {stands}"
        return None


def _leads_before(cluster: Cluster, broker: BrokerId, record: PartitionRecord) -> bool:
    """Return whether a broker leads a partition, in its own view, by an epoch before that of a record."""
    role = cluster.nodes[broker].role
    known = None if role is None else role.image.partitions.get(record.partition)
    return known is not None and known.leader == broker and known.leader_epoch < record.state.leader_epoch


def _unsettled(plan: GroupsPlan, service: GroupService, members: list[Member]) -> str | None:
    """Return why a group is not stable with all its members at their assignment; None if it is."""
    shares = given(service)
    if shares is None:
        return "it is not stable"
    for member in members:
        client, name = member.client, member.plan.spec.name
        if client is None or not member.is_alive or member.is_frozen:
            return f"{name} is not there"
        if shares.get(client.member_id) != client.subscriptions.owned:
            return f"{name} does not own what it was given"
    if len(shares) != len(members):
        return f"it has {len(shares)} members, {len(members)} are there"
    counts, topics = plan.layout.counts, {topic for member in members for topic in member.plan.spec.topics}
    if sum(map(len, shares.values())) != sum(counts[topic] for topic in sorted(topics)):
        return "not every partition is given to somebody"
    return None


def _end_of(cluster: Cluster, number: int) -> int:
    """Return the high watermark of a partition's leader; 0 while it has none."""
    log = cluster.leader_log(number)
    return 0 if log is None else log.log.high_watermark
