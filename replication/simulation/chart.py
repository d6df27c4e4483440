"""One run as a picture: who led when, how many were in sync, how far the partition was committed, and the faults.
 It decides what a reader sees at a glance: for each partition a band of leaders (one colour a broker, hatched grey
for nobody), below it the size of the ISR as steps with min.insync.replicas as a dashed line, below it the high
watermark; faults are thin red lines across all of it, numbered where they are listed at the foot.

Constraints: SVG without scripts and without anything from outside; the same outcome gives the same bytes. Colours
are those of Okabe and Ito, which people of every colour vision can tell apart, and each band carries its leader's
number as well.

Left out: zooming.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from broker.ids import NO_LEADER
from replication.simulation.recording import StateNote
from replication.simulation.run import Outcome

_COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_WIDTH: Final = 1_000
_LEFT: Final = 150
_BAND: Final = 26
_STEPS: Final = 50
_LINE: Final = 70
_PANEL: Final = 30 + _BAND + _STEPS + _LINE + 30
_TOP: Final = 60
_ROW: Final = 14


def to_svg(outcome: Outcome) -> str:
    """Return the picture of a run as an SVG document."""
    partitions = range(outcome.options.partitions)
    height = _TOP + _PANEL * len(partitions) + 40 + _ROW * (len(outcome.plan) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 30} {height}" '
        'font-family="sans-serif" font-size="11">',
        f"<title>{escape(_heading(outcome))}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="20" y="24" font-size="15">{escape(_heading(outcome))}</text>',
    ]
    for place, partition in enumerate(partitions):
        parts.extend(_panel(outcome, partition, _TOP + place * _PANEL))
    parts.extend(_faults(outcome, _TOP + _PANEL * len(partitions)))
    return "\n".join([*parts, "</svg>", ""])


def _heading(outcome: Outcome) -> str:
    verdict = "nothing is broken" if outcome.is_clean else f"BROKEN: {outcome.findings[0].code}"
    return f"seed {outcome.options.seed}, {outcome.options.name}, {outcome.simulated_ms / 1_000:g} s: {verdict}"


def _x(outcome: Outcome, at_ms: int) -> float:
    return round(_LEFT + _WIDTH * at_ms / max(1, outcome.simulated_ms), 1)


def _panel(outcome: Outcome, partition: int, top: int) -> Iterator[str]:
    notes = [note for note in outcome.recording.states if note.partition == partition]
    ends = [*(note.at_ms for note in notes[1:]), outcome.simulated_ms]
    yield f'<text x="20" y="{top + 12}" font-size="13">partition {partition}</text>'
    yield f'<text x="20" y="{top + 42}">leader</text>'
    yield from _leaders(outcome, notes, ends, top + 25)
    yield f'<text x="20" y="{top + 80}">replicas in sync</text>'
    yield from _isr(outcome, notes, ends, top + 25 + _BAND + _STEPS)
    yield f'<text x="20" y="{top + 140}">high watermark</text>'
    yield from _highs(outcome, partition, top + 30 + _BAND + _STEPS + _LINE)


def _leaders(outcome: Outcome, notes: list[StateNote], ends: Sequence[int], top: int) -> Iterator[str]:
    for note, end_ms in zip(notes, ends, strict=True):
        leader = note.state.leader
        left, width = _x(outcome, note.at_ms), _x(outcome, end_ms) - _x(outcome, note.at_ms)
        colour = "#dddddd" if leader == NO_LEADER else _COLOURS[leader % len(_COLOURS)]
        yield f'<rect x="{left}" y="{top}" width="{width:.1f}" height="{_BAND - 6}" fill="{colour}"/>'
        if width > 14:
            name = "none" if leader == NO_LEADER else str(leader)
            yield f'<text x="{left + 3}" y="{top + 14}" fill="#000000">{name}</text>'


def _isr(outcome: Outcome, notes: list[StateNote], ends: Sequence[int], bottom: int) -> Iterator[str]:
    unit = (_STEPS - 10) / outcome.options.replication_factor
    points = []
    for note, end_ms in zip(notes, ends, strict=True):
        y = round(bottom - unit * len(note.state.isr), 1)
        points += [f"{_x(outcome, note.at_ms)},{y}", f"{_x(outcome, end_ms)},{y}"]
    least = round(bottom - unit * outcome.options.terms.min_isr, 1)
    yield f'<path d="M{_LEFT},{bottom} H{_LEFT + _WIDTH}" stroke="#cccccc"/>'
    yield f'<path d="M{_LEFT},{least} H{_LEFT + _WIDTH}" stroke="#999999" stroke-dasharray="4 3"/>'
    yield f'<text x="{_LEFT - 26}" y="{least + 4}">min</text>'
    yield f'<polyline points="{" ".join(points)}" fill="none" stroke="#000000" stroke-width="1.5"/>'


def _highs(outcome: Outcome, partition: int, bottom: int) -> Iterator[str]:
    notes = [note for note in outcome.recording.highs if note.partition == partition]
    most = max([1, *(note.high_watermark for note in notes)])
    points, y = [], float(bottom)
    for note in notes:
        x = _x(outcome, note.at_ms)
        points.append(f"{x},{y}")
        y = round(bottom - (_LINE - 10) * note.high_watermark / most, 1)
        points.append(f"{x},{y}")
    points.append(f"{_LEFT + _WIDTH},{y}")
    yield f'<path d="M{_LEFT},{bottom} H{_LEFT + _WIDTH}" stroke="#cccccc"/>'
    yield f'<text x="{_LEFT - 6}" y="{bottom - _LINE + 18}" text-anchor="end">{most}</text>'
    yield f'<polyline points="{" ".join(points)}" fill="none" stroke="#0072B2" stroke-width="1.5"/>'


def _faults(outcome: Outcome, top: int) -> Iterator[str]:
    for number, fault in enumerate(outcome.plan, start=1):
        x = _x(outcome, fault.at_ms)
        yield f'<path d="M{x},{_TOP - 12} V{top}" stroke="#D55E00" stroke-width="0.7" opacity="0.7"/>'
        height = _TOP - 14 - 8 * (number % 2)
        yield f'<text x="{x}" y="{height}" font-size="8" text-anchor="middle" fill="#a03c00">{number}</text>'
        seconds = f"{fault.at_ms / 1_000:.1f} s"
        what = f"{number}. {seconds}  {fault.kind.name.lower().replace('_', ' ')}, target {fault.target}"
        lasting = f", for {fault.for_ms / 1_000:.1f} s" if fault.for_ms else ""
        yield f'<text x="20" y="{top + 20 + _ROW * number}">{escape(what + lasting)}</text>'
    yield f'<text x="{_LEFT}" y="{top}">0 s</text>'
    yield f'<text x="{_LEFT + _WIDTH}" y="{top}" text-anchor="end">{outcome.simulated_ms / 1_000:g} s</text>'
