"""Show the answers to the questions of `--ask`: a section of the page each, lines for a terminal, objects in JSON.

What it decides: the first table of an answer is in the terminal; the page has all tables, and what was assumed, with
the source of each number. Rows of a question are read whole: a few columns a cluster.

Example: load_answers(out, asked, clusters)[0].shown.lead

Left out: rows a cluster; the tables beside the page have them.

Source: questions/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from broker.drawing.element import Markup, tag, visible
from broker.units import format_size
from spark_analysis.questions.question import Cell, Field, Shown, ShownTable
from spark_analysis.questions.registry import Asked
from spark_analysis.report.figures import UNKNOWN, count, decimal, percent, plural, ppm
from spark_analysis.report.parts import Header, folded, note, section, table
from spark_analysis.tables import schemas
from spark_analysis.tables.write import read_table

_NAMES: Final = ("cluster", "shape")
_WRITERS: Final[Mapping[str, Callable[[float], str]]] = MappingProxyType(
    {
        "count": count,
        "decimal": decimal,
        "bytes": format_size,
        "percent": lambda share: percent(ppm(share)),
        "chance": lambda chance: f"{chance:.3g}",
    }
)


@attrs.frozen
class Answered:
    """Hold a question that was asked and what is shown of the answers; `faults` are clusters without an answer."""

    asked: Asked
    shown: Shown
    fault_count: int
    first_fault: str | None

    @property
    def name(self) -> str:
        """Return the name of the question, which is that of its section."""
        return self.asked.name

    @property
    def title(self) -> str:
        """Return the heading of the question's section."""
        return self.asked.question.title


def load_answers(out: Path, asked: Sequence[Asked]) -> tuple[Answered, ...]:
    """Return what is shown of each question, from its table under `out`; raise InputError for one that is missing."""
    if not asked:
        return ()
    keys = ["cluster_id", "placer"]
    names = read_table(out, schemas.CLUSTERS, columns=[*keys, *_NAMES])
    return tuple(_answered(one, read_table(out, one.question.run_table), names) for one in asked)


def _answered(asked: Asked, rows: pa.Table, names: pa.Table) -> Answered:
    order: Any = [("cluster_id", "ascending"), ("placer", "ascending")]
    joined = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64())).join(names, ["cluster_id", "placer"])
    joined = joined.sort_by([*order, ("row", "ascending")]).drop_columns(["row"])
    faults = joined.filter(pc.is_valid(joined["fault"]))["fault"]
    return Answered(asked, asked.question.show(joined, asked.values), len(faults), pc.min(faults).as_py())


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


def answer_sections(answers: Sequence[Answered]) -> list[Markup]:
    """Return a section of the page for each question."""
    return [_section(one) for one in answers]


def _section(one: Answered) -> Markup:
    return section(
        one.name,
        one.title,
        tag("p", one.shown.lead, class_="lead"),
        *(_table(each) for each in one.shown.tables),
        *(note(line) for line in (*one.shown.notes, *_faults(one))),
        _assumptions(one),
    )


def _table(shown: ShownTable) -> Markup:
    headers = [Header(field.title, "text" if field.kind == "text" else "num") for field in shown.fields]
    rows = [[written(value, field.kind) for value, field in _cells(shown.fields, row)] for row in shown.rows]
    return table(shown.caption, headers, rows)


def _cells(fields: Sequence[Field], row: Sequence[Cell]) -> list[tuple[Cell, Field]]:
    return list(zip(row, fields, strict=True))


def _faults(one: Answered) -> list[str]:
    if not one.fault_count:
        return []
    return [f"{plural(one.fault_count, 'row')} without an answer; one of them: {one.first_fault}"]


def _assumptions(one: Answered) -> Markup | None:
    known = [each for each in one.asked.question.assumptions if each.name in one.asked.values]
    if not known:
        return None
    headers = (Header("assumption"), Header("value", "num"), Header("unit"), Header("meaning"), Header("default from"))
    rows = [
        (tag("code", each.name), _plain(one.asked.values[each.name]), each.unit, each.meaning, each.source)
        for each in known
    ]
    return folded("What was assumed", table("Change one with --assume NAME=VALUE", headers, rows))


def _plain(value: float) -> str:
    return count(value) if float(value).is_integer() else f"{value:g}"


def answer_lines(answers: Sequence[Answered]) -> list[str]:
    """Return the lines for a terminal: of each question the headline and its first table, in columns."""
    lines: list[str] = []
    for one in answers:
        lines += ["", one.title, one.shown.lead, *_columns(one.shown.tables[0]), *_faults(one)]
    return [visible(line) for line in lines]


def _columns(shown: ShownTable) -> list[str]:
    cells = [[field.title for field in shown.fields]]
    cells += [[written(value, field.kind) for value, field in _cells(shown.fields, row)] for row in shown.rows]
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
    """Return each answer as objects: the rows of its tables by key, and what was assumed."""
    return {
        one.name: {
            **{
                each.name: [dict(zip((field.key for field in each.fields), row, strict=True)) for row in each.rows]
                for each in one.shown.tables
            },
            "assumed": dict(one.asked.values),
            "fault_count": one.fault_count,
        }
        for one in answers
    }
