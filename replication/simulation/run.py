"""Run a simulation from its seed to its verdict: a safety phase under faults, then a liveness phase without.

Half of the checks are asserts: a run under python -O is refused.

Example:

>>> from broker.units import DurationMs
>>> from replication.simulation import run, swarm
>>> run(swarm(7, DurationMs(20_000))).is_clean
True

Source: the two phases are those of TigerBeetle's VOPR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

import attrs

from broker.errors import UsageError
from broker.ids import BrokerId
from broker.units import TimeMs
from log.record import Record
from replication.checkers import (
    OF_LOSSES,
    DurabilityReport,
    Finding,
    Rare,
    RetentionReport,
    RetentionStepChecker,
    StepChecker,
    account,
    check_history,
    check_keys,
    is_expired,
    may_skip,
    retention_report,
)
from replication.roles.messages import CONTROLLER, Address, Message, NodeId
from replication.rules.election import PolicyError
from replication.rules.settings import PartitionSettings
from replication.simulation.cluster import HEAL_SECONDS, Cluster
from replication.simulation.fault import Fault, check_plan
from replication.simulation.fault_injection import FaultInjector
from replication.simulation.faults import draw_plan
from replication.simulation.history import LineSink, Trace, discard_line
from replication.simulation.liveness import Missing, level_partitions, restart_where_replaced, settled
from replication.simulation.options import Options
from replication.simulation.promptness import LagWatch, WriteWatch
from replication.simulation.recording import Recording
from replication.simulation.retention import join_retention
from replication.simulation.views import PartitionView, partition_view, records_of
from replication.simulation.watching import OutsideClient, OwnInvariant, OwnInvariants

HEAL_STEP_MS: Final = 1_000
STEADY_MS: Final = 30_000
"""How long in ms a whole cluster must stay so; a follower that lags leaves and rejoins the ISR within this time."""
_STEADY_MS_MIN: Final = 12_000
"""How much in ms of this time lies at least behind the end of the last session and the last held message."""


class Extension(Protocol):
    """Define further parts of a run: hosted roles of the brokers, clients and checks."""

    def join(self, cluster: Cluster) -> None:
        """Join the cluster: `cluster.host`, `cluster.join` and `cluster.watches` are open until it begins."""
        ...

    def missing(self, cluster: Cluster) -> str | None:
        """Return in words what has not recovered after the faults yet; None if everything has."""
        ...

    def findings(self, cluster: Cluster) -> Sequence[Finding]:
        """Return the broken invariants at the end of the run."""
        ...


@attrs.frozen(kw_only=True)
class Outcome:
    """Hold the outcome of a run.

    `election_count` counts clean elections, `unclean_count` the others, `loss_count` how often a broker lost records,
    `rare` how often the run was in each rare state.
    """

    options: Options
    plan: tuple[Fault, ...]
    findings: tuple[Finding, ...]
    durability: DurabilityReport
    event_count: int
    loss_count: int
    unclean_count: int
    simulated_ms: TimeMs
    digest: str
    lines: tuple[str, ...]
    recording: Recording
    rare: Mapping[Rare, int]
    election_count: int
    retention: RetentionReport | None = None
    """What retention and compaction deleted; None without them."""

    @property
    def is_clean(self) -> bool:
        """Return whether no invariant was broken and no record that was acknowledged with acks=all is lost."""
        return not self.findings and not self.durability.lost_by_all

    @property
    def is_broken(self) -> bool:
        """Return whether an invariant was broken; what an allowed election loses breaks none."""
        return bool(self.findings)

    @property
    def failures(self) -> frozenset[str]:
        """Return the codes of the invariants that were broken."""
        return frozenset(finding.code for finding in self.findings)

    @property
    def call(self) -> str:
        """Return the Python call that repeats this run, without what a caller adds to it."""
        return f"run({self.options!r}, {self.plan!r})"


def check_asserts() -> None:
    """Raise UsageError if Python runs without asserts."""
    if not __debug__:
        raise UsageError("a simulation needs its asserts; run Python without -O")


class Simulation:
    """Run a simulation step by step; raise UsageError under -O.

    `plan` is drawn from the options if it is not given; `expected` are the settings that checkers hold the run against,
    the run's own if not given. `invariants` are functions of a simulation and an `Event`, asked at every event, that
    return what is broken, or None. `cluster` has everything: nodes and their logs, the controller, clients, history.

    Example: five brokers in three racks; the leader dies at second 60, and an invariant of one's own is asked.

    >>> from broker.units import DurationMs
    >>> from replication.simulation import Fault, FaultKind, LeaderOf
    >>> def three_in_sync(simulation, event):
    ...     state = simulation.cluster.controller.image.partitions.get(0)
    ...     return f"ISR {state.isr}" if state and len(state.isr) < 3 else None
    >>> options = Options(seed=1, brokers=5, racks=3, unclean_election=True, duration_ms=DurationMs(120_000))
    >>> simulation = Simulation(options, (), invariants=[three_in_sync])
    >>> simulation.inject(Fault(60_000, FaultKind.KILL, broker=LeaderOf(0), duration_ms=30_000))
    >>> simulation.run_until(75_000)
    >>> view = simulation.partition(0)
    >>> view.leader, view.replicas, view.isr, [str(each) for each in view.osr]
    (1, (0, 1, 2), (1, 2), ["0 (FENCED; left at 68000 ms, as its broker's session had ended)"])
    >>> print(*simulation.finish().findings)
    X broken at 68000 ms: three_in_sync: ISR (1, 2)
    >>> simulation.records(0)[-1].offset, simulation.durability().lost
    (194, ())
    """

    def __init__(
        self,
        options: Options,
        plan: Iterable[Fault] | None = None,
        on_line: LineSink = discard_line,
        expected: PartitionSettings | None = None,
        extension: Extension | None = None,
        invariants: Iterable[OwnInvariant] = (),
        checker: Callable[[PartitionSettings], StepChecker] = StepChecker,
    ) -> None:
        check_asserts()
        self.options = options
        self.plan = draw_plan(options) if plan is None else check_plan(plan, options)
        self.trace = Trace(on_line)
        self.cluster = Cluster(options, self.trace)
        self.fault_injector = FaultInjector(self.cluster, self.plan)
        self.recording = Recording()
        settings, retention = options.settings if expected is None else expected, options.retention
        self.checker = (
            checker(settings) if retention is None else RetentionStepChecker(settings, retention, options.wall_clock_ms)
        )
        self._extension = extension
        if retention is not None:
            join_retention(self.cluster, retention)
        # Before the fault injection: targeted faults may end the broker that has just handled the event.
        self.cluster.watches.insert(0, self.checker.after)
        if own := tuple(invariants):
            self.cluster.watches.insert(1, OwnInvariants(self, own, self.checker.findings.append).after)
        self.cluster.controller_watches.append(self.recording.watch)
        self._lag_watch = LagWatch(self.cluster, self.checker.findings.append)
        self._write_watch = WriteWatch(self.cluster, self.checker.findings.append)
        self.checker.note_refusal = self._write_watch.note_refusal
        if extension is not None:
            extension.join(self.cluster)
        self._arrived: set[int] = set()
        """Which partitions' logs have been level since the cluster began to heal."""
        self._failed = ""
        """What the model raised, in words; a run goes no further than that."""
        try:
            self.cluster.begin()
            self._lag_watch.begin()
            self._write_watch.begin()
        except PolicyError:
            raise
        except Exception as error:  # As in `finish`; what is wrong with the options was refused before.
            self._failed = self._failure(error)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the broken invariants so far."""
        return tuple(self.checker.findings)

    def run_until(self, end_ms: int) -> None:
        """Run all events up to and including `end_ms`; none if the model failed as it began."""
        if not self._failed:
            self.cluster.run_until(TimeMs(end_ms))

    @property
    def now_ms(self) -> TimeMs:
        """Return the simulated time in ms since the start."""
        return self.cluster.now_ms

    @property
    def next_event_ms(self) -> TimeMs | None:
        """Return the time of the next event, None if nothing is to happen any more."""
        return None if self._failed else self.cluster.next_event_ms

    def step(self) -> TimeMs | None:
        """Run all events of the next moment that has any; return its time, None if nothing is to happen any more."""
        next_ms = self.next_event_ms
        if next_ms is not None:
            self.cluster.run_until(next_ms)
        return next_ms

    def inject(self, fault: Fault) -> None:
        """Add a fault to the plan of a run; raise UsageError for one that is past or that cannot strike it."""
        check_plan((fault,), self.options)
        self.fault_injector.inject(fault)
        self.plan = (*self.plan, fault)

    def send(
        self, message: Message, receiver: int = CONTROLLER, on_answer: Callable[[Message], None] | None = None
    ) -> None:
        """Send a message from outside to a broker or to the controller.

        With `on_answer`, which is called with each answer, it passes the network; without it arrives now.
        """
        node = NodeId(receiver)
        if node != CONTROLLER and receiver not in self.options.ids:
            raise UsageError(f"the receiver is {receiver}; allowed are brokers {self.options.ids_shown}")
        if on_answer is None:
            self.cluster.deliver(node, message)
        else:
            client = self.cluster.connect(lambda _: OutsideClient(on_answer))
            self.cluster.send(client, Address(node), message)

    def records(self, partition: int, broker: int | None = None) -> tuple[Record, ...]:
        """Return the committed records of a partition's leader, or all that a broker has; none without a log."""
        if broker is None:
            found = self.cluster.leader_log(partition)
            return () if found is None else tuple(records_of(found.log, found.log.high_watermark))
        node = self.cluster.nodes.get(BrokerId(broker))
        found = None if node is None else node.logs.get(partition)
        return () if found is None else tuple(records_of(found.log, found.log.log_end_offset))

    def partition(self, partition: int) -> PartitionView | None:
        """Return a partition as it is now, None before it is created."""
        return partition_view(self.cluster, self.recording, partition)

    def durability(self) -> DurabilityReport:
        """Return the acknowledged records that cannot be read now, and why."""
        return account(self.cluster.history.writes, self.checker.references)

    def finish(self) -> Outcome:
        """Run to the end of the safety phase, heal, let the cluster recover, and return the outcome."""
        try:
            if not self._failed:
                self._finish_phases()
                self.checker.check_all(self.cluster)
        except PolicyError:
            raise
        except Exception as error:  # A bug of the model ends its own run, whatever it raises.
            self._failed = self._failure(error)
        return self._outcome()

    def fail(self, error: Exception) -> None:
        """End the run because the model raised `error`: the outcome has a finding that says so."""
        self._failed = self._failure(error)

    def _failure(self, error: Exception) -> str:
        """Describe what the model raised, with the seed and the step: a finding like any other, which can be shrunk."""
        where = f"seed {self.options.seed}, step {self.cluster.event_count:,}"
        return f"{type(error).__name__} at {where}: {' '.join(str(error).split())}"

    def _finish_phases(self) -> None:
        cluster, options = self.cluster, self.options
        if cluster.now_ms < options.duration_ms:
            cluster.run_until(TimeMs(options.duration_ms))
        self.fault_injector.heal()
        cluster.stop_writing()
        missing = self._heal()
        if missing is None:
            self.fault_injector.stop_one()
            missing = self._heal()
        if missing is None:
            missing = self._unsteady()
        if missing is not None:
            self.checker.findings.append(Finding(missing.code, cluster.now_ms, -1, missing.what))

    def _heal(self) -> Missing | None:
        """Run until the cluster is whole, at most to the end of the liveness phase; return what is still missing."""
        cluster, options = self.cluster, self.options
        self._arrived.clear()
        missing = self._missing()
        began, count_max = cluster.event_count, HEAL_SECONDS * cluster.events_per_second_max
        while missing is not None and cluster.now_ms < options.duration_ms + options.heal_ms_max:
            if (count := cluster.event_count - began) > count_max:
                repeated = ", ".join(cluster.trace.most_frequent())
                what = f"no progress in {count:,} events after the faults, most of them {repeated}"
                return Missing(missing.code, f"{missing.what}; {what}")
            restart_where_replaced(cluster)
            cluster.run_until(TimeMs(cluster.now_ms + HEAL_STEP_MS))
            missing = self._missing()
        return missing

    def _unsteady(self) -> Missing | None:
        """Run a whole cluster on; return what changed in it without a fault, None if nothing."""
        cluster = self.cluster
        end_ms = TimeMs(cluster.now_ms + STEADY_MS)
        # A session that a fault had all but ended may still end, and its broker register anew; a message that was held
        # may still arrive.
        last_ms = self.options.duration_ms + 2 * self.options.role_settings.session_ms
        cluster.run_until(TimeMs(max(cluster.now_ms, last_ms, cluster.network.held_until_ms)))
        before = len(cluster.controller.log)
        cluster.run_until(TimeMs(max(cluster.now_ms + _STEADY_MS_MIN, end_ms)))
        changes = len(cluster.controller.log) - before
        if changes > len(cluster.controller.image.partitions):
            return Missing("L", f"{changes} changes in {STEADY_MS} ms without a fault (L9)")
        # What groups have just written is on its way.
        return self._heal()

    def _missing(self) -> Missing | None:
        self._arrived.update(level_partitions(self.cluster))
        missing = self.fault_injector.missing() or settled(self.cluster, self._arrived)
        if missing is None and (order := self.checker.orders.missing(self.cluster)) is not None:
            missing = Missing("L14", order)
        if missing is None and self._extension is not None:
            what = self._extension.missing(self.cluster)
            missing = None if what is None else Missing("L", what)
        return missing

    def _check_clients(self) -> Sequence[Finding]:
        """Return what the clients' history shows to be broken."""
        history, references, now_ms = self.cluster.history, self.checker.references, self.cluster.now_ms
        return self._guarded(
            lambda: [
                *check_history(
                    history.writes,
                    history.consumed_records,
                    references,
                    now_ms,
                    may_skip=partial(may_skip, references),
                    is_expired=partial(is_expired, references),
                ),
                *check_keys(history.consumed_records, references, now_ms),
            ]
        )

    def _guarded(self, check: Callable[[], Sequence[Finding]]) -> Sequence[Finding]:
        """Return the findings of a check at the end; what it raises on a broken state is a finding, too."""
        try:
            return check()
        except Exception as error:
            return (Finding("A", self.cluster.now_ms, -1, self._failure(error)),)

    def findings_with(self, durability: DurabilityReport) -> tuple[Finding, ...]:
        """Return the broken invariants, with those that show in what clients wrote and read and in what they lost.

        Cost: linear in the history, but for one sort.
        """
        cluster, options, failed, now_ms = self.cluster, self.options, self._failed, self.cluster.now_ms
        findings = list(self.checker.findings)
        if failed:
            findings.append(Finding("A", now_ms, -1, failed))
        findings += self._check_clients()
        if options.is_strict and not failed:
            for lost in durability.lost_for_no_reason:
                code = "I10" if lost.is_anywhere else "I9"
                findings.append(Finding(code, now_ms, lost.partition, f"acknowledged value {lost.value} is gone"))
        if self._extension is not None:
            findings += self._guarded(partial(self._extension.findings, cluster))
        if self.fault_injector.loss_count and not (options.is_strict or options.settings.rules.elr):
            findings = [finding for finding in findings if finding.code not in OF_LOSSES]
        return tuple(findings)

    def _outcome(self) -> Outcome:
        cluster, options, references = self.cluster, self.options, self.checker.references
        rare = self.checker.rare.seen
        history, now_ms = cluster.history, cluster.now_ms
        durability = self.durability()
        findings = self.findings_with(durability)
        for finding in findings:
            self.trace.line(finding.at_ms, str(finding))
        return Outcome(
            options=options,
            plan=self.plan,
            findings=findings,
            durability=durability,
            event_count=cluster.event_count,
            loss_count=self.fault_injector.loss_count,
            unclean_count=sum(reference.unclean_count for reference in references.values()),
            simulated_ms=now_ms,
            digest=self.trace.digest,
            lines=tuple(self.trace.lines),
            recording=self.recording,
            rare=rare,
            election_count=rare[Rare.ELECTED_CLEANLY] + rare[Rare.ELECTED_FROM_ELR],
            retention=None
            if options.retention is None
            else retention_report(history.writes, history.consumed_records, references),
        )


def run(
    options: Options,
    plan: Iterable[Fault] | None = None,
    on_line: LineSink = discard_line,
    expected: PartitionSettings | None = None,
    extension: Extension | None = None,
    invariants: Iterable[OwnInvariant] = (),
) -> Outcome:
    """Run a simulation from its beginning to its end; see `Simulation`."""
    return Simulation(options, plan, on_line, expected, extension, invariants).finish()
