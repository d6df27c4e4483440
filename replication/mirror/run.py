"""Run two clusters and a mirror on one clock, from the seed to the verdict.

Constraints: both clusters are strict, so that every acknowledged record of the source can be copied. The mirror writes
by messages only. Duplicates are allowed after a failure, and counted.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.entropy import derive
from broker.ids import Offset, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.checkers import Finding
from replication.mirror.checks import Copy, Failover, MirrorFinding, check_copy, check_failover, check_groups
from replication.mirror.cluster import MirroredCluster
from replication.mirror.process import CHECKPOINTS, OFFSETS, SYNCS, MirrorProcess, MirrorSettings
from replication.mirror.records import read_offset_sync
from replication.simulation.fault import Fault
from replication.simulation.history import LineSink, Trace, discard_line
from replication.simulation.liveness import settled
from replication.simulation.options import FaultKind, Options, quiet
from replication.simulation.run import Simulation

GROUP: Final = "readers"
TOPIC: Final = "orders"
_SOURCE_STREAM: Final = 101
_TARGET_STREAM: Final = 102
_SETTLE_STEP_MS: Final = 1_000


@attrs.frozen(kw_only=True)
class MirrorOptions:
    """Hold the options of one mirrored run: two clusters of one duration, the flow between them, and the failures."""

    source: Options
    target: Options
    settings: MirrorSettings = attrs.field(factory=MirrorSettings)
    deaths: tuple[Fault, ...] = ()
    """When the mirror's process is killed, and for how long."""
    source_plan: tuple[Fault, ...] = ()
    target_plan: tuple[Fault, ...] = ()
    failover_at_ms: TimeMs | None = None
    """The time of a failover whose cost is computed, beside the one at the end."""
    commit_group_ms: DurationMs = attrs.field(default=DurationMs(2_000))
    """The interval in ms at which the source's group commits its position."""

    @property
    def has_failures(self) -> bool:
        """Return whether anything fails, so that records may be copied twice."""
        return bool(self.deaths or self.source_plan or self.target_plan)


def without_failures(seed: int, duration_ms: DurationMs) -> MirrorOptions:
    """Return a pair of clusters without failures, with the internal partitions needed by the mirror."""
    source = attrs.evolve(quiet(derive(seed, _SOURCE_STREAM), duration_ms), produce_ms=DurationMs(100))
    target = quiet(derive(seed, _TARGET_STREAM), duration_ms)
    return MirrorOptions(
        # The offset syncs at the source; Connect's offsets and the checkpoints at the target.
        source=attrs.evolve(source, internal_partitions=2, consumers=0),
        target=attrs.evolve(target, partitions=1, internal_partitions=1, producers=0, consumers=0),
    )


def with_failures(seed: int, duration_ms: DurationMs) -> MirrorOptions:
    """Return the scenario of the command: a leader dies on each side, the mirror dies, and a group fails over.

    The source's leader dies at a tenth, the target's during a write at three, the mirror at six and the failover is at
    nine tenths of the run.
    """

    def at_ms(tenths: int) -> TimeMs:
        return TimeMs(duration_ms * tenths // 10)

    down_ms = DurationMs(duration_ms // 5)
    return attrs.evolve(
        without_failures(seed, duration_ms),
        source_plan=(Fault(at_ms(1), FaultKind.KILL, 0, down_ms),),
        target_plan=(Fault(at_ms(3), FaultKind.CRASH_AT_COMMIT, 0, down_ms),),
        deaths=(Fault(at_ms(6), FaultKind.KILL, 0, DurationMs(duration_ms // 10)),),
        failover_at_ms=at_ms(9),
    )


@attrs.frozen(kw_only=True)
class MirrorOutcome:
    """Hold the result of a mirrored run."""

    findings: tuple[MirrorFinding | Finding, ...]
    copies: tuple[Copy, ...]
    target_topics: tuple[str, ...]
    failovers: tuple[Failover, ...]
    checkpoint_count: int
    sync_count: int
    digest: str


class MirrorRun:
    """Run two clusters with a mirror and a group between them."""

    def __init__(self, options: MirrorOptions, on_line: LineSink = discard_line) -> None:
        self.options = options
        self.trace = Trace(on_line)
        topics = ((TOPIC, options.source.partitions),)
        self.source = MirroredCluster(options.source, topics, (SYNCS.topic,))
        # The partitions of the copies are made when the mirror asks for them.
        self.target = MirroredCluster(options.target, (), (OFFSETS.topic, CHECKPOINTS.topic))
        self._simulations = (
            self._simulation("source", options.source, options.source_plan, self.source),
            self._simulation("target", options.target, options.target_plan, self.target),
        )
        self.mirror = MirrorProcess(options.settings, self.source, self.target, self._log_line)
        cluster = self.source.cluster
        for death in options.deaths:
            cluster.at(death.start_ms, self.mirror.kill)
            cluster.at(death.start_ms + death.duration_ms, self.mirror.start)
        if options.failover_at_ms is not None:
            cluster.at(options.failover_at_ms, self._note_failover)
        self._failovers: list[dict[TopicPartition, Failover]] = []
        self.source.every(options.commit_group_ms, self._commit_group)
        self.mirror.start()

    def _simulation(self, name: str, options: Options, plan: tuple[Fault, ...], side: MirroredCluster) -> Simulation:
        def on_line(line: str) -> None:
            at_ms, _, text = line.strip().partition(" ms  ")
            self.trace.line(TimeMs(int(at_ms)), f"{name}: {text}")

        return Simulation(options, plan, on_line=on_line, extension=side)

    def _log_line(self, text: str) -> None:
        self.trace.line(self.source.cluster.now_ms, text)

    def _commit_group(self) -> None:
        """Commit the position of a group that has read the source to its end."""
        ends = {each: self.source.end(each) for each in self.source.partitions() if each.topic == TOPIC}
        known = {each: end for each, end in ends.items() if end is not None}
        self.source.groups.setdefault(GROUP, {}).update(known)

    # Time.

    def run_until(self, end_ms: int) -> None:
        """Run both clusters up to and including `end_ms`."""
        for now_ms in range(self.source.cluster.now_ms + 1, end_ms + 1):
            for simulation in self._simulations:
                simulation.run_until(now_ms)

    def finish(self) -> MirrorOutcome:
        """Run to the end of the faults, heal, let the mirror copy the rest, and check the copy."""
        found: list[MirrorFinding | Finding] = []
        try:
            self.run_until(self.options.source.duration_ms)
            for simulation in self._simulations:
                simulation.fault_injector.heal()
            self.source.cluster.stop_writing()
            if missing := self._settle():
                found.append(Finding("L", self.source.cluster.now_ms, -1, missing))
        except AssertionError as error:
            found.append(Finding("A", self.source.cluster.now_ms, -1, f"{type(error).__name__}: {error}"))
        self._note_failover()
        for simulation in self._simulations:
            found += simulation.finish().findings
        return self._outcome(found)

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
            self.run_until(cluster.now_ms + 3 * max(options.settings.commit_ms, options.settings.checkpoint_ms))
            missing = self._missing()
        return missing

    def _missing(self) -> str | None:
        for name, side in (("source", self.source), ("target", self.target)):
            if what := settled(side.cluster):
                return f"{name}: {what}"
        return self.mirror.missing()

    # The verdict.

    def _note_failover(self) -> None:
        """Note where the group stands, and what of the source is copied, by the target's partition."""
        translated = self.target.groups.get(GROUP, {})
        self._failovers.append(
            {
                renamed: Failover(
                    at_ms=self.source.cluster.now_ms,
                    partition=partition,
                    upstream=upstream,
                    downstream=translated[renamed],
                    source_end=self.source.end(partition) or Offset(0),
                    target_end=self.target.end(renamed) or Offset(0),
                    is_synced=partition in self.mirror.synced,
                )
                for partition, upstream in sorted(self.source.groups.get(GROUP, {}).items())
                if (renamed := self.mirror.renamed(partition)) in translated
            }
        )

    def _outcome(self, findings: list[MirrorFinding | Finding]) -> MirrorOutcome:
        copies = {
            renamed: Copy(partition, _values(self.source, partition), _values(self.target, renamed))
            for partition in sorted(self.mirror.positions)
            for renamed in (self.mirror.renamed(partition),)
        }
        syncs = [read_offset_sync(record.key or b"", record.value or b"") for record in self.source.read(SYNCS)]
        for copy in copies.values():
            findings += check_copy(copy, syncs, is_once=not self.options.has_failures)
        findings += check_groups(copies, self.mirror.checkpoints)
        last_syncs = {sync.source_partition: sync for sync in syncs}
        failovers = []
        for noted in self._failovers:
            for renamed, failover in noted.items():
                counted = failover.counted(copies[renamed])
                failovers.append(counted)
                lag_max = self.options.settings.offset_lag_max if noted is self._failovers[-1] else None
                findings += check_failover(counted, copies[renamed], lag_max, last_syncs.get(counted.partition))
        for finding in findings:
            self._log_line(str(finding))
        return MirrorOutcome(
            findings=tuple(findings),
            copies=tuple(copies.values()),
            target_topics=tuple(self.target.counts()),
            failovers=tuple(failovers),
            checkpoint_count=len(self.mirror.checkpoints),
            sync_count=len(syncs),
            digest=self.trace.digest,
        )


def _values(side: MirroredCluster, partition: TopicPartition) -> tuple[bytes, ...]:
    return tuple(record.value or b"" for record in side.read(partition))


def run_mirror(options: MirrorOptions, on_line: LineSink = discard_line) -> MirrorOutcome:
    """Run two clusters and a mirror to the end; raise UsageError under -O."""
    return MirrorRun(options, on_line).finish()
