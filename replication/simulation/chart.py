"""Draw one simulated run on one axis of time, as SVG, or as an HTML page with verdict, command and tables.

One row a broker shows its planned faults, one row a partition its leaders; a stripe marks the time with fewer in sync
than min.insync.replicas, a line across all rows a broken invariant. There is no script and nothing from outside; the
same outcome gives the same bytes. Of more than `ROW_COUNT_MAX` partitions those that changed most are drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from broker.drawing import svg
from broker.drawing.element import Markup, node, tag
from broker.drawing.page import offline_page, table
from broker.drawing.palette import CATEGORIES
from broker.drawing.time_axis import TimeAxis
from broker.ids import NO_LEADER
from broker.wording import counted
from replication.checkers import INVARIANTS
from replication.simulation.faults import OF_BROKERS, Fault
from replication.simulation.options import FaultKind
from replication.simulation.recording import StateNote
from replication.simulation.report import lost_text
from replication.simulation.run import Outcome

LEFT: Final = 150
WIDTH: Final = 960
ROW_COUNT_MAX: Final = 200
_RIGHT, _TOP, _FAULT_ROW, _ROW = 70, 98, 16, 26
_RULES: Final = (
    ".run .on{fill:#000000;font-size:11px}.run .axis{stroke:var(--rule)}.run .none{fill:var(--blank)}"
    ".run .low,.run .code{fill:var(--accent)}.run .broken{stroke:var(--accent);stroke-width:2}"
    ".run .fault{fill:var(--quiet)}"
    + "".join(f".run .b{number}{{fill:{colour}}}" for number, colour in enumerate(CATEGORIES))
)
_PARTITION_HEADS: Final = (
    "partition",
    "leaders elected",
    "without a leader (s)",
    "under min.insync.replicas (s)",
    "committed (records)",
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
        parts.append(node("text", code, class_="code", x=axis.x(at_ms), y=_TOP - 18, text_anchor="middle"))
    style = svg.style("run", "page", "ink", "quiet", "rule", "accent", "blank", rules=_RULES)
    return svg.document("run", heading(outcome), (LEFT + WIDTH + _RIGHT, bottom + 60), style, parts) + "\n"


def heading(outcome: Outcome) -> str:
    """Return a run's seed, options and length, and its verdict, in one line."""
    lost_count = len(outcome.durability.lost_by_all)
    verdict = f"BROKEN: {outcome.findings[0].code}" if outcome.is_broken else "nothing is broken"
    if lost_count:
        verdict += f", {counted(lost_count, 'record')} acknowledged by all lost"
    return f"seed {outcome.options.seed}, {outcome.options.name}, {outcome.simulated_ms / 1_000:g} s: {verdict}"


def _partition_notes(outcome: Outcome, partition: int) -> list[tuple[StateNote, int]]:
    """Return each state of a partition with its end in milliseconds; none if the partition was never created."""
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
    for note, end_ms in _partition_notes(outcome, partition):
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


def to_html(outcome: Outcome, command: str, options_lines: Sequence[str]) -> str:
    """Return a run as an HTML page; `command` repeats the run, `options_lines` name its options."""
    title = heading(outcome)
    faults = [
        (f"{each.at_ms / 1_000:,.1f}", each.kind.name.lower(), str(each.target), f"{each.for_ms / 1_000:,.1f}")
        for each in outcome.plan
    ]
    return offline_page(
        title,
        tag("h1", f"A simulated cluster: {title}"),
        *_verdict(outcome),
        tag("p", "Made by ", tag("code", command), "; the same command gives the same page."),
        tag("p", *((line, tag("br")) for line in options_lines[:-1]), *options_lines[-1:], class_="quiet"),
        tag("figure", Markup("\n" + to_svg(outcome))),
        *table(_PARTITION_HEADS, _partition_rows(outcome)),
        *(table(("at (s)", "planned fault", "target", "for (s)"), faults, texts=(1,)) if faults else ()),
    )


def _verdict(outcome: Outcome) -> Iterator[Markup]:
    if not outcome.is_broken:
        yield tag("p", "Nothing is broken: every invariant held at every step, and the cluster became whole again.")
    if lost := lost_text(outcome):
        yield tag("p", f"But {lost}." if not outcome.is_broken else f"And {lost}.", class_="alert")
    for finding in outcome.findings[:10]:
        known = INVARIANTS.get(finding.code)
        yield tag("p", str(finding) + (f" ({known.name}: {known.statement})" if known else ""), class_="alert")
    acked = counted(outcome.durability.acked_count, "record")
    yield tag("p", f"{counted(outcome.event_count, 'event')}; acknowledged by all: {acked}.")


def _partition_rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    for partition in range(outcome.options.partition_count):
        leaderless = short = elected = 0
        leader = NO_LEADER
        for note, end_ms in _partition_notes(outcome, partition):
            state = note.state
            leaderless += 0 if state.has_leader else end_ms - note.at_ms
            short += end_ms - note.at_ms if len(state.isr) < outcome.options.settings.min_isr else 0
            elected += state.has_leader and state.leader != leader
            leader = state.leader
        highs = [note.high_watermark for note in outcome.recording.highs if note.partition == partition]
        seconds = (f"{each / 1_000:,.1f}" for each in (leaderless, short))
        yield str(partition), f"{elected:,}", *seconds, f"{highs[-1] if highs else 0:,}"
