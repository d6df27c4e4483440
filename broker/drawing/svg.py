"""Wrap a drawing as a self-contained SVG document that follows the reader's light or dark setting."""

from __future__ import annotations

from collections.abc import Iterable

from broker.drawing.element import Markup, asset, lines, node
from broker.drawing.palette import themed


def style(class_: str, *roles: str, rules: str = "") -> str:
    """Return the style sheet of documents of `class_`: the palette's roles, the common rules, then `rules`."""
    common = (
        f".{class_}{{font:12px system-ui,sans-serif;background:var(--page)}}.{class_} text{{fill:var(--ink)}}"
        f".{class_} .page{{fill:var(--page)}}"
        f".{class_} .q{{fill:var(--quiet)}}.{class_} .h{{font-size:14px;font-weight:600}}"
    )
    return themed(":root", *roles) + common + rules


def document(
    class_: str,
    title: str,
    size: tuple[float, float],
    style_sheet: str,
    parts: Iterable[Markup],
) -> str:
    """Return the document, without a final line end; it is as wide as its page."""
    width, height = size
    head = Markup(node("title", title).text + asset("style", style_sheet).text)
    return node(
        "svg",
        Markup("\n"),
        lines(head, node("rect", width="100%", height="100%", class_="page"), *parts),
        Markup("\n"),
        xmlns="http://www.w3.org/2000/svg",
        class_=class_,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=title,
    ).text
