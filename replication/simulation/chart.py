"""Draw one simulated run: planned faults, one row a broker, and each partition's leaders, on one axis of time.

A stripe below a partition's leaders marks the time with fewer in sync than min.insync.replicas; a broken invariant is a
line across all rows. There is no script and nothing from outside; the same outcome gives the same bytes. Changes closer
than half a pixel show the last one. Of more than `ROW_COUNT_MAX` partitions those that changed most are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from broker.drawing import svg
from broker.drawing.element import Markup, node
from broker.drawing.palette import CATEGORIES
from broker.drawing.time_axis import TimeAxis
from broker.ids import NO_LEADER
from broker.wording import counted
from replication.simulation.faults import OF_BROKERS, Fault
from replication.simulation.options import FaultKind
from replication.simulation.recording import StateNote
from replication.simulation.run import Outcome

LEFT: Final = 150
WIDTH: Final = 960
ROW_COUNT_MAX: Final = 200
_RIGHT, _TOP, _FAULT_ROW, _ROW = 70, 98, 16, 26
_RULES: Final = (
    ".run .on{fill:#000000;font-size:11px}.run .axis{stroke:var(--rule)}.run .none{fill:var(--blank)}"
    ".run .low,.run .tell{fill:var(--accent)}.run .broken{stroke:var(--accent);stroke-width:2}"
    ".run .fault{fill:var(--quiet)}"
    + "".join(f".run .b{number}{{fill:{colour}}}" for number, colour in enumerate(CATEGORIES))
)


def to_svg(outcome: Outcome) -> str:
    """Return the picture of a run as an SVG document."""
    axis = TimeAxis(int(outcome.simulated_ms), left=LEFT, width=WIDTH)
    shown = _shown(outcome)
    top = _TOP + (_FAULT_ROW * (outcome.options.brokers + 2) if outcome.plan else 0)
    bottom = top + _ROW * len(shown)
    parts = [node("text", heading(outcome), class_="h", x=16, y=24), *_legend(outcome)]
    for at_ms in axis.ticks():
        parts.append(node("path", class_="axis", d=f"M{axis.x(at_ms)},{_TOP - 14} V{bottom + 4}"))
        parts.append(_quiet(axis.x(at_ms), bottom + 20, axis.name(at_ms), "middle"))
    parts.extend(_fault_rows(outcome, axis))
    for place, partition in enumerate(shown):
        parts.extend(_leaders(outcome, axis, partition, top + _ROW * place))
    if hidden := outcome.options.partition_count - len(shown):
        verb = "is" if hidden == 1 else "are"
        parts.append(_quiet(LEFT, bottom + 46, f"{counted(hidden, 'partition')} that changed less {verb} not shown"))
    for code, at_ms in {each.code: int(each.at_ms) for each in reversed(outcome.findings)}.items():
        parts.append(node("path", class_="broken", d=f"M{axis.x(at_ms)},{_TOP - 14} V{bottom}"))
        parts.append(node("text", code, class_="tell", x=axis.x(at_ms), y=_TOP - 18, text_anchor="middle"))
    style = svg.style("run", "page", "ink", "quiet", "rule", "accent", "blank", rules=_RULES)
    return svg.document("run", heading(outcome), (LEFT + WIDTH + _RIGHT, bottom + 60), style, parts) + "\n"


def heading(outcome: Outcome) -> str:
    """Return a run's seed, options and length, and its verdict, in one line."""
    lost_count = len(outcome.durability.lost_by_all)
    verdict = f"BROKEN: {outcome.findings[0].code}" if outcome.is_broken else "nothing is broken"
    if lost_count:
        verdict += f", {counted(lost_count, 'record')} acknowledged by all lost"
    return f"seed {outcome.options.seed}, {outcome.options.name}, {outcome.simulated_ms / 1_000:g} s: {verdict}"


def partition_notes(outcome: Outcome, partition: int) -> list[tuple[StateNote, int]]:
    """Return each state of a partition with its end in milliseconds; none if the partition was never made."""
    notes = [note for note in outcome.recording.states if note.partition == partition]
    ends = [int(note.at_ms) for note in notes[1:]] + [int(outcome.simulated_ms)] * bool(notes)
    return list(zip(notes, ends, strict=True))


def rows_of(fault: Fault, brokers: int, racks: int) -> tuple[int, ...]:
    """Return the rows of a fault: its broker's, those of all brokers of its rack, or the last one for the cluster."""
    if fault.kind in (FaultKind.RACK_OUTAGE, FaultKind.SPLIT_RACK):
        return tuple(broker for broker in range(brokers) if broker % racks == fault.target)
    return (fault.target,) if fault.kind in OF_BROKERS and fault.target < brokers else (brokers,)


def _shown(outcome: Outcome) -> list[int]:
    changes = Counter(note.partition for note in outcome.recording.states)
    partitions = sorted(range(outcome.options.partition_count), key=lambda each: (-changes[each], each))
    return sorted(partitions[:ROW_COUNT_MAX])


def _quiet(x: float, y: float, text: str, anchor: str | None = None) -> Markup:
    return node("text", text, class_="q", x=x, y=y, text_anchor=anchor)


def _legend(outcome: Outcome) -> Iterator[Markup]:
    yield _quiet(16, 50, "leaders")
    names = [(f"b{each}", f"broker {each}") for each in range(min(outcome.options.brokers, len(CATEGORIES)))]
    for place, (kind, name) in enumerate((*names, ("none", "nobody"))):
        yield node("rect", class_=kind, x=LEFT + 84 * place, y=39, width=14, height=14)
        yield node("text", name, x=LEFT + 84 * place + 19, y=50)
    yield node("rect", class_="low", x=LEFT, y=63, width=14, height=3)
    yield _quiet(LEFT + 19, 68, "fewer in sync than min.insync.replicas")


def _fault_rows(outcome: Outcome, axis: TimeAxis) -> Iterator[Markup]:
    """Yield the rows of planned faults, each fault as long as it lasts; nothing for a run without faults."""
    options = outcome.options
    for row in range(options.brokers + 1 if outcome.plan else 0):
        name = f"faults, broker {row}" if row < options.brokers else "faults, cluster"
        yield _quiet(LEFT - 10, _TOP + _FAULT_ROW * row + 12, name, "end")
    for fault in outcome.plan:
        left, right = axis.x(fault.at_ms), min(axis.x(fault.at_ms + fault.for_ms), LEFT + WIDTH)
        width = max(2.0, round(right - left, 1))
        title = node("title", f"{fault.kind.name.lower().replace('_', ' ')}: {fault.kind.value}")
        for row in rows_of(fault, options.brokers, options.racks):
            y = _TOP + _FAULT_ROW * row + 3
            yield node("rect", title, class_="fault", x=left, y=y, width=f"{width:g}", height=10)


def _leaders(outcome: Outcome, axis: TimeAxis, partition: int, top: int) -> Iterator[Markup]:
    yield _quiet(LEFT - 10, top + 14, f"partition {partition}", "end")
    merged: list[tuple[int, int, int]] = []
    for note, end_ms in partition_notes(outcome, partition):
        leader, at_ms = int(note.state.leader), int(note.at_ms)
        if merged and (merged[-1][0] == leader or axis.x(merged[-1][2]) - axis.x(merged[-1][1]) < 0.5):
            at_ms = merged.pop()[1]
        merged.append((leader, at_ms, end_ms))
        if len(note.state.isr) < outcome.options.settings.min_isr:
            left, width = axis.x(note.at_ms), axis.x(end_ms) - axis.x(note.at_ms)
            yield node("rect", class_="low", x=left, y=top + 19, width=f"{width:.1f}", height=3)
    for leader, at_ms, end_ms in merged:
        left, width = axis.x(at_ms), axis.x(end_ms) - axis.x(at_ms)
        kind = "none" if leader == NO_LEADER else f"b{leader % len(CATEGORIES)}"
        yield node("rect", class_=kind, x=left, y=top + 2, width=f"{width:.1f}", height=16)
        if leader != NO_LEADER and width > 14:
            yield node("text", str(leader), class_="on", x=left + 4, y=top + 14)
