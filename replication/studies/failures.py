"""Failures and restarts of a run: renewal processes of brokers and racks, and restarts at fixed times.

Constraints: each broker draws from its own stream of the seed. Runs of one seed that differ in anything but the
failures' own parameters see the same failures, and a smaller cluster sees those of its brokers: what two rows of a
study differ in is not chance. Nothing fails in the first seconds, in which partitions are created.

Source: ours; common random numbers are a standard technique of simulation studies (Law, Simulation Modeling and
Analysis, chapter 11).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.draws import exponential
from broker.entropy import SplitMix64, derive
from broker.units import MINUTE_MS, DurationMs, TimeMs
from replication.simulation.faults import QUIET_MS, Fault
from replication.simulation.options import FaultKind
from replication.studies.parameters import Parameters

SECOND_MS: Final = 1_000
_BROKER_STREAM: Final = 31
_RACK_STREAM: Final = 32
_KINDS: Final = {"crash": FaultKind.KILL, "power": FaultKind.POWER_LOSS, "disk": FaultKind.WIPE}
_RESTARTS: Final = {"controlled": FaultKind.STOP, "uncontrolled": FaultKind.KILL}


def failures_of(parameters: Parameters, seed: int) -> tuple[Fault, ...]:
    """Return the failures and restarts of a run, by time."""
    drawn = [
        *_renewals(parameters, seed, _KINDS[parameters.failure]),
        *_renewals(parameters, seed, FaultKind.RACK_OUTAGE),
        *_restarts(parameters),
    ]
    return tuple(sorted(drawn, key=lambda fault: (fault.at_ms, fault.kind.name, fault.target)))


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
