"""Draw texts, lines and a titled figure inside an HTML page, with short coordinates and round axes."""

from __future__ import annotations

import math
from typing import Final

from markupsafe import Markup

from spark_analysis.report.markup import Content, tag

WIDTH: Final = 760


def number(value: float) -> str:
    """Return a coordinate as text with at most one decimal."""
    return "0" if abs(value) < 0.05 else f"{value:.1f}".removesuffix(".0")


def nice_axis(value: float) -> tuple[float, int]:
    """Return the end of an axis from 0 that holds `value`, and its number of equal steps: each 1, 2 or 5 tenfold."""
    if value <= 0:
        return 1.0, 4
    power = 10.0 ** math.floor(math.log10(value / 5))
    step = next(power * part for part in (1.0, 2.0, 5.0, 10.0) if power * part * 5 >= value * (1 - 1e-9))
    steps = math.ceil(value / step * (1 - 1e-9))
    return step * steps, steps


def clipped(name: str, length_max: int) -> str:
    """Return a label of at most `length_max` characters; end a longer one with an ellipsis.

    >>> clipped("orders-by-region", 8)
    'orders-…'
    """
    return name if len(name) <= length_max else name[: length_max - 1] + "…"


def text(x: float, y: float, *content: Content, anchor: str = "start", class_: str | None = None) -> Markup:
    """Return an SVG text of one line; `anchor` is "start", "middle" or "end"."""
    ends = None if anchor == "start" else anchor
    return tag("text", *content, x=number(x), y=number(y), text_anchor=ends, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Return a straight SVG line."""
    return tag("path", d=f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}", class_=class_)


def figure(identifier: str, title: str, description: str, height: float, *content: Content) -> Markup:
    """Return an SVG drawing with the title and the description that screen readers announce."""
    return tag(
        "svg",
        tag("title", title, id=f"{identifier}-t"),
        tag("desc", description, id=f"{identifier}-d"),
        *content,
        viewBox=f"0 0 {WIDTH} {number(height)}",
        role="img",
        aria_labelledby=f"{identifier}-t",
        aria_describedby=f"{identifier}-d",
        class_="chart",
    )
