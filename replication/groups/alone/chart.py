"""Who owned which partition when, as a picture: protocols above each other on one axis of time.

It decides what a reader sees at a glance: one row a partition, one colour a member, white where nobody owned it. Events
of the scenario are thin red lines through the rows, numbered where they are listed at the foot; a small triangle
above the rows is a rebalance (a new generation or epoch). A strip at the foot of a row is a member that still takes
for its own what another one owns by now.

Constraints: SVG without scripts and without anything from outside; the same lives give the same bytes. Colours are
those of Okabe and Ito, which people of every colour vision can tell apart, and long spells carry their member's name
as well. Names are other people's data, and escaped.

Left out: zooming; partitions beyond `ROWS_MAX`, which are counted.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from broker.ids import TopicPartition
from broker.printable import printable
from broker.units import MINUTE_MS, SECOND_MS
from replication.groups.alone.ledger import Mark, Spell
from replication.groups.alone.life import Life
from replication.groups.alone.telling import figures

ROWS_MAX: Final = 120
_COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_DARK: Final = frozenset({"#0072B2", "#009E73", "#D55E00"})
_LEFT: Final = 120
_WIDTH: Final = 900
_RIGHT: Final = 24
_ROW: Final = 18
_BAR: Final = 14
_STRIP: Final = 4
_HEAD: Final = 66
_PANEL_HEAD: Final = 40
_PANEL_FOOT: Final = 14
_AXIS: Final = 34
_LINE: Final = 15
_LETTER: Final = 6.5
_TICKS_MAX: Final = 12
_STEPS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 3_600, 7_200, 21_600)
"""Seconds between two ticks of the axis."""


def to_svg(lives: Sequence[Life]) -> str:
    """Return the picture of lives of one scenario as an SVG document."""
    return "\n".join([*_svg(lives), ""])


def to_html(lives: Sequence[Life]) -> str:
    """Return the picture with the scenario and its figures as a page that opens offline."""
    scenario = lives[0].scenario
    names = "".join(f"<th>{escape(life.mode.value)}<br><small>{_text(life.assignor)}</small></th>" for life in lives)
    rows = "\n".join(
        f"<tr><th>{_text(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for name, cells in figures(lives)
    )
    style = (
        "body{font:14px/1.45 system-ui,sans-serif;margin:24px auto;max-width:1060px;color:#222;background:#fff}"
        "table{border-collapse:collapse;margin:16px 0}th,td{padding:2px 14px 2px 0;text-align:right;font-weight:400}"
        "thead th{border-bottom:1px solid #999;vertical-align:bottom}tbody th{text-align:left}small{color:#666}"
        "svg{width:100%;height:auto}"
    )
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            f"<title>{_text(scenario.name)}</title><style>{style}</style></head><body>",
            *_svg(lives),
            f"<p>{_text(scenario.how)}</p>",
            f"<table><thead><tr><th></th>{names}</tr></thead><tbody>\n{rows}\n</tbody></table>",
            "</body></html>",
            "",
        ]
    )


def _svg(lives: Sequence[Life]) -> Iterator[str]:
    scenario = lives[0].scenario
    partitions = sorted({spell.partition for life in lives for spell in life.spells})
    members = sorted({spell.member for life in lives for spell in life.spells})
    shown = partitions[:ROWS_MAX]
    panel = _PANEL_HEAD + _ROW * len(shown) + _PANEL_FOOT
    marks = lives[0].marks
    foot = _HEAD + panel * len(lives)
    height = foot + _AXIS + _LINE * (len(marks) + 2)
    colours = {member: _COLOURS[place % len(_COLOURS)] for place, member in enumerate(members)}
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + _RIGHT} {height}" '
        'font-family="system-ui, sans-serif" font-size="11" role="img">'
    )
    yield f"<title>Owners of partitions over time: {_text(scenario.name)}, {_text(scenario.title)}</title>"
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'
    yield f'<text x="20" y="24" font-size="15">{_text(scenario.name)}: {_text(scenario.title)}</text>'
    yield from _legend(colours)
    for place, life in enumerate(lives):
        yield from _panel(life, shown, colours, _HEAD + place * panel)
    yield from _numbers(scenario.duration_ms, marks)
    yield from _axis(scenario.duration_ms, foot)
    yield from _list(marks, len(partitions) - len(shown), foot + _AXIS)
    yield "</svg>"


def _legend(colours: dict[str, str]) -> Iterator[str]:
    left = float(_LEFT)
    for member, colour in colours.items():
        name = printable(member)
        width = 16 + _LETTER * len(name) + 14
        if left + width > _LEFT + _WIDTH:
            yield f'<text x="{left:.1f}" y="47">…</text>'
            return
        yield f'<rect x="{left:.1f}" y="38" width="11" height="11" fill="{colour}"/>'
        yield f'<text x="{left + 16:.1f}" y="47">{escape(name)}</text>'
        left += width


def _panel(life: Life, partitions: Sequence[TopicPartition], colours: dict[str, str], top: int) -> Iterator[str]:
    duration_ms = life.scenario.duration_ms
    summary = f"{life.assignor}; unowned {life.unowned_ms / SECOND_MS:,.1f} s over all partitions"
    summary += (
        f"; {life.rebalance_count} rebalances, {life.move_count} moves, {life.return_count} given up and got back"
    )
    yield (
        f'<text x="20" y="{top + 16}" font-size="13" font-weight="600">{life.mode.value} '
        f'<tspan font-weight="400" font-size="11" fill="#555555">{_text(summary)}</tspan></text>'
    )
    first = top + _PANEL_HEAD
    bottom = first + _ROW * len(partitions) - (_ROW - _BAR)
    frame = f'x="{_LEFT}" y="{first - 2}" width="{_WIDTH}" height="{bottom - first + 4}"'
    yield f'<rect {frame} fill="none" stroke="#bbbbbb"/>'
    for at_ms in life.generations_ms:
        x = _x(at_ms, duration_ms)
        yield f'<path d="M{x - 3:.1f} {first - 8}h6l-3 5z" fill="#444444"/>'
    spells: dict[TopicPartition, list[Spell]] = {}
    for spell in life.spells:
        spells.setdefault(spell.partition, []).append(spell)
    for place, partition in enumerate(partitions):
        y = first + place * _ROW
        yield f'<text x="{_LEFT - 8}" y="{y + 10}" text-anchor="end">{_text(_short(str(partition)))}</text>'
        for spell in spells.get(partition, []):
            yield from _spell(spell, colours[spell.member], y, duration_ms)
        yield from _zombies(spells.get(partition, []), colours, y, duration_ms)
    for mark in life.marks:
        x = _x(mark.at_ms, duration_ms)
        line = f'd="M{x:.1f} {first - 2}V{bottom + 2}"'
        yield f'<path {line} stroke="#cc2222" stroke-width="0.8" stroke-dasharray="4 2"/>'


def _spell(spell: Spell, colour: str, y: int, duration_ms: int) -> Iterator[str]:
    left, right = _x(spell.start_ms, duration_ms), _x(spell.end_ms, duration_ms)
    yield f'<rect x="{left:.1f}" y="{y}" width="{right - left:.1f}" height="{_BAR}" fill="{colour}"/>'
    name = printable(spell.member)
    if right - left > _LETTER * len(name) + 8:
        ink = "#ffffff" if colour in _DARK else "#000000"
        yield f'<text x="{left + 4:.1f}" y="{y + 9.5}" font-size="9.5" fill="{ink}">{escape(name)}</text>'


def _zombies(spells: Sequence[Spell], colours: dict[str, str], y: int, duration_ms: int) -> Iterator[str]:
    """The older owner's strip, as far as a newer one owns the partition too."""
    for older in spells:
        for newer in spells:
            if older.start_ms < newer.start_ms < older.end_ms:
                left, right = _x(newer.start_ms, duration_ms), _x(min(older.end_ms, newer.end_ms), duration_ms)
                yield (
                    f'<rect x="{left:.1f}" y="{y + _BAR - _STRIP}" width="{right - left:.1f}" height="{_STRIP}" '
                    f'fill="{colours[older.member]}" stroke="#000000" stroke-width="0.5"/>'
                )


def _numbers(duration_ms: int, marks: Sequence[Mark]) -> Iterator[str]:
    """The events' numbers above all; those that would lie upon each other are left to the list."""
    free = 0.0
    for number, mark in enumerate(marks, start=1):
        x = _x(mark.at_ms, duration_ms)
        if x >= free:
            place = f'x="{x:.1f}" y="{_HEAD - 3}"'
            yield f'<text {place} text-anchor="middle" fill="#aa0000" font-size="10">{number}</text>'
            free = x + 8 + _LETTER * len(str(number))


def _axis(duration_ms: int, top: int) -> Iterator[str]:
    steps = (step * SECOND_MS for step in _STEPS)
    step_ms = next((step for step in steps if duration_ms / step <= _TICKS_MAX), duration_ms // _TICKS_MAX)
    yield f'<path d="M{_LEFT} {top}H{_LEFT + _WIDTH}" stroke="#888888"/>'
    for at_ms in range(0, duration_ms + 1, step_ms):
        x = _x(at_ms, duration_ms)
        text = f"{at_ms // MINUTE_MS} min" if step_ms % MINUTE_MS == 0 else f"{at_ms // SECOND_MS} s"
        yield f'<path d="M{x:.1f} {top}v4" stroke="#888888"/>'
        yield f'<text x="{x:.1f}" y="{top + 16}" text-anchor="middle">{text}</text>'


def _list(marks: Sequence[Mark], hidden: int, top: int) -> Iterator[str]:
    for number, mark in enumerate(marks, start=1):
        seconds = mark.at_ms / SECOND_MS
        yield (
            f'<text x="{_LEFT}" y="{top + _LINE * number}"><tspan fill="#aa0000">{number}</tspan> '
            f"at {seconds:,.1f} s: {_text(mark.text)}</text>"
        )
    if hidden:
        y = top + _LINE * (len(marks) + 1)
        yield f'<text x="{_LEFT}" y="{y}">and {hidden} partitions more, not shown</text>'


def _x(at_ms: int, duration_ms: int) -> float:
    return _LEFT + _WIDTH * at_ms / duration_ms


def _short(text: str) -> str:
    return text if len(text) <= 15 else "…" + text[-14:]


def _text(text: str) -> str:
    return escape(printable(text))
