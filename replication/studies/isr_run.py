"""Run one simulation of Kafka's replication under a study's failures, and return its measures.

Each broker draws its failures from its own stream of the seed, so that runs of one seed see the same failures (common
random numbers). Runs are not strict: failures strike as they are drawn, also those that take more replicas than
min.insync.replicas covers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from broker.draws import exponential
from broker.entropy import SplitMix64, derive
from broker.ids import BrokerId
from broker.units import MINUTE_MS, SECOND_MS, DurationMs, TimeMs
from replication.checkers import Rare
from replication.checkers.elections import Ground
from replication.roles.settings import RoleSettings
from replication.rules.election import ElectionPolicy
from replication.rules.partition import PartitionState
from replication.rules.produce import Fate
from replication.rules.settings import PartitionSettings
from replication.simulation import Options, Simulation, elected_by
from replication.simulation.cluster import CREATE_MS, Cluster
from replication.simulation.fault import Fault
from replication.simulation.faults import QUIET_MS
from replication.simulation.options import FaultKind
from replication.studies.parameters import ACKS, SAMPLE_MS, Availability, Measures, Parameters

_BROKER_STREAM: Final = 31
_RACK_STREAM: Final = 32
_KINDS: Final = {"crash": FaultKind.KILL, "power": FaultKind.POWER_LOSS, "disk": FaultKind.WIPE}
_RAISED: Final = "A"
"""The code of the finding that says what a model raised."""
_RESTARTS: Final = {"controlled": FaultKind.STOP, "uncontrolled": FaultKind.KILL}


def failures_of(parameters: Parameters, seed: int) -> tuple[Fault, ...]:
    """Return the failures and restarts of a run, by time."""
    drawn = [
        *_renewals(parameters, seed, _KINDS[parameters.failure]),
        *_renewals(parameters, seed, FaultKind.RACK_OUTAGE),
        *_restarts(parameters),
    ]
    return tuple(sorted(drawn, key=lambda fault: (fault.start_ms, fault.kind.name, fault.target)))


def duration_of(parameters: Parameters) -> DurationMs:
    """Return the simulated length of a run in ms."""
    return DurationMs(round(parameters.minutes * MINUTE_MS))


def _renewals(parameters: Parameters, seed: int, kind: FaultKind) -> Iterator[Fault]:
    of_racks = kind is FaultKind.RACK_OUTAGE
    mttf_minutes = parameters.rack_mttf_minutes if of_racks else parameters.mttf_minutes
    if not mttf_minutes:
        return
    mttf_ms, repair_ms = round(mttf_minutes * MINUTE_MS), round(parameters.repair_seconds * SECOND_MS)
    stream, targets = (_RACK_STREAM, parameters.rack_count) if of_racks else (_BROKER_STREAM, parameters.broker_count)
    for target in range(targets):
        entropy = SplitMix64(derive(seed, stream, target))
        at_ms = QUIET_MS + exponential(entropy, mttf_ms)
        while at_ms < duration_of(parameters):
            down_ms = DurationMs(1 + exponential(entropy, repair_ms))
            yield Fault(TimeMs(at_ms), kind, target, down_ms)
            at_ms += down_ms + 1 + exponential(entropy, mttf_ms)


def _restarts(parameters: Parameters) -> Iterator[Fault]:
    kind = _RESTARTS.get(parameters.restarts)
    if kind is None:
        return
    every_ms = round(parameters.restart_seconds * SECOND_MS)
    down_ms = DurationMs(round(parameters.restart_down_seconds * SECOND_MS))
    for number, at_ms in enumerate(range(QUIET_MS + every_ms, duration_of(parameters), every_ms)):
        yield Fault(TimeMs(at_ms), kind, number % parameters.broker_count, down_ms)


def options_of(parameters: Parameters, seed: int) -> Options:
    """Return the options of the simulation of a run."""
    settings = PartitionSettings(
        rules=parameters.rules,
        min_isr=parameters.min_isr,
        lag_ms_max=DurationMs(round(parameters.lag_seconds * SECOND_MS)),
        unclean_election=parameters.unclean,
    )
    return Options(
        seed=seed,
        brokers=parameters.broker_count,
        racks=parameters.rack_count,
        partitions=parameters.partitions,
        replication_factor=parameters.factor,
        producers=parameters.producers,
        produce_ms=DurationMs(parameters.produce_ms),
        acks=(ACKS[parameters.acks],),
        is_idempotent=True,
        duration_ms=duration_of(parameters),
        is_strict=False,
        role_settings=RoleSettings(settings=settings, produce_ms_max=DurationMs(5_000)),
        name="study",
    )


class RunError(Exception):
    """Say that the model, or a policy, raised in the middle of a run."""


def _watch(cluster: Cluster, parameters: Parameters) -> Availability:
    """Return what is counted of the partitions, from their creation on until faults are over."""
    time = Availability()

    def takes_writes(state: PartitionState, running: set[BrokerId]) -> bool:
        if not state.has_leader or state.leader not in running:
            return False
        return parameters.acks != "all" or (len(state.isr) >= parameters.min_isr and running.issuperset(state.isr))

    def look() -> None:
        running = {broker for broker, node in cluster.nodes.items() if node.role is not None and not node.is_paused}
        for state in cluster.controller.image.partitions.values():
            time.note(has_leader=state.has_leader, takes_writes=takes_writes(state, running))

    for at_ms in range(2 * CREATE_MS, duration_of(parameters), SAMPLE_MS):
        cluster.at(at_ms, look)
    return time


def run_isr(parameters: Parameters, seed: int, policy: ElectionPolicy | None = None) -> tuple[Measures, str]:
    """Run a simulation; return what was counted, and the first broken invariant in words, "" if none is."""
    options = options_of(parameters, seed)
    if policy is not None:
        options = elected_by(options, policy)
    simulation = Simulation(options, failures_of(parameters, seed))
    time = _watch(simulation.cluster, parameters)
    outcome = simulation.finish()
    report, references = outcome.durability, simulation.checker.references
    grounds = {
        value: loss.election.ground for each in references.values() for loss in each.losses for value in loss.values
    }
    lost = Counter(grounds.get(record.value) for record in report.lost)
    writes = simulation.cluster.history.writes
    measures = Measures(
        write_count=len(writes),
        acked_all=report.acked_count,
        acked_one=report.acked_by_one_count,
        lost_all=len(report.lost_by_all),
        lost_one=len(report.lost_by_one),
        lost_to_unclean=lost[Ground.SETTING],
        lost_to_last_known=lost[Ground.LAST_KNOWN],
        lost_to_other=len(report.lost) - lost[Ground.SETTING] - lost[Ground.LAST_KNOWN],
        duplicate_count=_duplicate_count(simulation),
        **attrs.asdict(time),
        clean_elections=outcome.rare.get(Rare.ELECTED_CLEANLY, 0),
        elr_elections=outcome.rare.get(Rare.ELECTED_FROM_ELR, 0),
        unclean_elections=outcome.unclean_count,
        failure_count=len(outcome.plan),
        loss_count=outcome.loss_count,
        message_count=outcome.event_count,
    ).with_latencies(write.answered_ms - write.sent_ms for write in writes if write.fate is Fate.ACKED)
    raised = next((finding for finding in outcome.findings if finding.code == _RAISED), None)
    if raised is not None:
        raise RunError(str(raised))
    return measures, str(outcome.findings[0]) if outcome.findings else ""


def _duplicate_count(simulation: Simulation) -> int:
    """Return how many values stand more than once in their partition's log, each time but the first."""
    count = 0
    for reference in simulation.checker.references.values():
        state = reference.state
        if state is not None and state.leader in reference.observed_logs:
            values = [entry.value for entry in reference.observed_logs[state.leader].entries]
            count += len(values) - len(set(values))
    return count
