"""Render the page from the templates beside this module: one file that loads nothing.

Source: W3C Content Security Policy Level 3; WCAG 2.2 (skip link, headings, contrast).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, Final

import jinja2
from markupsafe import Markup

from placement.balance.definitions import DEFINITIONS
from spark_analysis.report import (
    advice,
    answers,
    broker_chart,
    detail,
    distance,
    figures,
    glossary,
    markup,
    moments,
    now,
    overview,
    ranking,
    shared,
    since,
    states,
)
from spark_analysis.report.commands import commands_of
from spark_analysis.report.distribution_chart import distribution
from spark_analysis.report.figure import clipped
from spark_analysis.report.model import QUANTITIES, Report
from spark_analysis.tables.limits import BYTES_TOLERANCE_PERCENT, OUTAGE_BROKERS_MAX

_KINDS: Final = {"#": "num", "!": "name", "~": "wide"}
_FORMATS: Final = (figures.count, figures.decimal, figures.percent, figures.plural, figures.ppm, figures.quantity)
_MODULES: Final = (
    advice,
    answers,
    broker_chart,
    detail,
    distance,
    glossary,
    moments,
    now,
    overview,
    ranking,
    shared,
    since,
)


def report_html(report: Report) -> str:
    """Return the whole page as text."""
    return rendered("page.html", report=report, script=_text("assets", "report.js"))


def rendered(template: str, **values: Any) -> str:
    """Return a template of the folder `templates`, filled with these values."""
    return _templates().get_template(template).render(values, style=_text("assets", "report.css"))


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _text("templates", name)),
        autoescape=True,
        finalize=_escaped,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # What the modules of the sections export is what their templates use.
    for module in _MODULES:
        environment.globals.update({name: getattr(module, name) for name in module.__all__})
    environment.globals.update({function.__name__: function for function in (*_FORMATS, figures.share_of)})
    environment.globals.update(
        asset=markup.asset,
        json_data=markup.json_data,
        content_hash=markup.content_hash,
        clipped=clipped,
        commands_of=commands_of,
        distribution=distribution,
        is_uneven=states.is_uneven,
        heads=heads,
        th=_cell("th", ' scope="row"'),
        td=_cell("td", ""),
        num=_cell("td", "", "num"),
        BYTES_TOLERANCE_PERCENT=BYTES_TOLERANCE_PERCENT,
        DEFINITIONS=DEFINITIONS,
        OUTAGE_BROKERS_MAX=OUTAGE_BROKERS_MAX,
        QUANTITIES=QUANTITIES,
    )
    return environment


def _text(folder: str, name: str) -> str:
    return (files("spark_analysis.report") / folder / name).read_text(encoding="utf-8")


def _escaped(value: Any) -> Any:
    """Return what an expression of a template writes: our markup as it is, any other text escaped and visible."""
    if value is None or hasattr(value, "__html__"):
        return "" if value is None else value
    return Markup(markup.escape(str(value)))


def heads(columns: str) -> list[tuple[str, str, str]]:
    """Return title, kind and definition of each column of a table.

    >>> heads("cluster|#CV (best)@cv")
    [('cluster', '', ''), ('CV (best)', 'num', 'cv')]
    """
    found = []
    for column in columns.split("|"):
        title, _, definition = column.partition("@")
        kind = _KINDS.get(title[0], "")
        found.append((title[1:] if kind else title, kind, definition))
    return found


def _cell(tag: str, attributes: str, kind: str = "") -> Callable[..., Markup]:
    """Return a function that writes a cell of a table.

    `order` is a number to sort by; a cell with `alert` has the accent colour.
    """
    unknown = f'<span class="unknown">{figures.UNKNOWN}</span>'

    def cell(shown: Any, order: float | None = None, alert: object = False, kind: str = kind) -> Markup:
        classes = " ".join(filter(None, (kind, "alert" if alert else "")))
        text = unknown if shown == figures.UNKNOWN else _escaped(shown)
        class_ = f' class="{classes}"' if classes else ""
        value = "" if order is None else f' data-v="{order:.10g}"'
        return Markup(f"<{tag}{attributes}{class_}{value}>{text}</{tag}>")

    return cell
