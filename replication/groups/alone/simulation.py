"""Run a scenario's group on a cluster of one broker without faults.

Constraints: scenario time 0 is START_MS of the cluster, when its partitions have a leader. Members read a feed of a
constant rate instead of partitions, so that a long run costs no logs. ELR is off: a broker that was killed may lead its
only replica again.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from broker.entropy import SplitMix64, derive
from broker.group.members import InstanceId
from broker.group.service import GroupService
from broker.ids import BrokerId, Offset, PartitionId, TopicPartition
from broker.releases import NEWEST, Release
from broker.units import SECOND_MS, DurationMs, TimeMs
from replication.checkers import Finding
from replication.groups.alone.ledger import Ledger
from replication.groups.alone.scenario import MemberSpec, SingleGroupScenario
from replication.groups.client.messages import Note, Send
from replication.groups.client.options import ClientSpec
from replication.groups.client.protocols import GroupProtocol
from replication.groups.common import invariants
from replication.groups.common.coordinator import service_options
from replication.groups.common.events import Event, EventKind
from replication.groups.common.journal import Journal
from replication.groups.connection_messages import EventDue, GroupResponse
from replication.groups.extension import GroupsExtension
from replication.groups.layout import Layout
from replication.groups.member import Member
from replication.groups.offsets_log import read_groups
from replication.groups.plan import GroupsPlan, MemberPlan
from replication.roles.messages import Message, NodeId
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.rules.settings import PartitionSettings
from replication.rules.switches import CURRENT, without
from replication.simulation.cluster import Cluster
from replication.simulation.options import Options
from replication.simulation.trace import Trace

GROUP_ID: Final = "group"
START_MS: Final = 5_000
_BROKER: Final = BrokerId(0)
_LAYOUT: Final = Layout((("unread", 1),), 1)
_ASSIGNOR_STREAM: Final = 2
_TWIN: Final = "+"
_AT_ONCE: Final = DurationMs(0)


class Records:
    """Hold the records of each partition, which arrive at a constant rate from the partition's creation."""

    def __init__(self, records_per_second: int) -> None:
        self._rate = records_per_second
        self.created_ms: dict[TopicPartition, int] = {}

    def end_offset(self, partition: TopicPartition, now_ms: TimeMs) -> Offset:
        """Return the number of records that have arrived by `now_ms`."""
        return Offset((now_ms - self.created_ms[partition]) * self._rate // SECOND_MS)


class GroupSimulation(GroupsExtension):
    """Simulate one scenario with one protocol and a coordinator of one release."""

    def __init__(
        self, scenario: SingleGroupScenario, protocol: GroupProtocol, seed: int, release: Release = NEWEST
    ) -> None:
        scenario.check()
        self.scenario = scenario
        self.topics: dict[str, int] = {}
        self.records = Records(scenario.records_per_second)
        self.ledger = Ledger()
        self._service_settings = service_options(
            scenario.server_assignor(protocol),
            self.topics,
            derive(seed, _ASSIGNOR_STREAM),
            offsets_retention_ms=scenario.offsets_retention_ms,
            assignment_interval_ms=scenario.assignment_interval_ms,
            release=release,
        )
        twins = {event.target for event in scenario.events if event.kind is EventKind.TWIN}
        plans = [self._plan(member, protocol, mark) for member in scenario.members for mark in ("", _TWIN)]
        plan = GroupsPlan(
            layout=_LAYOUT,
            members=tuple(each for each in plans if each.spec.name.removesuffix(_TWIN) in twins or each in plans[::2]),
            load_ms_max=DurationMs(1),
            coordinator=self._service_settings,
        )
        super().__init__(_options(seed, scenario.duration_ms), plan)
        self.cluster = Cluster(self._options, Trace())
        self.join(self.cluster)
        self._by_name = {member.plan.spec.name: member for member in self.members}

    @property
    def now_ms(self) -> TimeMs:
        """Return the time of the scenario in ms."""
        return TimeMs(self.cluster.now_ms - START_MS)

    @property
    def service(self) -> GroupService | None:
        """Return the group's coordinator; None while there is none."""
        return self.checker.authority(self.cluster, GROUP_ID)

    def run(self) -> None:
        """Run all events up to the end of the scenario."""
        self.cluster.begin()
        self.cluster.run_until(TimeMs(START_MS - 1))
        for topic, count in self.scenario.topics:
            self._grow(topic, count, START_MS)
        for event in self.scenario.events:
            self.cluster.at(START_MS + event.at_ms, partial(self._happen, event))
        self.cluster.run_until(TimeMs(START_MS + self.scenario.duration_ms))
        self._check_stored()
        self.ledger.finish(self.now_ms)

    def alive(self) -> list[Member]:
        """Return the members whose process runs, by name."""
        return [member for _, member in sorted(self._by_name.items()) if member.is_alive]

    def found(self) -> tuple[Finding, ...]:
        """Return the broken invariants, by the time of the scenario."""
        return tuple(Finding(each.code, TimeMs(each.at_ms - START_MS), -1, each.what) for each in self.checker.findings)

    # What the cluster's members and events show. Commits of a day are too many for an order that explains each fetch.

    def sent(self, member: Member, send: Send, now_ms: TimeMs) -> None:
        """Take a member's report of what it owns."""
        self.note_report(member, send)

    def heard(self, member: Member, answer: GroupResponse, now_ms: TimeMs) -> None:
        """Count a response."""
        self.counts.hear(member.plan.spec.name, answer.response)

    def noted(self, member: Member, note: Note, now_ms: TimeMs) -> None:
        """Count one note of a consumer."""
        super().noted(member, note, now_ms)
        self.ledger.noted(member.plan.spec.name, note, self.now_ms)

    def _after(self, cluster: Cluster, node: NodeId, message: Message, out: Outbox) -> None:
        super()._after(cluster, node, message, out)
        service = self.service
        if service is not None:
            self.ledger.stepped(service, self.alive(), self.topics, self.now_ms)

    def _whole_lag(self, cluster: Cluster) -> int:
        return sum(
            self.records.end_offset(partition, cluster.now_ms) - self.counts.highs.get((GROUP_ID, partition), 0)
            for partition in self.records.created_ms
        )

    def _check_stored(self) -> None:
        """Check G10, unless an append is under way."""
        service, hosted = self.service, self.hosted_roles.get(_BROKER)
        if service is None or hosted is None:
            return
        shard = hosted.shards[_LAYOUT.of_group(GROUP_ID)]
        led = hosted.host.led_log(shard.partition)
        if led is None or shard.is_waiting:
            return
        reader = GroupService(GROUP_ID, self._service_settings, SplitMix64(0))
        stored = read_groups(Journal(self.topics), led.log).get(GROUP_ID)
        reader.load(() if stored is None else stored.entries(), service.classic.now_ms)
        self.checker.note(self.cluster.now_ms, invariants.stored_is_known(service, reader), GROUP_ID)

    # The scenario.

    def _plan(self, member: MemberSpec, protocol: GroupProtocol, mark: str) -> MemberPlan:
        scenario = self.scenario
        spec = ClientSpec(
            name=member.name + mark,
            group_id=GROUP_ID,
            topics=member.topics,
            assignors=scenario.client_assignors(protocol),
            instance_id=None if member.instance_id is None else InstanceId(member.instance_id),
            rack=member.rack,
            revoke_ms=member.revoke_ms,
            remembers_partitions=member.remembers_partitions,
            options=member.options(scenario.client),
        )
        return MemberPlan(spec, protocol, (), self.records, scenario.restart_ms)

    def _grow(self, topic: str, count: int, now_ms: int) -> None:
        from_count = self.topics.get(topic, 0)
        self.topics[topic] = max(count, from_count)
        for number in range(from_count, count):
            self.records.created_ms[TopicPartition(topic, PartitionId(number))] = now_ms

    def _happen(self, event: Event) -> None:
        now_ms = self.cluster.now_ms
        self.ledger.happened(event, self.now_ms)
        match event.kind:
            case EventKind.ADD_PARTITIONS:
                self._grow(event.target, event.count, now_ms)
            case EventKind.FAILOVER:
                self._fail_over(event.for_ms)
            case EventKind.START:
                self.cluster.at(now_ms, partial(self._start_if_gone, event.target))
            case EventKind.TWIN:
                self.cluster.at(now_ms, partial(self._start_if_gone, event.target + _TWIN))
            case EventKind.BOUNCE:
                if self._by_name[event.target].is_alive:
                    self._strike(event.target, EventKind.CLOSE)
                    self.cluster.at(now_ms + event.for_ms, partial(self._start_if_gone, event.target))
            case _:
                self._strike(event.target, event.kind, event.for_ms)

    def _strike(self, name: str, kind: EventKind, for_ms: DurationMs = _AT_ONCE) -> None:
        self.cluster.deliver(self._by_name[name].node, EventDue(Event(self.cluster.now_ms, kind, for_ms)))

    def _start_if_gone(self, name: str) -> None:
        if not self._by_name[name].is_alive:
            self._strike(name, EventKind.START)

    def _fail_over(self, for_ms: DurationMs) -> None:
        """Kill the coordinator's broker, and start it again after `for_ms`."""
        node = self.cluster.nodes[_BROKER]
        if node.role is not None:
            self._check_stored()
            node.kill()
        self.cluster.at(self.cluster.now_ms + for_ms, self._start_broker)

    def _start_broker(self) -> None:
        if self.cluster.nodes[_BROKER].role is None:
            self.cluster.start_broker(_BROKER)


def _options(seed: int, duration_ms: DurationMs) -> Options:
    settings = PartitionSettings(rules=without(CURRENT, "elr"), min_isr=1)
    return Options(
        seed=seed,
        brokers=1,
        racks=1,
        partitions=1,
        internal_partitions=1,
        replication_factor=1,
        producers=0,
        consumers=0,
        duration_ms=duration_ms,
        role_settings=RoleSettings(settings=settings),
    )
