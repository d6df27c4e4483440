"""The plan of faults: what goes wrong when, drawn before the run starts.

It decides the fault injection of a run. A plan is data: it can be printed, written by hand, and shrunk by leaving
faults out.

Constraints: a plan depends on the options alone; each kind of fault draws from a stream of its own, so that leaving a
kind out moves no other. All faults are over, or healed, when the safety phase ends.

Example: draw_plan(swarm(7, 60_000)) gives perhaps (Fault(4210, KILL, target=2, for_ms=7000),).

Left out: faults of single sectors and files (`log.storage.faults`).
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.draws import exponential
from broker.entropy import SplitMix64, derive
from broker.units import DurationMs, TimeMs
from replication.simulation.options import FaultKind, Options

_FAULT_STREAM: Final = 2
DETAIL_MAX: Final = 60_000
"""How far a clock jumps at most, in ms; other kinds take the detail modulo what they choose from."""

_DURATION_MS: Final = {
    FaultKind.PAUSE: (500, 20_000),
    FaultKind.ISOLATE: (1_000, 60_000),
    FaultKind.DEAF: (1_000, 60_000),
    FaultKind.MUTE: (1_000, 60_000),
    FaultKind.CUT_CONTROLLER: (5_000, 40_000),
    FaultKind.CUT_PEERS: (5_000, 80_000),
    FaultKind.SLOW: (5_000, 60_000),
    FaultKind.HOLD: (1_000, 40_000),
}
QUIET_MS: Final = 3_000
"""No fault before this: the partitions are made first."""

_DOWN_MS: Final = (200, 40_000)
"""For how long; brokers that die come back after 0.2 to 40 seconds."""

_OF_PARTITIONS: Final = (FaultKind.REASSIGN, FaultKind.DELETE_RECORDS)

HELD_KINDS: Final = (
    "AlterPartition",
    "AlterPartitionResponse",
    "MetadataFetchResponse",
    "Fetch",
    "FetchResponse",
    "BrokerRegistration",
    "BrokerHeartbeat",
    "Produce",
)
"""The messages that a HOLD may hold back, by `detail`."""


@attrs.frozen
class Fault:
    """One fault. `target` is a broker, a rack or a partition, `detail` what else the kind needs."""

    at_ms: TimeMs
    kind: FaultKind
    target: int = 0
    for_ms: DurationMs = attrs.field(default=DurationMs(0))
    detail: int = 0

    def __str__(self) -> str:
        return f"{self.at_ms} {self.kind.name} {self.target} {self.for_ms} {self.detail}"


@attrs.frozen
class FaultBounds:
    """Between what the numbers of a fault lie: targets from 0 to less than `target_count`, both times included.

    Details lie within `DETAIL_MAX` of 0.
    """

    target_count: int
    for_ms_min: int
    for_ms_max: int


def draw_plan(options: Options) -> tuple[Fault, ...]:
    """Return the faults of a run, by time."""
    drawn = []
    kinds = list(FaultKind)
    for kind, mean_ms in options.fault_ms:
        entropy = SplitMix64(derive(options.seed, _FAULT_STREAM, kinds.index(kind)))
        at_ms = QUIET_MS + exponential(entropy, mean_ms)
        while at_ms < options.duration_ms:
            bounds = fault_bounds(kind, options)
            target = entropy.next_int_bound(bounds.target_count)
            span_ms = bounds.for_ms_max - bounds.for_ms_min
            duration_ms = DurationMs(bounds.for_ms_min + entropy.next_int_bound(span_ms + 1))
            detail = entropy.next_int_bound(2 * DETAIL_MAX) - DETAIL_MAX
            drawn.append(Fault(TimeMs(at_ms), kind, target, duration_ms, detail))
            at_ms += 1 + exponential(entropy, mean_ms)
    return tuple(sorted(drawn, key=lambda fault: (fault.at_ms, kinds.index(fault.kind))))


def fault_bounds(kind: FaultKind, options: Options) -> FaultBounds:
    """Return between what the numbers of a fault of one kind are drawn."""
    least, most = _DURATION_MS.get(kind, _DOWN_MS)
    count = options.partitions if kind in _OF_PARTITIONS else options.brokers
    return FaultBounds(options.racks if kind is FaultKind.RACK_OUTAGE else count, least, most)
