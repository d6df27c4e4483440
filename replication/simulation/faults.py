"""Draw the plan of faults before a run starts.

A plan depends on the options alone; each kind of fault draws from its own stream, so that removing a kind moves no
other. All faults are over, or healed, when the safety phase ends.

Example:

>>> from replication.simulation import draw_plan, swarm
>>> print(*draw_plan(swarm(7, DurationMs(20_000))), sep="; ")
at 3727 ms STOP broker 3 for 35972 ms; at 7279 ms STOP broker 1 for 9961 ms
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.draws import exponential
from broker.entropy import SplitMix64, derive
from broker.units import DurationMs
from replication.simulation.fault import OF_PARTITIONS, OF_RACKS, Fault, target_name
from replication.simulation.options import FaultKind, Options

_FAULT_STREAM: Final = 2
CHOICE_MAX: Final = 60_000
"""The greatest jump of a clock in ms; other kinds take the choice modulo the number of their choices."""

_DURATION_MS: Final = {
    FaultKind.PAUSE: (500, 20_000),
    FaultKind.ISOLATE: (1_000, 60_000),
    FaultKind.DEAF: (1_000, 60_000),
    FaultKind.MUTE: (1_000, 60_000),
    FaultKind.CUT_CONTROLLER: (5_000, 40_000),
    FaultKind.CUT_PEERS: (5_000, 80_000),
    FaultKind.SLOW: (5_000, 60_000),
    FaultKind.HOLD: (1_000, 40_000),
    FaultKind.FULL_DISK: (5_000, 40_000),
    FaultKind.FAILED_DIRECTORY: (5_000, 40_000),
    FaultKind.SLOW_DISK: (5_000, 60_000),
    FaultKind.SPLIT: (1_000, 60_000),
    FaultKind.SPLIT_RACK: (1_000, 60_000),
    FaultKind.CONTROLLER_AWAY: (500, 20_000),
    # After so long without its followers' fetches a former controller resigns (KAFKA-15489: 1.5 x 2 s).
    FaultKind.ZOMBIE_CONTROLLER: (500, 3_000),
    FaultKind.LATE_METADATA: (1_000, 30_000),
    FaultKind.CLOCK_DRIFT: (5_000, 60_000),
    FaultKind.CANCEL_REASSIGNMENT: (10, 20_000),
    FaultKind.DELETE_TOPIC: (10, 20_000),
}
QUIET_MS: Final = 3_000
"""No fault strikes before this time in ms: the partitions are created first."""

_DOWN_MS: Final = (200, 40_000)
"""The range of downtimes in ms: killed brokers come back after 0.2 to 40 s."""


@attrs.frozen
class FaultBounds:
    """Bound the numbers of a fault: targets are below `target_count`, durations include both bounds.

    Choices are at most `CHOICE_MAX` away from 0.
    """

    target_count: int
    duration_ms_min: int
    duration_ms_max: int


def draw_plan(options: Options) -> tuple[Fault, ...]:
    """Return the faults of a run, by time; in ZooKeeper mode no topic is deleted."""
    drawn = []
    kinds = list(FaultKind)
    for kind, mean_ms in options.fault_ms:
        if kind is FaultKind.DELETE_TOPIC and options.role_settings.has_zookeeper:
            continue
        entropy = SplitMix64(derive(options.seed, _FAULT_STREAM, kinds.index(kind)))
        at_ms = QUIET_MS + exponential(entropy, mean_ms)
        while at_ms < options.duration_ms:
            bounds = fault_bounds(kind, options)
            target = entropy.next_int_bound(bounds.target_count)
            span_ms = bounds.duration_ms_max - bounds.duration_ms_min
            duration_ms = DurationMs(bounds.duration_ms_min + entropy.next_int_bound(span_ms + 1))
            choice = entropy.next_int_bound(2 * CHOICE_MAX) - CHOICE_MAX
            if target_name(kind) == "broker":
                target = options.ids[target]
            drawn.append(Fault(at_ms, kind, target, duration_ms, choice))
            at_ms += 1 + exponential(entropy, mean_ms)
    return tuple(sorted(drawn, key=lambda fault: (fault.start_ms, kinds.index(fault.kind))))


def fault_bounds(kind: FaultKind, options: Options) -> FaultBounds:
    """Return the bounds of the numbers of a fault of one kind."""
    least, most = _DURATION_MS.get(kind, _DOWN_MS)
    count = options.partitions if kind in OF_PARTITIONS else options.brokers
    return FaultBounds(options.racks if kind in OF_RACKS else count, least, most)
