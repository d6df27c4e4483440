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
from broker.units import SECOND_MS
from broker.wording import counted, printable
from replication.groups.alone.group_run import GroupRun, table_rows

ROWS_MAX: Final = 120
_LEFT: Final = 120
_WIDTH: Final = 900
_RIGHT: Final = 24
_ROW: Final = 18
_BAR: Final = 14
_TOP: Final = 40
_PANEL_HEAD: Final = 30
_LINE: Final = 15
_LETTER: Final = 6.5
_TICKS_S: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 3_600, 7_200, 21_600)
"""Seconds between two ticks of the axis."""
_ROLES: Final = ("page", "ink", "quiet", "rule", "accent")
_RULES: Final = (
    ".run text{font-size:11px}.run .title{font-size:15px}.run .mode{font-size:13px}.run .axis{stroke:var(--quiet)}"
    ".run .name{font-size:9.5px}.run .event{stroke:var(--accent);stroke-width:.8;stroke-dasharray:4 2}"
)


def to_svg(group_runs: Sequence[GroupRun]) -> str:
    """Return the picture of one scenario under several protocols as an SVG document."""
    scenario, marks = group_runs[0].scenario, group_runs[0].marks
    partitions = sorted({span.partition for group_run in group_runs for span in group_run.spans})
    members = sorted({span.member for group_run in group_runs for span in group_run.spans})
    shown = partitions[:ROWS_MAX]
    panel = _PANEL_HEAD + _ROW * (len(shown) + 1)
    foot = _TOP + panel * len(group_runs)
    colours = {member: category(place) for place, member in enumerate(members)}
    axis = TimeAxis(scenario.duration_ms, left=_LEFT, width=_WIDTH, ticks_s=_TICKS_S)
    heading = f"{printable(scenario.name)}: {printable(scenario.title)}"
    parts = [node("text", heading, class_="title", x=20, y=24)]
    for place, group_run in enumerate(group_runs):
        parts.extend(_panel(group_run, shown, colours, axis, _TOP + place * panel))
    for at_ms in axis.ticks():
        parts.append(node("path", class_="axis", d=f"M{axis.x(at_ms)} {foot}v4"))
        parts.append(node("text", axis.name(at_ms), x=axis.x(at_ms), y=foot + 16, text_anchor="middle"))
    lines = [f"at {mark.at_ms / SECOND_MS:,.1f} s: {printable(mark.text)}" for mark in marks]
    if len(partitions) > len(shown):
        lines.append(f"and {counted(len(partitions) - len(shown), 'partition')} more, not shown")
    foot += 2 * _LINE
    parts += [node("text", line, x=_LEFT, y=foot + _LINE * place) for place, line in enumerate(lines, start=1)]
    size = (_LEFT + _WIDTH + _RIGHT, foot + _LINE * (len(lines) + 1))
    return (
        svg.document("run", f"Owners over time: {heading}", size, svg.style("run", *_ROLES, rules=_RULES), parts) + "\n"
    )


def to_html(group_runs: Sequence[GroupRun]) -> str:
    """Return the picture with the scenario and its figures as a page that opens offline."""
    scenario = group_runs[0].scenario
    heads = [join(one.protocol.value, tag("br"), tag("small", printable(one.assignor))) for one in group_runs]
    rows = [(printable(name), *cells) for name, cells in table_rows(group_runs)]
    return offline_page(
        printable(scenario.name),
        tag("figure", Markup("\n" + to_svg(group_runs))),
        tag("p", printable(scenario.how)),
        *table(("", *heads), rows, texts=(0,)),
    )


def _panel(
    group_run: GroupRun, partitions: Sequence[TopicPartition], colours: dict[str, str], axis: TimeAxis, top: int
) -> Iterator[Markup]:
    """Yield one protocol's rows; where two members own a partition, the newer one is drawn above the older."""
    figures = group_run.figures
    summary = f"{group_run.protocol.value} {group_run.assignor}: {counted(figures['rebalance_count'], 'rebalance')}, "
    summary += f"{counted(figures['move_count'], 'move')}, unowned {figures['unowned_ms'] / SECOND_MS:,.1f} s"
    yield node("text", printable(summary), class_="mode", x=20, y=top + 16)
    first = top + _PANEL_HEAD
    rows = {partition: first + place * _ROW for place, partition in enumerate(partitions)}
    for partition, y in rows.items():
        name = printable(str(partition))
        yield node("text", name if len(name) <= 15 else "…" + name[-14:], x=_LEFT - 8, y=y + 10, text_anchor="end")
    for span in group_run.spans:
        if (row := rows.get(span.partition)) is None:
            continue
        left, width = axis.exact(span.start_ms), axis.exact(span.end_ms) - axis.exact(span.start_ms)
        colour, name = colours[span.member], printable(span.member)
        yield node("rect", x=f"{left:.1f}", y=row, width=f"{width:.1f}", height=_BAR, fill=colour)
        if width > _LETTER * len(name) + 8:
            yield node("text", name, class_="name", x=f"{left + 4:.1f}", y=row + 9.5, style=f"fill:{ink_on(colour)}")
    for mark in group_run.marks:
        yield node("path", class_="event", d=f"M{axis.exact(mark.at_ms):.1f} {first - 2}V{first + _ROW * len(rows)}")
