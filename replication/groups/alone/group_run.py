"""Run a scenario's group on a cluster of one broker without faults, and report what its rebalances cost.

Scenario time 0 is START_MS of the cluster, when its partitions have a leader. Members read a feed of a constant rate
instead of partitions. ELR is off: a broker that was killed may lead its only replica again. Names of latencies and of
rebalance counts are those of Java's consumer metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from broker.entropy import derive
from broker.group.members import InstanceId
from broker.group.service import GroupService
from broker.ids import BrokerId, Offset, PartitionId, TopicPartition
from broker.releases import NEWEST, Release
from broker.units import SECOND_MS, DurationMs, TimeMs
from broker.wording import printable
from replication.checkers import Finding
from replication.groups.alone.ledger import Death, Ledger, OwnershipSpan
from replication.groups.alone.scenario import MemberSpec, SingleGroupScenario
from replication.groups.client.assigning import GroupProtocol
from replication.groups.client.link import ClientSpec
from replication.groups.client.messages import Note, Send
from replication.groups.connections import EventDue, GroupResponse
from replication.groups.extension import GroupsExtension
from replication.groups.member import Member
from replication.groups.plan import Event, EventKind, GroupsPlan, Layout, MemberPlan
from replication.groups.shard import service_options
from replication.roles.messages import Message, NodeId
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.rules.settings import PartitionSettings
from replication.rules.switches import CURRENT, without
from replication.simulation.cluster import Cluster
from replication.simulation.history import Trace
from replication.simulation.options import Options

GROUP_ID: Final = "group"
START_MS: Final = 5_000
_BROKER: Final = BrokerId(0)
_LAYOUT: Final = Layout((("unread", 1),), 1)
_ASSIGNOR_STREAM: Final = 2
_SECOND: Final = "+"
"""Suffix of a member's name for a second process with the same group.instance.id."""
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
        doubled = {event.target for event in scenario.events if event.kind is EventKind.TWIN}
        plans = (
            self._plan(member, protocol, mark)
            for member in scenario.members
            for mark in (("", _SECOND) if member.name in doubled else ("",))
        )
        plan = GroupsPlan(
            layout=_LAYOUT,
            members=tuple(plans),
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
        """Check that the coordinator knows the group that is stored (G10)."""
        service, hosted = self.service, self.hosted_roles.get(_BROKER)
        if service is not None and hosted is not None:
            self.checker.check_stored(self.cluster, hosted, hosted.shards[_LAYOUT.of_group(GROUP_ID)], service)

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
        match event.kind:
            case EventKind.ADD_PARTITIONS:
                self._grow(event.target, event.count, now_ms)
            case EventKind.FAILOVER:
                self._fail_over(event.for_ms)
            case EventKind.START:
                self.cluster.at(now_ms, partial(self._start_if_gone, event.target))
            case EventKind.TWIN:
                self.cluster.at(now_ms, partial(self._start_if_gone, event.target + _SECOND))
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


@attrs.frozen(kw_only=True)
class GroupRun:
    """Report one scenario run with one protocol; `figures` are the counts, by their names in JSON.

    Times are in ms; latencies are those of Java's consumer metrics, sums over partitions are named so.
    """

    scenario: SingleGroupScenario
    protocol: GroupProtocol
    assignor: str
    figures: Mapping[str, Any]
    deaths: tuple[Death, ...]
    findings: tuple[Finding, ...]
    spans: tuple[OwnershipSpan, ...]
    generations_ms: tuple[int, ...]

    @property
    def is_clean(self) -> bool:
        """Return whether every invariant held."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """Return the counts for JSON: all but the history."""
        return {
            "protocol": self.protocol.value,
            "assignor": self.assignor,
            **self.figures,
            "deaths": [attrs.asdict(death) for death in self.deaths],
            "findings": [text_of(finding) for finding in self.findings],
        }


def text_of(finding: Finding) -> str:
    """Return a finding as the command prints it."""
    return f"at {finding.at_ms:,} ms {finding.code}: {finding.what}"


def run_group(scenario: SingleGroupScenario, protocol: GroupProtocol, seed: int, release: Release = NEWEST) -> GroupRun:
    """Return the report of `scenario` with `protocol` in a release; equal arguments give equal reports.

    Raises UsageError for a scenario that cannot be run, and for an assignor that the protocol does not take.
    """
    simulation = GroupSimulation(scenario, protocol, seed, release)
    simulation.run()
    ledger, counts = simulation.ledger, simulation.counts
    return GroupRun(
        scenario=scenario,
        protocol=protocol,
        assignor=scenario.assignor_of(protocol),
        figures={
            "event_count": simulation.cluster.event_count,
            "rebalance_count": ledger.generation_count,
            "rebalance_latency_avg": round(counts.rebalance_ms / max(1, counts.rebalance_count), 1),
            "rebalance_latency_max": counts.rebalance_ms_max,
            "rebalance_latency_total": counts.rebalance_ms,
            "rebalance_total": counts.rebalance_count,
            "failed_rebalance_total": counts.failed_rebalance_count,
            "unowned_ms": sum(ledger.unowned_ms.values()),
            "unowned_ms_max": max(ledger.unowned_ms.values(), default=0),
            "shared_ms": sum(ledger.shared_ms.values()),
            "move_count": ledger.move_count,
            "least_move_count": ledger.least_move_count,
            "return_count": ledger.return_count,
            "read_count": counts.read_count,
            "duplicate_count": counts.duplicate_count,
            "lag_max": counts.lag_max,
            "commits": {error.name: count for error, count in sorted(counts.commits.items())},
            "departures": dict(sorted(ledger.departures.items())),
            "settled_ms": ledger.settled_ms,
        },
        deaths=tuple(ledger.deaths),
        findings=simulation.found(),
        spans=tuple(ledger.spans),
        generations_ms=tuple(ledger.generations_ms),
    )


_COMMITS: Final = {"NONE": "accepted", "REQUEST_TIMED_OUT": "lost on the way"}
_ROWS: Final = {
    "rebalance_count": "rebalances (generations, epochs)",
    "rebalance_latency_avg": "rebalance-latency-avg ms",
    "rebalance_latency_max": "rebalance-latency-max ms",
    "rebalance_latency_total": "rebalance-latency-total ms",
    "rebalance_total": "rebalance-total",
    "failed_rebalance_total": "failed-rebalance-total",
    "unowned_ms": "partitions unowned s",
    "unowned_ms_max": "unowned s, worst partition",
    "shared_ms": "claimed by two (zombies) s",
    "move_count": "moves",
    "least_move_count": "moves, least possible",
    "return_count": "given up and got back",
    "read_count": "records read",
    "duplicate_count": "of these read again",
    "lag_max": "lag max",
}
"""The lines of the table, by the figure that each shows."""


def table_rows(group_runs: Sequence[GroupRun]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the rows of the table: a name, and a cell for each run."""
    for name, title in _ROWS.items():
        found = [group_run.figures[name] for group_run in group_runs]
        is_time = name in ("unowned_ms", "unowned_ms_max", "shared_ms")
        yield title, tuple(f"{each / SECOND_MS:,.1f}" if is_time else f"{each:,}" for each in found)
    for kind, name in (("commits", "commits"), ("gone", "departures")):
        counters = [group_run.figures[name] for group_run in group_runs]
        for each in sorted({each for counter in counters for each in counter}):
            yield f"{kind}: {_COMMITS.get(each, each)}", tuple(f"{counter.get(each, 0):,}" for counter in counters)


def lines(group_runs: Sequence[GroupRun]) -> Iterator[str]:
    """Yield the applications that ended by an error, and every invariant that was broken."""
    for group_run in group_runs:
        for death in group_run.deaths:
            yield f"{group_run.protocol.value}: at {death.at_ms:,} ms {printable(death.text)}"
    for group_run in group_runs:
        for finding in group_run.findings:
            yield f"{group_run.protocol.value}: BROKEN {printable(text_of(finding))}"
    if all(group_run.is_clean for group_run in group_runs):
        yield "G1 to G9 hold"
