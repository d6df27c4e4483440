"""Draw texts, lines and a titled figure inside an HTML page."""

from __future__ import annotations

from typing import Final

from broker.drawing.element import Content, Markup, tag
from broker.drawing.scale import number

WIDTH: Final = 760


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
