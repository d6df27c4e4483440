"""Build the pieces that several sections of the page share: sections, tables, cells, notes.

What it decides: a table always has a caption and header cells with a scope, scrolls by itself on a narrow page, and can
be sorted by the page's script when it is `sortable`. A column is either text or numbers, for alignment and for sorting.

Example: table("Racks", (Header("rack"), Header("brokers", "num")), rows) with one tuple of cells a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from broker.drawing.element import Content, Markup, tag
from spark_analysis.report.figures import UNKNOWN


@attrs.frozen
class Header:
    """Define the head of one column: title, kind ("text", "name", "wide" or "num"), and the definition to link to."""

    title: str
    kind: str = "text"
    definition: str | None = None


@attrs.frozen
class Cell:
    """Define a cell with a value to sort by in `order`; with `alert` it is drawn in the accent colour."""

    content: Content
    order: float | None = None
    alert: bool = False


def section(identifier: str, title: str, *content: Content) -> Markup:
    """Return a section of the page with its heading."""
    heading = tag("h2", title, id=f"{identifier}-title")
    return tag("section", heading, *content, id=identifier, aria_labelledby=f"{identifier}-title")


def note(*content: Content) -> Markup:
    """Return a paragraph in the quiet colour."""
    return tag("p", *content, class_="note")


def definition_link(name: str, *content: Content) -> Markup:
    """Return a link to a definition in the glossary of the page."""
    return tag("a", *content, href=f"#def-{name}")


def table(
    caption: Content,
    headers: Sequence[Header],
    rows: Iterable[Sequence[Content | Cell]],
    *,
    sortable: bool = False,
    label: str | None = None,
) -> Markup:
    """Return a table in a box that scrolls; the first cell of each row is its header."""
    head = tag("tr", *(_head_cell(header) for header in headers))
    body = [tag("tr", *(_cell(headers, place, cell) for place, cell in enumerate(row))) for row in rows]
    drawn = tag(
        "table",
        tag("caption", caption),
        tag("thead", head),
        tag("tbody", *body),
        class_="sortable" if sortable else None,
    )
    name = label or (caption if isinstance(caption, str) else "Table")
    return tag("div", drawn, class_="scroll", role="region", tabindex=0, aria_label=name)


def _head_cell(header: Header) -> Markup:
    shown: Content = header.title
    if header.definition:
        shown = definition_link(header.definition, header.title)
    return tag("th", shown, scope="col", class_=None if header.kind == "text" else header.kind)


def _cell(headers: Sequence[Header], place: int, cell: Content | Cell) -> Markup:
    held = cell if isinstance(cell, Cell) else Cell(cell)
    classes = ["num"] if headers[place].kind == "num" else []
    if held.alert:
        classes.append("alert")
    shown = _unknown() if held.content == UNKNOWN else held.content
    order = None if held.order is None else f"{held.order:.10g}"
    class_ = " ".join(classes) or None
    if place == 0:
        return tag("th", shown, scope="row", class_=class_, data_v=order)
    return tag("td", shown, class_=class_, data_v=order)


def _unknown() -> Markup:
    return tag("span", UNKNOWN, class_="unknown")


def chart_box(drawn: Markup, label: str) -> Markup:
    """Return a drawing in a box that scrolls by itself, by keyboard too, on a narrow page."""
    return tag("div", drawn, class_="scroll", role="region", tabindex=0, aria_label=label)


def cluster_link(anchor: str | None, name: str) -> Content:
    """Return a cluster's name, linked to its place on the page when it has an anchor there."""
    return tag("a", name, href=f"#{anchor}") if anchor else name


def folded(summary: Content, *content: Content, identifier: str | None = None, open_: bool = False) -> Markup:
    """Return content folded under its summary; it opens without any script."""
    return tag("details", tag("summary", summary), *content, id=identifier, open=open_)


def brokers_in_racks(brokers: Sequence[int], racks: Sequence[str]) -> str:
    """Return brokers with their racks; a broker with an unknown rack stands alone.

    >>> brokers_in_racks([1, 3, 4], ["west", "east", ""])
    '1 (west), 3 (east), 4'
    """
    names = [*racks, *([""] * (len(brokers) - len(racks)))]
    return ", ".join(
        f"{broker} ({rack})" if rack else str(broker) for broker, rack in zip(brokers, names, strict=False)
    )
