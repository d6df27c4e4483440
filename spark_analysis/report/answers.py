"""Show the answers to the questions of `--ask`: a section of the page each, lines for a terminal, objects in JSON.

What it decides: the first table of an answer is in the terminal; the page has all tables, and what was assumed, with
the source of each number. A column that tells shapes or placers apart stands only where there are some to tell apart:
clusters of dumps have none. JSON has every column.

Example: answer_lines(report.answers) are the lines of all answers.

Left out: rows a cluster; the tables beside the page have them (answered.py reads them).

Source: questions/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs

from broker.drawing.element import Markup, tag, visible
from broker.units import format_size
from spark_analysis.questions.question import Cell, Field, ShownTable
from spark_analysis.report.answered import Answered
from spark_analysis.report.figures import UNKNOWN, count, decimal, percent, plural, ppm
from spark_analysis.report.parts import Header, folded, note, section, table
from spark_analysis.tables.view_rows import DUMP

_WRITERS: Final[Mapping[str, Callable[[float], str]]] = MappingProxyType(
    {
        "count": count,
        "decimal": decimal,
        "bytes": format_size,
        "percent": lambda share: percent(ppm(share)),
        "chance": lambda chance: f"{chance:.3g}",
    }
)
_OF_FLEETS: Final[Mapping[str, Cell]] = MappingProxyType({"shape": None, "placer": DUMP})
"""Columns that tell simulated clusters apart, and what stands in them for a dump."""


def written(value: Cell, kind: str) -> str:
    """Return a value as people read it.

    >>> written(1234, "count"), written(0.5, "percent"), written(0.00123456, "chance"), written(None, "count")
    ('1,234', '50.0 %', '0.00123', '–')
    """
    if value is None:
        return UNKNOWN
    if isinstance(value, str | bool):
        return str(value)
    return _WRITERS[kind](value)


def told_apart(shown: ShownTable) -> ShownTable:
    """Return the table without the columns of shapes and placers in which every row stands for a dump."""
    idle = [
        field.key in _OF_FLEETS and all(row[place] == _OF_FLEETS[field.key] for row in shown.rows)
        for place, field in enumerate(shown.fields)
    ]

    def kept(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(value for value, is_idle in zip(values, idle, strict=True) if not is_idle)

    return attrs.evolve(shown, fields=kept(shown.fields), rows=tuple(kept(row) for row in shown.rows))


def answer_sections(answers: Sequence[Answered]) -> list[Markup]:
    """Return a section of the page for each question."""
    return [_section(one) for one in answers]


def _section(one: Answered) -> Markup:
    return section(
        one.name,
        one.title,
        tag("p", one.shown.lead, class_="lead"),
        *(_table(told_apart(each)) for each in one.shown.tables if each.rows),
        *(note(line) for line in (*one.shown.refusals, *one.shown.notes, *_faults(one))),
        _assumptions(one),
    )


def _table(shown: ShownTable) -> Markup:
    headers = [Header(field.title, "text" if field.kind == "text" else "num") for field in shown.fields]
    return table(shown.caption, headers, _texts(shown))


def _texts(shown: ShownTable) -> list[list[str]]:
    """Return the rows as people read them."""
    columns = zip(shown.fields, zip(*shown.rows, strict=True), strict=False)
    written_columns = [[written(value, _kind(field, values)) for value in values] for field, values in columns]
    return [list(row) for row in zip(*written_columns, strict=True)]


def _kind(field: Field, values: Sequence[Cell]) -> str:
    """Return how the values of a column are written: means that are all whole without decimals."""
    if field.kind != "mean":
        return field.kind
    return "count" if all(float(value).is_integer() for value in values if value is not None) else "decimal"


def _faults(one: Answered) -> list[str]:
    if not one.fault_count:
        return []
    return [f"{plural(one.fault_count, 'row')} without an answer; one of them: {one.first_fault}"]


def _assumptions(one: Answered) -> Markup | None:
    known = [each for each in one.asked.question.assumptions if each.name in one.asked.values]
    if not known:
        return None
    headers = (
        Header("assumption", "name"),
        Header("value", "num"),
        Header("unit"),
        Header("meaning", "wide"),
        Header("default from", "wide"),
    )
    rows = [
        (
            tag("code", each.name, class_="whole"),
            _plain(one.asked.values[each.name]),
            each.unit,
            each.meaning,
            each.source,
        )
        for each in known
    ]
    return folded("What was assumed", table("Change one with --assume NAME=VALUE", headers, rows))


def _plain(value: float) -> str:
    return count(value) if float(value).is_integer() else f"{value:g}"


def answer_lines(answers: Sequence[Answered]) -> list[str]:
    """Return the lines for a terminal: of each question the headline and its first table, in columns."""
    lines: list[str] = []
    for one in answers:
        said = (*one.shown.refusals, *_faults(one))
        lines += ["", one.title, one.shown.lead, *_columns(told_apart(one.shown.tables[0])), *said]
    return [visible(line) for line in lines]


def _columns(shown: ShownTable) -> list[str]:
    if not shown.rows:
        return []
    cells = [[field.title for field in shown.fields]]
    cells += _texts(shown)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    texts = [field.kind == "text" for field in shown.fields]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(row, widths, texts, strict=True)
        ).rstrip()
        for row in cells
    ]


def answers_json(answers: Sequence[Answered]) -> dict[str, Any]:
    """Return each answer as objects: its headline, the rows of its tables by key, faults, and what was assumed."""
    return {
        one.name: {
            "headline": one.shown.lead,
            **{
                each.name: [dict(zip((field.key for field in each.fields), row, strict=True)) for row in each.rows]
                for each in one.shown.tables
            },
            "refusals": list(one.shown.refusals),
            "notes": list(one.shown.notes),
            "assumed": dict(one.asked.values),
            "fault_count": one.fault_count,
            "first_fault": one.first_fault,
        }
        for one in answers
    }
