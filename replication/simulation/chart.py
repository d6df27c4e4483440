"""Draw one simulated run: planned faults, leaders, ISR sizes and high watermarks on one axis of time.

What it decides: what a reader sees at a glance, from the top down: one row a broker with its planned faults; then for
each partition its leaders (one colour a broker, and its number), the size of the ISR with min.insync.replicas as a
dashed line, and the high watermark. A broken invariant is a heavy line across all of them. Of more than
`PANEL_COUNT_MAX` partitions each is one band: the leaders, with a stripe below while the ISR is too small.

Constraints: no script and nothing from outside; the same outcome gives the same bytes; the size is bounded by the width
of the picture, not by the length of the run.

How: of changes closer than half a pixel, bands show the last one, lines of steps the lowest, the highest and the last.

Left out: zooming; partitions beyond `BAND_COUNT_MAX`, of which those that changed most are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.drawing import svg
from broker.drawing.element import Markup, join, node
from broker.drawing.palette import CATEGORIES
from broker.drawing.time_axis import TimeAxis, stepped
from broker.ids import NO_LEADER
from broker.wording import counted
from replication.simulation.chart_faults import LEFT, RIGHT, WIDTH, fault_rows, rows_height
from replication.simulation.recording import StateNote
from replication.simulation.run import Outcome

PANEL_COUNT_MAX: Final = 8
BAND_COUNT_MAX: Final = 200
_TOP: Final = 98
_PANEL: Final = 168
_BAND: Final = 18
_ROLES: Final = ("page", "ink", "quiet", "rule", "accent", "link", "blank")
_RULES: Final = (
    ".run .on{fill:#000000;font-size:11px}.run .axis{stroke:var(--rule)}"
    ".run .min{stroke:var(--quiet);stroke-dasharray:4 3}.run .step{fill:none;stroke:var(--ink);stroke-width:1.4}"
    ".run .high{fill:none;stroke:var(--link);stroke-width:1.6}.run .none{fill:var(--blank)}"
    ".run .low{fill:var(--accent)}"
    ".run .broken{stroke:var(--accent);stroke-width:2}.run .tell{fill:var(--accent);font-weight:600}"
    ".run .gone{fill:var(--ink)}.run .cut{fill:none;stroke:var(--ink);stroke-width:1.2}.run .slow{fill:var(--quiet)}"
    ".run .once{fill:none;stroke:var(--quiet);stroke-width:1.6}"
    + "".join(f".run .b{number}{{fill:{colour}}}" for number, colour in enumerate(CATEGORIES))
)


def to_svg(outcome: Outcome) -> str:
    """Return the picture of a run as an SVG document."""
    options = outcome.options
    axis = TimeAxis(int(outcome.simulated_ms), left=LEFT, width=WIDTH)
    shown = _shown(outcome)
    is_full = options.partition_count <= PANEL_COUNT_MAX
    panels_top = _TOP + rows_height(outcome)
    bottom = panels_top + (_PANEL if is_full else _BAND) * len(shown)
    hidden_count = options.partition_count - len(shown)
    parts = [
        node("text", heading(outcome), class_="h", x=16, y=24),
        *_legend(outcome),
        *_time_lines(axis, _TOP - 14, bottom),
        *fault_rows(outcome, axis, _TOP),
    ]
    for place, partition in enumerate(shown):
        if is_full:
            parts.extend(_panel(outcome, axis, partition, panels_top + place * _PANEL))
        else:
            parts.extend(_band(outcome, axis, partition, panels_top + place * _BAND))
    if hidden_count:
        hidden = counted(hidden_count, "partition")
        verb = "is" if hidden_count == 1 else "are"
        parts.append(_quiet(LEFT, bottom + 46, f"{hidden} that changed less {verb} not shown"))
    parts.extend(_findings(outcome, axis, bottom))
    size = (LEFT + WIDTH + RIGHT, bottom + (60 if hidden_count else 40))
    return svg.document("run", heading(outcome), size, svg.style("run", *_ROLES, rules=_RULES), parts) + "\n"


def heading(outcome: Outcome) -> str:
    """Return a run's seed, options and length, and its verdict, in one line."""
    lost_count = len(outcome.durability.lost_by_all)
    verdict = f"BROKEN: {outcome.findings[0].code}" if outcome.is_broken else "nothing is broken"
    if lost_count:
        verdict += f", {counted(lost_count, 'record')} acknowledged by all lost"
    return f"seed {outcome.options.seed}, {outcome.options.name}, {outcome.simulated_ms / 1_000:g} s: {verdict}"


def _shown(outcome: Outcome) -> list[int]:
    count = outcome.options.partition_count
    if count <= BAND_COUNT_MAX:
        return list(range(count))
    changes = dict.fromkeys(range(count), 0)
    for note in outcome.recording.states:
        changes[note.partition] = changes.get(note.partition, 0) + 1
    return sorted(sorted(changes, key=lambda each: (-changes[each], each))[:BAND_COUNT_MAX])


def _quiet(x: float, y: float, text: str, anchor: str | None = None) -> Markup:
    return node("text", text, class_="q", x=x, y=y, text_anchor=anchor)


def _time_lines(axis: TimeAxis, top: int, bottom: int) -> Iterator[Markup]:
    """Yield thin lines at round times, named below."""
    for at_ms in axis.ticks():
        x = axis.x(at_ms)
        yield node("path", class_="axis", d=f"M{x},{top} V{bottom + 4}")
        yield _quiet(x, bottom + 20, axis.name(at_ms), "middle")


def _legend(outcome: Outcome) -> Iterator[Markup]:
    yield _quiet(16, 50, "leaders")
    x = LEFT
    for broker in range(min(outcome.options.brokers, len(CATEGORIES))):
        yield node("rect", class_=f"b{broker}", x=x, y=39, width=14, height=14)
        yield node("text", f"broker {broker}", x=x + 19, y=50)
        x += 84
    if outcome.options.brokers > len(CATEGORIES):
        yield _quiet(x, 50, "then the colours begin again")
        x += 186
    yield join(node("rect", class_="none", x=x, y=39, width=14, height=14), node("text", "nobody", x=x + 19, y=50))
    if outcome.options.partition_count > PANEL_COUNT_MAX:
        yield node("rect", class_="low", x=LEFT, y=63, width=14, height=3)
        yield _quiet(LEFT + 19, 68, "fewer in sync than min.insync.replicas")


def partition_notes(outcome: Outcome, partition: int) -> list[tuple[StateNote, int]]:
    """Return each state of a partition with its end in milliseconds; none if the partition was never made."""
    notes = [note for note in outcome.recording.states if note.partition == partition]
    ends = [int(note.at_ms) for note in notes[1:]] + [int(outcome.simulated_ms)] * bool(notes)
    return list(zip(notes, ends, strict=True))


def _panel(outcome: Outcome, axis: TimeAxis, partition: int, top: int) -> Iterator[Markup]:
    notes = partition_notes(outcome, partition)
    yield node("path", class_="axis", d=f"M16,{top + 6} H{LEFT + WIDTH}")
    yield node("text", f"partition {partition}", class_="h", x=16, y=top + 32)
    yield _quiet(LEFT - 10, top + 32, "led by", "end")
    yield from _leaders(notes, axis, top + 18, 20)
    yield from _isr(outcome, notes, axis, top + 92)
    yield from _highs(outcome, axis, partition, top + 156)


def _band(outcome: Outcome, axis: TimeAxis, partition: int, top: int) -> Iterator[Markup]:
    notes = partition_notes(outcome, partition)
    yield _quiet(LEFT - 10, top + 14, f"partition {partition}", "end")
    yield from _leaders(notes, axis, top + 4, 8)
    least = outcome.options.settings.min_isr
    for note, end_ms in notes:
        left, width = axis.x(note.at_ms), axis.x(end_ms) - axis.x(note.at_ms)
        if len(note.state.isr) < least and width >= 0.5:
            yield node("rect", class_="low", x=left, y=top + 13, width=f"{width:.1f}", height=3)


def _leaders(notes: list[tuple[StateNote, int]], axis: TimeAxis, top: int, height: int) -> Iterator[Markup]:
    merged: list[tuple[int, int, int]] = []
    for note, end_ms in notes:
        leader = int(note.state.leader)
        if merged and (merged[-1][0] == leader or axis.x(merged[-1][2]) - axis.x(merged[-1][1]) < 0.5):
            merged[-1] = (leader, merged[-1][1], end_ms)
        else:
            merged.append((leader, int(note.at_ms), end_ms))
    for leader, at_ms, end_ms in merged:
        left, width = axis.x(at_ms), axis.x(end_ms) - axis.x(at_ms)
        kind = "none" if leader == NO_LEADER else f"b{leader % len(CATEGORIES)}"
        yield node("rect", class_=kind, x=left, y=top, width=f"{width:.1f}", height=height)
        name = "nobody" if leader == NO_LEADER else str(leader)
        if height >= 16 and width > 7 * len(name) + 6:
            yield node("text", name, class_="q" if leader == NO_LEADER else "on", x=left + 4, y=top + 14)


def _isr(outcome: Outcome, notes: list[tuple[StateNote, int]], axis: TimeAxis, bottom: int) -> Iterator[Markup]:
    unit = 40 / max(outcome.options.replication_factor, *(len(note.state.isr) for note, _ in notes), 1)
    steps = [(axis.x(note.at_ms), round(bottom - unit * len(note.state.isr), 1)) for note, _ in notes]
    least = round(bottom - unit * outcome.options.settings.min_isr, 1)
    yield node("path", class_="axis", d=f"M{LEFT},{bottom} H{LEFT + WIDTH}")
    yield node("path", class_="min", d=f"M{LEFT},{least} H{LEFT + WIDTH}")
    yield _quiet(LEFT - 10, bottom - 4, "in sync (replicas)", "end")
    yield _quiet(LEFT + WIDTH + 6, least + 4, f"min {outcome.options.settings.min_isr}")
    yield node("path", class_="step", d=stepped(steps, LEFT + WIDTH))


def _highs(outcome: Outcome, axis: TimeAxis, partition: int, bottom: int) -> Iterator[Markup]:
    notes = [note for note in outcome.recording.highs if note.partition == partition]
    most = max([1, *(note.high_watermark for note in notes)])
    steps = [(axis.x(note.at_ms), round(bottom - 46 * note.high_watermark / most, 1)) for note in notes]
    yield node("path", class_="axis", d=f"M{LEFT},{bottom} H{LEFT + WIDTH}")
    yield _quiet(LEFT - 10, bottom - 4, "committed (records)", "end")
    yield _quiet(LEFT + WIDTH + 6, bottom - 42, f"{most:,}")
    yield node("path", class_="high", d=stepped([(LEFT, bottom), *steps], LEFT + WIDTH))


def _findings(outcome: Outcome, axis: TimeAxis, bottom: int) -> Iterator[Markup]:
    seen: set[str] = set()
    for finding in outcome.findings:
        if finding.code not in seen:
            seen.add(finding.code)
            x = axis.x(finding.at_ms)
            yield node("path", class_="broken", d=f"M{x},{_TOP - 14} V{bottom}")
            yield node("text", finding.code, class_="tell", x=x, y=_TOP - 18, text_anchor="middle")
