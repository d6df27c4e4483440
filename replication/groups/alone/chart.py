"""Draw the owner of each partition over time: one panel per protocol, all on one time axis.

Constraints: no script and nothing from outside; the same runs give the same bytes; names come from outside and are
escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from broker.drawing import svg
from broker.drawing.element import Markup, join, node, tag
from broker.drawing.page import offline_page, table
from broker.drawing.palette import category, ink_on
from broker.drawing.time_axis import TimeAxis
from broker.ids import TopicPartition
from broker.printable import printable
from broker.units import SECOND_MS
from broker.wording import counted
from replication.groups.alone.group_run import GroupRun
from replication.groups.alone.ledger import Mark, OwnershipSpan
from replication.groups.alone.table import figures

ROWS_MAX: Final = 120
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
_TICKS_S: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 3_600, 7_200, 21_600)
"""Seconds between two ticks of the axis."""
_ROLES: Final = ("page", "ink", "quiet", "rule", "accent")
_RULES: Final = (
    ".run text{font-size:11px}.run .title{font-size:15px}.run .mode{font-size:13px;font-weight:600}"
    ".run .mode .q{font-size:11px;font-weight:400}.run .frame{fill:none;stroke:var(--quiet);stroke-opacity:.6}"
    ".run .axis{stroke:var(--quiet)}.run .rebalance{fill:var(--ink)}.run .name{font-size:9.5px}"
    ".run .event{stroke:var(--accent);stroke-width:.8;stroke-dasharray:4 2}.run .event-number{fill:var(--accent)}"
    ".run .claim{stroke:#000000;stroke-width:.5}"
)


def to_svg(group_runs: Sequence[GroupRun]) -> str:
    """Return the picture of one scenario under several protocols as an SVG document."""
    scenario = group_runs[0].scenario
    partitions = sorted({span.partition for group_run in group_runs for span in group_run.spans})
    members = sorted({span.member for group_run in group_runs for span in group_run.spans})
    shown = partitions[:ROWS_MAX]
    panel = _PANEL_HEAD + _ROW * len(shown) + _PANEL_FOOT
    marks = group_runs[0].marks
    foot = _HEAD + panel * len(group_runs)
    height = foot + _AXIS + _LINE * (len(marks) + 2)
    colours = {member: category(place) for place, member in enumerate(members)}
    axis = TimeAxis(scenario.duration_ms, left=_LEFT, width=_WIDTH, ticks_s=_TICKS_S)
    name, title = printable(scenario.name), printable(scenario.title)
    parts = [node("text", f"{name}: {title}", class_="title", x=20, y=24), *_legend(colours)]
    for place, group_run in enumerate(group_runs):
        parts.extend(_panel(group_run, shown, colours, axis, _HEAD + place * panel))
    parts.extend(_numbers(axis, marks))
    parts.extend(_axis(axis, foot))
    parts.extend(_list(marks, len(partitions) - len(shown), foot + _AXIS))
    style = svg.style("run", *_ROLES, rules=_RULES)
    heading = f"Owners of partitions over time: {name}, {title}"
    return svg.document("run", heading, (_LEFT + _WIDTH + _RIGHT, height), style, parts) + "\n"


def to_html(group_runs: Sequence[GroupRun]) -> str:
    """Return the picture with the scenario and its figures as a page that opens offline."""
    scenario = group_runs[0].scenario
    heads = [
        join(group_run.protocol.value, tag("br"), tag("small", printable(group_run.assignor)))
        for group_run in group_runs
    ]
    rows = [(printable(name), *cells) for name, cells in figures(group_runs)]
    return offline_page(
        printable(scenario.name),
        tag("figure", Markup("\n" + to_svg(group_runs))),
        tag("p", printable(scenario.how)),
        *table(("", *heads), rows, texts=(0,)),
    )


def _legend(colours: dict[str, str]) -> Iterator[Markup]:
    left = float(_LEFT)
    for member, colour in colours.items():
        name = printable(member)
        width = 16 + _LETTER * len(name) + 14
        if left + width > _LEFT + _WIDTH:
            yield node("text", "…", x=f"{left:.1f}", y=47)
            return
        yield node("rect", x=f"{left:.1f}", y=38, width=11, height=11, fill=colour)
        yield node("text", name, x=f"{left + 16:.1f}", y=47)
        left += width


def _panel(
    group_run: GroupRun, partitions: Sequence[TopicPartition], colours: dict[str, str], axis: TimeAxis, top: int
) -> Iterator[Markup]:
    summary = f"{group_run.assignor}; unowned {group_run.unowned_ms / SECOND_MS:,.1f} s over all partitions"
    summary += f"; {counted(group_run.rebalance_count, 'rebalance')}, {counted(group_run.move_count, 'move')}"
    summary += f", {group_run.return_count} given up and got back"
    shown = node("tspan", printable(summary), class_="q")
    yield node("text", f"{group_run.protocol.value} ", shown, class_="mode", x=20, y=top + 16)
    first = top + _PANEL_HEAD
    bottom = first + _ROW * len(partitions) - (_ROW - _BAR)
    yield node("rect", class_="frame", x=_LEFT, y=first - 2, width=_WIDTH, height=bottom - first + 4)
    for at_ms in group_run.generations_ms:
        yield node("path", class_="rebalance", d=f"M{axis.exact(at_ms) - 3:.1f} {first - 8}h6l-3 5z")
    spans: dict[TopicPartition, list[OwnershipSpan]] = {}
    for span in group_run.spans:
        spans.setdefault(span.partition, []).append(span)
    for place, partition in enumerate(partitions):
        y = first + place * _ROW
        yield node("text", printable(_short(str(partition))), x=_LEFT - 8, y=y + 10, text_anchor="end")
        for span in spans.get(partition, []):
            yield from _span(span, colours[span.member], axis, y)
        yield from _zombies(spans.get(partition, []), colours, axis, y)
    for mark in group_run.marks:
        yield node("path", class_="event", d=f"M{axis.exact(mark.at_ms):.1f} {first - 2}V{bottom + 2}")


def _span(span: OwnershipSpan, colour: str, axis: TimeAxis, y: int) -> Iterator[Markup]:
    left, right = axis.exact(span.start_ms), axis.exact(span.end_ms)
    yield node("rect", x=f"{left:.1f}", y=y, width=f"{right - left:.1f}", height=_BAR, fill=colour)
    name = printable(span.member)
    if right - left > _LETTER * len(name) + 8:
        yield node("text", name, class_="name", x=f"{left + 4:.1f}", y=y + 9.5, style=f"fill:{ink_on(colour)}")


def _zombies(spans: Sequence[OwnershipSpan], colours: dict[str, str], axis: TimeAxis, y: int) -> Iterator[Markup]:
    """Yield the strip of the older owner for as long as a newer one owns the partition too."""
    for older in spans:
        for newer in spans:
            if older.start_ms < newer.start_ms < older.end_ms:
                left, right = axis.exact(newer.start_ms), axis.exact(min(older.end_ms, newer.end_ms))
                yield node(
                    "rect",
                    class_="claim",
                    x=f"{left:.1f}",
                    y=y + _BAR - _STRIP,
                    width=f"{right - left:.1f}",
                    height=_STRIP,
                    fill=colours[older.member],
                )


def _numbers(axis: TimeAxis, marks: Sequence[Mark]) -> Iterator[Markup]:
    """Yield the numbers of events above all panels; a number that would cover the one before is left to the list."""
    free = 0.0
    for number, mark in enumerate(marks, start=1):
        x = axis.exact(mark.at_ms)
        if x >= free:
            yield node("text", number, class_="event-number", x=f"{x:.1f}", y=_HEAD - 3, text_anchor="middle")
            free = x + 8 + _LETTER * len(str(number))


def _axis(axis: TimeAxis, top: int) -> Iterator[Markup]:
    yield node("path", class_="axis", d=f"M{_LEFT} {top}H{_LEFT + _WIDTH}")
    for at_ms in axis.ticks():
        yield node("path", class_="axis", d=f"M{axis.x(at_ms)} {top}v4")
        yield node("text", axis.name(at_ms), x=axis.x(at_ms), y=top + 16, text_anchor="middle")


def _list(marks: Sequence[Mark], hidden: int, top: int) -> Iterator[Markup]:
    for number, mark in enumerate(marks, start=1):
        seconds = f" at {mark.at_ms / SECOND_MS:,.1f} s: {printable(mark.text)}"
        yield node("text", node("tspan", number, class_="event-number"), seconds, x=_LEFT, y=top + _LINE * number)
    if hidden:
        y = top + _LINE * (len(marks) + 1)
        yield node("text", f"and {counted(hidden, 'partition')} more, not shown", x=_LEFT, y=y)


def _short(text: str) -> str:
    return text if len(text) <= 15 else "…" + text[-14:]
