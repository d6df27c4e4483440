"""A study as an SVG picture and as an HTML page: a row for each cell, a column for each measure, dots with intervals.

Constraints: no script; one file that opens offline; texts are escaped; the same cells give the same bytes. A cell
without a finished run has its reason instead of dots. Not more than ROWS_MAX cells are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from broker.drawing import svg
from broker.drawing.element import Markup, node, tag
from broker.drawing.page import offline_page, table
from broker.drawing.scale import clipped, nice_axis, number
from broker.wording import counted
from replication.studies.study import Cell, Study, value_of

ROWS_MAX: Final = 400
_ROW: Final = 20
_TOP: Final = 84
_COLUMN: Final = 250
_GAP: Final = 64
_CHARACTER: Final = 6.4
_LABEL_MAX: Final = 90
_ROLES: Final = ("page", "ink", "quiet", "rule", "accent", "link")
_RULES: Final = (
    ".study .axis{stroke:var(--rule)}.study .range{stroke:var(--link);stroke-width:2}.study .dot{fill:var(--link)}"
    ".study .none{fill:var(--quiet);font-style:italic}"
)
_TITLES: Final = {
    "lost_share": "acknowledged writes lost",
    "unavailable_share": "time without writes",
    "leaderless_share": "time without a leader",
    "unclean_share": "elections that were unclean",
    "latency_mean_ms": "mean latency, ms",
    "latency_p99_ms": "latency, 99 %, ms",
    "latency_p50_ms": "median latency, ms",
    "factor": "replicas on disk",
}


def to_svg(study: Study, cells: Sequence[Cell]) -> str:
    """Return the picture of a study as an SVG document."""
    shown = cells[:ROWS_MAX]
    left = 24 + _CHARACTER * max(min(len(cell.label), _LABEL_MAX) for cell in shown)
    bottom = _TOP + _ROW * len(shown)
    done = counted(sum(cell.done_count for cell in cells), "run")
    hidden = f"; {len(cells) - ROWS_MAX:,} more cells are not shown" if len(cells) > ROWS_MAX else ""
    parts = [
        node("text", study.title, class_="h", x=16, y=26),
        node("text", f"{done} done; dots with intervals of 95 %{hidden}", class_="q", x=16, y=46),
    ]
    for place, cell in enumerate(shown):
        parts.append(node("text", clipped(cell.label, _LABEL_MAX), x=16, y=_TOP + place * _ROW + 4))
    for place, name in enumerate(study.measures):
        parts += _column(name, shown, left + place * (_COLUMN + _GAP), bottom)
    size = (math.ceil(left + len(study.measures) * (_COLUMN + _GAP)), bottom + 56)
    return svg.document("study", study.title, size, svg.style("study", *_ROLES, rules=_RULES), parts, fixed=True) + "\n"


def to_html(study: Study, cells: Sequence[Cell], command: str) -> str:
    """Return the page of a study; `command` is what repeats it."""
    heads = [*study.names, *(measure_title(name) for name in study.measures), "runs", "broken", "refused", "failed"]
    rows = [
        [
            *(value_of(cell.values.get(name, "")) for name in study.names),
            *(value_text(name, cell.estimates[name].value) for name in study.measures),
            *(f"{count:,}" for count in (cell.done_count, cell.broken_count, cell.refused_count, cell.failed_count)),
        ]
        for cell in cells
    ]
    reasons = dict.fromkeys(cell.reason for cell in cells if cell.reason)
    return offline_page(
        study.title,
        tag("h1", study.title),
        tag("p", study.about) if study.about else None,
        tag("p", "Again: ", tag("code", command), class_="quiet"),
        tag("figure", Markup(to_svg(study, cells))),
        tag("h2", "Cells"),
        *table(heads, rows, texts=tuple(range(len(study.names)))),
        *(tag("p", "Not as it should be: ", reason, class_="alert") for reason in reasons),
        tag("h2", "What is the same in all runs"),
        *table(("parameter", "value"), [(name, value_of(value)) for name, value in study.fixed.items()], texts=(0, 1)),
    )


def measure_title(name: str) -> str:
    """Return a measure in words."""
    return _TITLES.get(name, name.replace("_", " "))


def value_text(name: str, value: float) -> str:
    """Return a value with its unit: shares in per cent."""
    if math.isnan(value):
        return "–"
    if name.endswith("_share"):
        return f"{100 * value:.2f} %" if value else "0 %"
    return f"{value:,.1f}".removesuffix(".0")


def _column(name: str, cells: Sequence[Cell], left: float, bottom: int) -> Iterator[Markup]:
    """Yield one measure: its title, its axis, and a dot with its interval for each cell."""
    estimates = [cell.estimates[name] for cell in cells]
    known = [each.value if math.isnan(each.high) else each.high for each in estimates]
    end, steps = nice_axis(max((value for value in known if not math.isnan(value)), default=0.0))
    scale = _COLUMN / end
    yield node("text", measure_title(name), x=number(left), y=_TOP - 18)
    for step in range(steps + 1):
        x = number(left + _COLUMN * step / steps)
        yield node("path", class_="axis", d=f"M{x},{_TOP - 10} V{bottom}")
        text = value_text(name, end * step / steps).replace(".00 %", " %")
        yield node("text", text, class_="q", x=x, y=bottom + 18, text_anchor="middle")
    for place, (each, cell) in enumerate(zip(estimates, cells, strict=True)):
        y = _TOP + place * _ROW
        if math.isnan(each.value):
            reason = clipped(cell.reason or "nothing was counted", 40)
            yield node("text", reason, class_="none", x=number(left), y=number(y + 4))
            continue
        if not math.isnan(each.high):
            low, high = number(left + each.low * scale), number(left + each.high * scale)
            yield node("path", class_="range", d=f"M{low},{number(y)} H{high}")
        yield node("circle", class_="dot", cx=number(left + each.value * scale), cy=number(y), r=4)
