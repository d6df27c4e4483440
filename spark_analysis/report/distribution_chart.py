"""Draw the distribution over clusters of the share that would have to move, as SVG inside the page.

What it decides: one row for each group of clusters (a placer, a shape, or both) on one common axis that starts at the
optimum, so that two placers are compared at a glance: tall bars at the left are good. A group of one cluster is a dot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
from markupsafe import Markup

from spark_analysis.report.figure import clipped, figure, line, nice_axis, number, text
from spark_analysis.report.figures import percent
from spark_analysis.report.markup import Content, tag

BINS: Final = 36
_LABEL_WIDTH: Final = 196
_PLOT_RIGHT: Final = 560
_ROW_HEIGHT: Final = 40
_DOT_ROW_HEIGHT: Final = 22
_TOP: Final = 34
_COLUMNS: Final = ((622, "at optimum"), (688, "median"), (756, "worst"))


@attrs.frozen
class Group:
    """Hold one row of a distribution: its label, and one distance per cluster in parts per million, ascending."""

    label: str
    sublabel: str
    values: tuple[int, ...]

    @property
    def at_optimum_count(self) -> int:
        """Return the number of clusters with a distance of 0."""
        return sum(1 for value in self.values if value == 0)

    @property
    def median(self) -> int:
        """Return the middle distance, the lower one of two."""
        return self.values[(len(self.values) - 1) // 2]


def distribution(identifier: str, quantity: str, groups: Sequence[Group]) -> Markup:
    """Return the chart of `quantity` to move over clusters: one row per group, the optimum at the left."""
    dots = all(len(group.values) == 1 for group in groups)
    # A row with a label below its label needs the height of both.
    row_height = _DOT_ROW_HEIGHT if dots and not any(group.sublabel for group in groups) else _ROW_HEIGHT
    bottom = _TOP + row_height * len(groups)
    axis_max, steps = nice_axis(max((group.values[-1] for group in groups), default=0) / 10_000)
    scale = (_PLOT_RIGHT - _LABEL_WIDTH) / (axis_max * 10_000)
    drawn: list[Content] = [_axis(axis_max, steps, bottom, quantity)]
    peak = 1.0 if dots else max(_shares(group, axis_max).max() for group in groups)
    for place, group in enumerate(groups):
        base = _TOP + row_height * (place + 1)
        drawn.append(_dot_row(group, base, scale) if dots else _bar_row(group, base, axis_max, peak))
        drawn.append(_row_text(group, base - (7 if dots else 12), dots))
    drawn.append(_headings(dots))
    return figure(
        identifier,
        f"{quantity.capitalize()} to move until the load of brokers is the most even that can be reached",
        "; ".join(_in_words(group) for group in groups),
        bottom + 42,
        *drawn,
    )


def _in_words(group: Group) -> str:
    name = f"{group.label} {group.sublabel}".strip()
    return (
        f"{name}: {group.at_optimum_count} of {len(group.values)} at the optimum, "
        f"median {percent(group.median)}, worst {percent(group.values[-1])}"
    )


def _shares(group: Group, axis_max: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    counts, _ = np.histogram(np.array(group.values), bins=BINS, range=(0, axis_max * 10_000))
    shares: np.ndarray[tuple[int], np.dtype[np.float64]] = counts / len(group.values)
    return shares


def _bar_row(group: Group, base: float, axis_max: float, peak: float) -> Markup:
    step = (_PLOT_RIGHT - _LABEL_WIDTH) / BINS
    top = _ROW_HEIGHT - 8
    parts = []
    for place, share in enumerate(_shares(group, axis_max)):
        if share > 0:
            height = max(1.0, share / peak * top)
            left = _LABEL_WIDTH + place * step
            parts.append(f"M{number(left)} {number(base)}v-{number(height)}h{number(step - 1)}v{number(height)}z")
    return tag("g", line(_LABEL_WIDTH, base, _PLOT_RIGHT, base, "rule"), tag("path", d="".join(parts), class_="bar"))


def _dot_row(group: Group, base: float, scale: float) -> Markup:
    x, y = _LABEL_WIDTH + group.values[0] * scale, base - 11
    return tag(
        "g",
        line(_LABEL_WIDTH, y, _PLOT_RIGHT, y, "rule"),
        line(_LABEL_WIDTH, y, x, y, "stem"),
        tag("circle", cx=number(x), cy=number(y), r=4, class_="bar"),
    )


def _row_text(group: Group, y: float, dots: bool) -> Markup:
    parts: list[Content] = [text(0, y - (9 if group.sublabel else 0), clipped(group.label, 30), class_="strong")]
    if group.sublabel:
        parts.append(text(0, y + 6, clipped(group.sublabel, 34), class_="quiet"))
    if not dots:
        parts.append(text(_COLUMNS[0][0], y, f"{group.at_optimum_count}/{len(group.values)}", anchor="end"))
        parts.append(text(_COLUMNS[1][0], y, percent(group.median), anchor="end"))
    parts.append(text(_COLUMNS[2][0], y, percent(group.values[-1]), anchor="end"))
    return tag("g", *parts)


def _headings(dots: bool) -> Markup:
    shown = ((756, "to move"),) if dots else _COLUMNS
    return tag("g", *(text(x, 14, title, anchor="end", class_="quiet") for x, title in shown))


def _axis(axis_max: float, steps: int, bottom: float, quantity: str) -> Markup:
    ticks: list[Content] = []
    for place in range(steps + 1):
        x = _LABEL_WIDTH + (_PLOT_RIGHT - _LABEL_WIDTH) * place / steps
        if place:
            ticks.append(line(x, _TOP - 8, x, bottom + 4, "grid"))
        ticks.append(text(x, bottom + 18, f"{axis_max * place / steps:.3g}", anchor="middle", class_="quiet"))
    middle = (_LABEL_WIDTH + _PLOT_RIGHT) / 2
    return tag(
        "g",
        *ticks,
        line(_LABEL_WIDTH, 20, _LABEL_WIDTH, bottom + 4, "best"),
        text(_LABEL_WIDTH, 14, "best possible", anchor="middle", class_="best-label"),
        text(middle, bottom + 36, f"{quantity} to move, % of all {quantity} of the cluster", anchor="middle"),
    )
