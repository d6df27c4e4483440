"""Run two clusters and a mirror on one clock, from the seed to the verdict.

Constraints: the mirror acts on the clusters by messages only. Duplicates are allowed after a failure, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import attrs

from broker.entropy import SplitMix64, derive
from broker.ids import Offset, PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.checkers import Finding
from replication.mirror.checks import (
    Copy,
    Failover,
    FailoverState,
    MirrorFinding,
    check_checkpoints,
    check_copy,
    check_failovers,
    check_syncs,
    failovers_of,
)
from replication.mirror.committed import end_of, records_of, values_of
from replication.mirror.layout import TopicLayout
from replication.mirror.options import SOURCE_INTERNAL, TARGET_INTERNAL, TOPIC, MirrorOptions
from replication.mirror.partition_clients import ClusterConnection, PartitionReader, PartitionWriter, WorkDue
from replication.mirror.policy import HEARTBEATS
from replication.mirror.process import (
    Groups,
    MirroredCluster,
    MirrorEnvironment,
    MirrorProcess,
    heartbeat_batch,
)
from replication.mirror.records import read_offset_sync
from replication.roles.messages import CONTROLLER, CreateTopic, NodeId
from replication.simulation.cluster import Cluster, replicas_of
from replication.simulation.liveness import settled
from replication.simulation.run import Outcome, Simulation
from replication.simulation.trace import LineSink, Trace, discard_line

GROUP: Final = "readers"
_SIDE_STREAM: Final = 104
_SETTLE_STEP_MS: Final = 1_000


@attrs.frozen(kw_only=True)
class MirrorOutcome:
    """Hold the result of a mirrored run."""

    source: Outcome
    target: Outcome
    findings: tuple[MirrorFinding | Finding, ...]
    copies: tuple[Copy, ...]
    target_topics: tuple[str, ...]
    failovers: tuple[Failover, ...]
    checkpoint_count: int
    sync_count: int
    digest: str
    lines: tuple[str, ...]


class _ConnectionExtension:
    """Add connections to a cluster before it begins."""

    def __init__(self, count: int, seed: int) -> None:
        self.sides: list[ClusterConnection] = []
        self._count = count
        self._seed = seed

    def join(self, cluster: Cluster) -> None:
        for place in range(self._count):
            cluster.join(partial(self._side, cluster, place))

    def _side(self, cluster: Cluster, place: int, node: NodeId) -> ClusterConnection:
        entropy = SplitMix64(derive(self._seed, _SIDE_STREAM, place))
        self.sides.append(ClusterConnection(node, cluster.options, entropy, lambda: cluster.deliver(node, WorkDue())))
        return self.sides[-1]

    def missing(self, cluster: Cluster) -> str | None:
        return None

    def findings(self, cluster: Cluster) -> Sequence[Finding]:
        return ()


class MirrorRun:
    """Run two clusters with a mirror, a heartbeat connector and a group between them."""

    def __init__(self, options: MirrorOptions, on_line: LineSink = discard_line) -> None:
        self.options = options
        self.trace = Trace(on_line)
        at_source, at_target = (
            _ConnectionExtension(2, options.source.seed),
            _ConnectionExtension(1, options.target.seed),
        )
        self.source = Simulation(
            options.source, options.source_plan, on_line=self._line_sink("source"), extension=at_source
        )
        self.target = Simulation(
            options.target, options.target_plan, on_line=self._line_sink("target"), extension=at_target
        )
        topics = ((TOPIC, options.source.partitions), (HEARTBEATS, 1))
        self.source_end = MirroredCluster(
            at_source.sides[0], TopicLayout(topics, SOURCE_INTERNAL, _creator(self.source.cluster)), Groups()
        )
        # The partitions of the copies are made when the mirror asks for them.
        target_layout = TopicLayout((), ("offsets", *TARGET_INTERNAL), _creator(self.target.cluster))
        self.target_end = MirroredCluster(at_target.sides[0], target_layout, Groups())
        environment = MirrorEnvironment(
            source=self.source_end,
            target=self.target_end,
            now_ms=lambda: self.source.cluster.now_ms,
            later=self._later,
            log_line=lambda text: self.trace.line(self.source.cluster.now_ms, text),
        )
        self.mirror = MirrorProcess(options.settings, environment)
        self._join_group(at_source.sides[1])
        self._join_heartbeats(at_source.sides[1])
        for death in options.deaths:
            self.source.cluster.at(death.at_ms, self.mirror.kill)
            self.source.cluster.at(death.at_ms + death.for_ms, self.mirror.start)
        if options.failover_at_ms is not None:
            self.source.cluster.at(options.failover_at_ms, self._note_failover)
        self._failover_states: list[FailoverState] = []
        self.mirror.start()

    def _line_sink(self, name: str) -> LineSink:
        def on_line(line: str) -> None:
            at_ms, _, text = line.strip().partition(" ms  ")
            self.trace.line(TimeMs(int(at_ms)), f"{name}: {text}")

        return on_line

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        cluster = self.source.cluster
        cluster.at(cluster.now_ms + delay_ms, action)

    def _join_group(self, side: ClusterConnection) -> None:
        """Let a group read the topic at the source and commit its position at intervals."""
        layout = self.source_end.layout
        readers = {
            partition: PartitionReader(side, layout.number(partition), Offset(0), lambda records: None)
            for partition in layout.partitions()
            if partition.topic == TOPIC
        }
        for reader in readers.values():
            side.add(reader)

        def commit() -> None:
            self.source_end.groups.commit(GROUP, {each: reader.position for each, reader in readers.items()})
            self._later(self.options.commit_group_ms, commit)

        self._later(self.options.commit_group_ms, commit)

    def _join_heartbeats(self, side: ClusterConnection) -> None:
        settings = self.options.settings
        number = self.source_end.layout.number(TopicPartition(HEARTBEATS, PartitionId(0)))
        writer = PartitionWriter[None](side, number, lambda _, offset: None)
        side.add(writer)

        def beat() -> None:
            cluster = self.source.cluster
            if cluster.now_ms >= self.options.source.duration_ms:
                return
            if writer.is_idle:
                writer.write(heartbeat_batch(settings, cluster.now_ms), None)
            self._later(settings.heartbeat_ms, beat)

        self._later(settings.heartbeat_ms, beat)

    # Time.

    def run_until(self, end_ms: int) -> None:
        """Run both clusters up to and including `end_ms`."""
        for now_ms in range(self.source.cluster.now_ms + 1, end_ms + 1):
            self.source.run_until(now_ms)
            self.target.run_until(now_ms)

    def finish(self) -> MirrorOutcome:
        """Run to the end of the faults, heal, let the mirror copy the rest, and check the copy."""
        options = self.options
        failed: list[MirrorFinding | Finding] = []
        try:
            self.run_until(options.source.duration_ms)
            self.source.fault_injector.heal()
            self.target.fault_injector.heal()
            self.source.cluster.stop_writing()
            if missing := self._settle():
                failed.append(Finding("L", self.source.cluster.now_ms, -1, missing))
        except AssertionError as error:
            failed.append(Finding("A", self.source.cluster.now_ms, -1, f"{type(error).__name__}: {error}"))
        self._note_failover()
        source, target = self.source.finish(), self.target.finish()
        return self._judged(source, target, failed)

    def _settle(self) -> str | None:
        """Run until everything is copied; return what is missing when the time is over."""
        options, cluster = self.options, self.source.cluster
        end_ms = options.source.duration_ms + max(options.source.heal_ms_max, options.target.heal_ms_max)
        missing: str | None = "nothing was looked at"
        while missing is not None and cluster.now_ms < end_ms:
            self.run_until(cluster.now_ms + _SETTLE_STEP_MS)
            missing = self._missing()
        if missing is None:
            # Once more everything that is done now and then: offsets committed, checkpoints, offsets of groups.
            settings = options.settings
            self.run_until(cluster.now_ms + 3 * max(settings.commit_ms, settings.checkpoint_ms))
            missing = self._missing()
        return missing

    def _missing(self) -> str | None:
        for name, simulation in (("source", self.source), ("target", self.target)):
            if what := settled(simulation.cluster):
                return f"{name}: {what}"
        if not self.mirror.is_drained:
            return "the mirror has not copied everything"
        wanted = self.source_end.layout.counts()[TOPIC] + 1
        if len(self.mirror.readers) < wanted:
            return f"the mirror copies {len(self.mirror.readers)} partitions of {wanted}"
        for partition, reader in self.mirror.readers.items():
            if reader.position < end_of(self.source.cluster, self.source_end.layout.number(partition)):
                return f"the mirror has not read {partition} to its end"
        return None

    # Judgement.

    def _judged(self, source: Outcome, target: Outcome, failed: list[MirrorFinding | Finding]) -> MirrorOutcome:
        findings: list[MirrorFinding | Finding] = [*failed, *source.findings, *target.findings]
        copies = self._copies()
        syncs = [
            read_offset_sync(record.key or b"", record.value or b"")
            for record in records_of(self.source.cluster, self.source_end.layout.internal("syncs"))
        ]
        for copy in copies.values():
            findings += check_copy(copy, is_once=not self.options.has_failures)
            findings += check_syncs(copy, syncs)
        findings += check_checkpoints(copies, self.mirror.checkpoints)
        failovers = tuple(each for noted in self._failover_states for each in failovers_of(noted, copies))
        last_syncs = {sync.source_partition: sync for sync in syncs}
        findings += check_failovers(failovers, copies, self.options.settings.offset_lag_max, last_syncs)
        for finding in findings:
            self.trace.line(self.source.cluster.now_ms, str(finding))
        return MirrorOutcome(
            source=source,
            target=target,
            findings=tuple(findings),
            copies=tuple(copies.values()),
            target_topics=tuple(self.target_end.layout.counts()),
            failovers=failovers,
            checkpoint_count=len(self.mirror.checkpoints),
            sync_count=len(syncs),
            digest=self.trace.digest,
            lines=tuple(self.trace.lines),
        )

    def _copies(self) -> dict[TopicPartition, Copy]:
        """Return the records of both sides of each copied partition, by the target's partition."""
        copies = {}
        for partition in sorted(self.mirror.readers):
            renamed = self.mirror.renamed(partition)
            at_source, at_target = self.source_end.layout.number(partition), self.target_end.layout.number(renamed)
            at_both = values_of(self.source.cluster, at_source), values_of(self.target.cluster, at_target)
            copies[renamed] = Copy(partition, *at_both)
        return copies

    def _note_failover(self) -> None:
        committed = dict(self.source_end.groups.committed.get(GROUP, {}))
        translated = dict(self.target_end.groups.committed.get(GROUP, {}))
        renamed = {partition: self.mirror.renamed(partition) for partition in committed}
        known = [each for each in sorted(committed) if renamed[each] in self.target_end.layout.partitions()]
        self._failover_states.append(
            FailoverState(
                self.source.cluster.now_ms,
                committed,
                translated,
                {each: end_of(self.source.cluster, self.source_end.layout.number(each)) for each in known},
                {each: end_of(self.target.cluster, self.target_end.layout.number(renamed[each])) for each in known},
                frozenset(self.mirror.synced),
            )
        )


def run_mirror(options: MirrorOptions, on_line: LineSink = discard_line) -> MirrorOutcome:
    """Run two clusters and a mirror to the end; raise UsageError under -O."""
    return MirrorRun(options, on_line).finish()


def _creator(cluster: Cluster) -> Callable[[int], None]:
    """Return a function that creates a partition in a cluster and repeats the request until it exists."""

    def create(number: int) -> None:
        if number not in cluster.controller.image.partitions:
            cluster.deliver(CONTROLLER, CreateTopic(number, replicas_of(number, cluster.options)))
            cluster.at(cluster.now_ms + DurationMs(1_000), lambda: create(number))

    return create
