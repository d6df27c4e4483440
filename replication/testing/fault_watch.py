"""Report when each fault of a served cluster strikes and when it is over, or that it had no effect.

A fault of a broker is over when its time is over and the broker's process runs again; other faults when their time is
over. A fault whose broker was down already, or that finds nothing to strike, has no effect.

Source: ours.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from broker.ids import BrokerId
from broker.units import TimeMs
from broker.wording import counted
from replication.simulation.cluster import Cluster
from replication.simulation.fault import AT_ONCE, Fault, kind_word, target_name
from replication.simulation.fault_injection import FaultInjector

_LOOK_MS: Final = 100


class FaultState(enum.Enum):
    """Name what has become of a fault."""

    STRUCK = "strikes"
    OVER = "is over"
    NO_EFFECT = "has no effect"


@attrs.frozen
class FaultNotice:
    """Report that a fault has changed its state at a time since the start of the cluster."""

    at_ms: TimeMs
    fault: Fault
    state: FaultState

    def __str__(self) -> str:
        return f"{self.at_ms:>9} ms  the fault {self.state.value}: {self.fault}"

    def fields(self) -> dict[str, object]:
        """Return the notice as a JSON object; `broker` is None for a fault of no single broker."""
        fault, target = self.fault, target_name(self.fault.kind)
        return {
            "event": "fault",
            "state": self.state.name.lower(),
            "at_ms": self.at_ms,
            "kind": kind_word(fault.kind),
            "broker": fault.target if target == "broker" else None,
            "start_ms": fault.start_ms,
            "duration_ms": fault.duration_ms,
        }


OnNotice = Callable[[FaultNotice], None]


class FaultWatch:
    """Hand on a notice of each change, and count the faults that struck."""

    def __init__(self, cluster: Cluster, injector: FaultInjector, on_notice: OnNotice) -> None:
        self._cluster = cluster
        self._injector = injector
        self._on_notice = on_notice
        self._counts: Counter[FaultState] = Counter()
        injector.on_strike = self._on_strike

    @property
    def struck_count(self) -> int:
        """Return how many faults have struck."""
        return self._counts[FaultState.STRUCK]

    def _on_strike(self, fault: Fault, is_effective: bool) -> None:
        self._note(fault, FaultState.STRUCK if is_effective else FaultState.NO_EFFECT)
        if is_effective and fault.kind not in AT_ONCE:
            self._cluster.at(self._cluster.now_ms + fault.duration_ms, partial(self._look, fault))

    def _look(self, fault: Fault) -> None:
        cluster = self._cluster
        if self._injector.is_over:
            return
        if target_name(fault.kind) == "broker" and cluster.nodes[BrokerId(fault.target)].role is None:
            cluster.at(cluster.now_ms + _LOOK_MS, partial(self._look, fault))
        else:
            self._note(fault, FaultState.OVER)

    def _note(self, fault: Fault, state: FaultState) -> None:
        self._counts[state] += 1
        self._on_notice(FaultNotice(self._cluster.now_ms, fault, state))


def struck_text(struck_count: int, fault_count: int) -> str:
    """Return how many of the faults of a plan struck.

    >>> struck_text(2, 3)
    '2 of 3 faults struck, 1 never did'
    """
    never_count = fault_count - struck_count
    never = f", {never_count} never did" if never_count else ""
    return f"{struck_count} of {counted(fault_count, 'fault')} struck{never}"


def discard(_notice: FaultNotice) -> None:
    """Discard a notice."""
