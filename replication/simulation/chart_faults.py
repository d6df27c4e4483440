"""Draw the planned faults above a run's chart: one row per broker, each fault as long as it lasts.

What it decides: how a kind of fault looks: a filled bar for a broker that is down, an empty one for a broker that is
cut off, a thin one for a broker that is slow or paused, and a tick for an instant. A fault of no single broker stands
in a row of its own.

Constraints: a plan is what was to happen; a fault that finds its broker down does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.drawing.element import Markup, node
from broker.drawing.time_axis import TimeAxis
from replication.simulation.faults import Fault
from replication.simulation.options import FaultKind
from replication.simulation.run import Outcome

LEFT: Final = 150
WIDTH: Final = 960
RIGHT: Final = 70
_ROW: Final = 16
_GONE: Final = frozenset(
    {
        FaultKind.KILL,
        FaultKind.POWER_LOSS,
        FaultKind.WIPE,
        FaultKind.STOP,
        FaultKind.RACK_OUTAGE,
        FaultKind.CRASH_AT_COMMIT,
        FaultKind.CRASH_AT_ISR,
        FaultKind.BLOCK_LOSS,
    }
)
_CUT: Final = frozenset(
    {
        FaultKind.ISOLATE,
        FaultKind.DEAF,
        FaultKind.MUTE,
        FaultKind.CUT_CONTROLLER,
        FaultKind.CUT_PEERS,
        FaultKind.LATE_METADATA,
        FaultKind.SPLIT,
        FaultKind.SPLIT_RACK,
        FaultKind.CONTROLLER_AWAY,
    }
)
_SLOW: Final = frozenset(
    {
        FaultKind.PAUSE,
        FaultKind.SLOW,
        FaultKind.SLOW_DISK,
        FaultKind.CLOCK_DRIFT,
        FaultKind.FULL_DISK,
        FaultKind.FAILED_DIRECTORY,
        FaultKind.ZOMBIE_CONTROLLER,
        FaultKind.CANCEL_REASSIGNMENT,
    }
)
_WIDE: Final = frozenset(
    {
        FaultKind.CONTROLLER_FAILOVER,
        FaultKind.CONTROLLER_AWAY,
        FaultKind.ZOMBIE_CONTROLLER,
        FaultKind.SPLIT,
        FaultKind.HOLD,
        FaultKind.REASSIGN,
        FaultKind.CANCEL_REASSIGNMENT,
        FaultKind.DELETE_RECORDS,
    }
)
"""Faults of no single broker."""
_STYLES: Final = (("gone", _GONE), ("cut", _CUT), ("slow", _SLOW))
_KEY: Final = (("gone", "gone"), ("cut", "cut off"), ("slow", "slow"), ("once", "at an instant"))


def rows_height(outcome: Outcome) -> int:
    """Return the height of the rows, in units of the picture."""
    return _ROW * (outcome.options.brokers + 2) + 22 if outcome.plan else 8


def fault_rows(outcome: Outcome, axis: TimeAxis, top: int) -> Iterator[Markup]:
    """Yield the rows of faults; nothing for a run without faults."""
    if not outcome.plan:
        return
    options = outcome.options
    yield node("text", "faults planned", class_="h", x=16, y=top + 13)
    yield from _key(top)
    for row in range(options.brokers + 1):
        y = top + 4 + _ROW * (row + 1)
        name = f"broker {row}" if row < options.brokers else "cluster"
        yield node("text", name, class_="q", x=LEFT - 10, y=y + 12, text_anchor="end")
    for fault in outcome.plan:
        for row in rows_of(fault, options.brokers, options.racks):
            yield _mark(fault, axis, top + 4 + _ROW * (row + 1))


def rows_of(fault: Fault, brokers: int, racks: int) -> tuple[int, ...]:
    """Return the rows of a fault: its broker's, those of all brokers of its rack, or the last one for the cluster."""
    if fault.kind in (FaultKind.RACK_OUTAGE, FaultKind.SPLIT_RACK):
        return tuple(broker for broker in range(brokers) if broker % racks == fault.target)
    if fault.kind in _WIDE or fault.target >= brokers:
        return (brokers,)
    return (fault.target,)


def _key(top: int) -> Iterator[Markup]:
    x = LEFT
    for style, what in _KEY:
        yield _shape(style, x, 22, top + 1)
        yield node("text", what, class_="q", x=x + 28, y=top + 12)
        x += 118


def _mark(fault: Fault, axis: TimeAxis, y: int) -> Markup:
    style = next((name for name, kinds in _STYLES if fault.kind in kinds), "once")
    left = axis.x(fault.at_ms)
    right = min(axis.x(fault.at_ms + fault.for_ms), LEFT + WIDTH)
    return _shape(style, left, max(2.0, round(right - left, 1)), y)


def _shape(style: str, left: float, width: float, y: int) -> Markup:
    if style == "once":
        return node("path", class_="once", d=f"M{left},{y + 2} V{y + 14}")
    top, height = (y + 7, 3) if style == "slow" else (y + 4, 9)
    return node("rect", class_=style, x=left, y=top, width=f"{width:g}", height=height)
