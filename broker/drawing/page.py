"""Wrap a picture, paragraphs and tables as an HTML page that opens offline and can be printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from broker.drawing.element import Content, Markup, asset, join, lines, tag

STYLE: Final = (
    ":root{color-scheme:light dark}body{margin:0 auto;padding:2rem 1.5rem 4rem;max-width:78rem;background:var(--page);"
    "color:var(--ink);font:15px/1.5 system-ui,sans-serif}h1{margin:0;font-size:1.6rem}h2{margin:2.2rem 0 .5rem;"
    "font-size:1.15rem}p{max-width:50rem}.alert{color:var(--accent);font-weight:600}.quiet{color:var(--quiet)}"
    "figure{margin:1.5rem 0;overflow-x:auto}svg.run{display:block;width:100%;min-width:56rem}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.2rem 1.2rem .2rem 0;"
    "text-align:right;vertical-align:top}th{color:var(--quiet);font-weight:500;border-bottom:1px solid var(--rule)}"
    "td.t,th.t{text-align:left}code{font:.9em ui-monospace,monospace}"
    "@media print{body{max-width:none;padding:0}figure{overflow:visible}svg.run{min-width:0}}"
)
"""The style of the page around an SVG document of class `run`, which brings the colours along."""


def offline_page(title: str, *parts: Content) -> str:
    """Return an HTML page with `title` in its head; begin each part of the body on its own line."""
    head = lines(
        Markup("<head>"),
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        asset("style", STYLE),
        Markup("</head>"),
    )
    start = Markup('<!doctype html>\n<html lang="en">')
    return lines(start, head, Markup("<body>"), *parts, Markup("</body>"), Markup("</html>"), "").text


def table(
    heads: Sequence[Content], rows: Iterable[Sequence[Content]], *, texts: Sequence[int] = ()
) -> Iterator[Markup]:
    """Yield the lines of an HTML table; align the columns with an index in `texts` as text, others as numbers."""

    def cells(row: Sequence[Content], name: str) -> Markup:
        return join(*(tag(name, each, class_="t" if place in texts else None) for place, each in enumerate(row)))

    yield join(Markup("<table>\n"), tag("thead", tag("tr", cells(heads, "th"))), Markup("\n<tbody>"))
    for row in rows:
        yield tag("tr", cells(row, "td"))
    yield Markup("</tbody>\n</table>")
