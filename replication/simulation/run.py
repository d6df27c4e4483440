"""One run from its seed to its verdict: a safety phase under faults, then a liveness phase without.
 It decides what a run consists of and what its verdict is. In the safety phase faults strike and every event is
checked. Then all faults end, clients stop writing, and the cluster has `heal_ms_max` to become whole: every broker
unfenced, every partition with a leader and all replicas in sync, all logs alike, every write answered (L1 to L7);
after that it must stay so (L9). What cannot become whole is told with what is missing.

Goals, most important first
1. The same options and plan give the same outcome, digest included.
2. A failing run says how to have it again.

Constraints: needs asserts, which are half of the checks: refuses to run under -O.

Example: run(swarm(7, DurationMs(60_000))).is_clean is True.

Left out: liveness while faults last.

Source: the two phases are TigerBeetle's VOPR's.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.errors import UsageError
from broker.units import TimeMs
from replication.checkers import DurabilityReport, Finding, StepChecker, account, check_history
from replication.roles.messages import Message, NodeId
from replication.roles.outbox import Outbox
from replication.simulation.cluster import Cluster, settled
from replication.simulation.faults import Fault, draw_plan
from replication.simulation.options import Options
from replication.simulation.recording import Recording
from replication.simulation.telling import record_text
from replication.simulation.trace import Tell, Trace, silent
from replication.simulation.weather import Weather
from replication.terms import Terms

HEAL_STEP_MS: Final = 1_000
STEADY_MS: Final = 30_000
"""For how long a whole cluster must stay so; a follower that lags is dropped and rejoins within this time."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What a run came to."""

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

    @property
    def is_clean(self) -> bool:
        """Whether nothing was broken."""
        return not self.findings


def check_asserts() -> None:
    """Raise UsageError if Python runs without asserts."""
    if not __debug__:
        raise UsageError("a simulation needs its asserts; run Python without -O")


def run(
    options: Options, plan: tuple[Fault, ...] | None = None, tell: Tell = silent, expected: Terms | None = None
) -> Outcome:
    """Run a simulation; `plan` is drawn from the options if it is not given.

    `expected` are the terms that checkers hold the run against, the run's own if not given. Raises UsageError under -O.
    """
    check_asserts()
    chosen = draw_plan(options) if plan is None else plan
    trace = Trace(tell)
    cluster = Cluster(options, trace)
    weather = Weather(cluster, chosen)
    checker = StepChecker(options.terms if expected is None else expected)
    watch(cluster, checker)
    recording = Recording()
    cluster.watches.insert(0, recording.watch)
    failed = ""
    try:
        _phases(cluster, weather, checker)
    except AssertionError as error:
        # A bug of the model, found by itself: told like any other finding, so that the plan can be shrunk.
        failed = f"{type(error).__name__}: {error}"
    ghosts = checker.ghosts
    history = cluster.history
    findings = list(checker.findings)
    if failed:
        findings.append(Finding("A", cluster.now_ms, -1, failed))
    findings += check_history(
        history.writes, history.sightings, ghosts, cluster.now_ms, is_idempotent=options.is_idempotent
    )
    durability = account(history.writes, ghosts)
    if options.is_strict and not failed:
        for lost in durability.lost_for_no_reason:
            code = "I10" if lost.is_anywhere else "I9"
            findings.append(Finding(code, cluster.now_ms, lost.partition, f"acknowledged value {lost.value} is gone"))
    for finding in findings:
        trace.line(finding.at_ms, str(finding))
    return Outcome(
        options=options,
        plan=chosen,
        findings=tuple(findings),
        durability=durability,
        event_count=cluster.event_count,
        loss_count=weather.loss_count,
        unclean_count=sum(len(ghost.losses) for ghost in ghosts.values()),
        simulated_ms=cluster.now_ms,
        digest=trace.digest,
        lines=tuple(trace.lines),
        recording=recording,
    )


def watch(cluster: Cluster, checker: StepChecker) -> None:
    """Let a checker look at every event, and tell every record of the metadata log."""
    told = 0

    def after(world: Cluster, node: NodeId, message: Message, out: Outbox) -> None:
        nonlocal told
        checker.after(world, node, message, (each for _, each in out.sent))
        log = world.controller.log
        while told < len(log):
            world.trace.line(world.now_ms, record_text(log[told]))
            told += 1

    # The checker first: targeted faults may end the broker that has just handled the event.
    cluster.watches.insert(0, after)


def _phases(cluster: Cluster, weather: Weather, checker: StepChecker) -> None:
    options = cluster.options
    cluster.begin()
    cluster.run_until(TimeMs(options.duration_ms))
    weather.heal()
    cluster.stop_writing()
    end_ms = options.duration_ms + options.heal_ms_max
    missing = settled(cluster)
    while missing is not None and cluster.now_ms < end_ms:
        cluster.run_until(TimeMs(cluster.now_ms + HEAL_STEP_MS))
        missing = settled(cluster)
    if missing is None:
        changes = len(cluster.controller.log)
        cluster.run_until(TimeMs(cluster.now_ms + STEADY_MS))
        missing = settled(cluster)
        if missing is None and len(cluster.controller.log) > changes + len(cluster.controller.image.partitions):
            missing = f"{len(cluster.controller.log) - changes} changes in {STEADY_MS} ms without a fault (L9)"
    if missing is not None:
        checker.findings.append(Finding("L", cluster.now_ms, -1, missing))
