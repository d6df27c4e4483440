"""Read the answers to the questions of `--ask` from the tables of a run, for the page, a terminal and JSON.

The first table of an answer is in the terminal; the page has all tables, and what was assumed. A column that tells
shapes or placers apart stands only where there are some to tell apart. JSON has every column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from broker.units import format_size
from spark_analysis.answers.question import Assumption, Cell, Field, Shown, ShownTable
from spark_analysis.answers.registry import Asked
from spark_analysis.report.figures import UNKNOWN, count, decimal, percent, plural, ppm
from spark_analysis.report.markup import visible
from spark_analysis.tables import schemas
from spark_analysis.tables.view_rows import DUMP
from spark_analysis.tables.write import read_table

__all__ = ("answer_heads", "assumed", "assumptions_of", "faults_of", "texts_of", "without_idle_columns")

_KEY: Final = ("cluster_id", "placer")
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
_OF_FLEETS: Final[Mapping[str, Cell]] = MappingProxyType({"shape": None, "placer": DUMP})
"""Columns that tell simulated clusters apart, and what stands in them for a dump."""


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
    names = read_table(out, schemas.CLUSTERS, columns=[*_KEY, *_NAMES])
    return tuple(_answered(one, read_table(out, one.question.run_table), names) for one in asked)


def _answered(asked: Asked, rows: pa.Table, names: pa.Table) -> Answered:
    named = _with_names(rows, names)
    faults = named.filter(pc.is_valid(named["fault"]))["fault"]
    return Answered(asked, asked.question.show(named, asked.values), len(faults), pc.min(faults).as_py())


def _with_names(rows: pa.Table, names: pa.Table) -> pa.Table:
    """Return the rows with the names of their clusters, in order of cluster and placer and else in their own."""
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    order: Any = [*((name, "ascending") for name in _KEY), ("row", "ascending")]
    return numbered.join(names, list(_KEY)).sort_by(order).drop_columns(["row"])


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


def without_idle_columns(shown: ShownTable) -> ShownTable:
    """Return the table without the columns of shapes and placers in which every row stands for a dump."""
    idle = [
        field.key in _OF_FLEETS and all(row[place] == _OF_FLEETS[field.key] for row in shown.rows)
        for place, field in enumerate(shown.fields)
    ]

    def kept(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(value for value, is_idle in zip(values, idle, strict=True) if not is_idle)

    return attrs.evolve(shown, fields=kept(shown.fields), rows=tuple(kept(row) for row in shown.rows))


def answer_heads(shown: ShownTable) -> str:
    """Return the heads of a table."""
    return "|".join(("" if field.kind == "text" else "#") + field.title for field in shown.fields)


def texts_of(shown: ShownTable) -> list[list[str]]:
    """Return the rows as people read them."""
    columns = zip(shown.fields, zip(*shown.rows, strict=True), strict=False)
    written_columns = [[written(value, _kind(field, values)) for value in values] for field, values in columns]
    return [list(row) for row in zip(*written_columns, strict=True)]


def _kind(field: Field, values: Sequence[Cell]) -> str:
    """Return how the values of a column are written: means that are all whole without decimals."""
    if field.kind != "mean":
        return field.kind
    return "count" if all(float(value).is_integer() for value in values if value is not None) else "decimal"


def faults_of(one: Answered) -> tuple[str, ...]:
    """Return how many rows have no answer, in words; nothing if all have one."""
    if not one.fault_count:
        return ()
    return (f"{plural(one.fault_count, 'row')} without an answer; one of them: {one.first_fault}",)


def assumptions_of(one: Answered) -> list[Assumption]:
    """Return the assumptions whose values an answer took."""
    return [each for each in one.asked.question.assumptions if each.name in one.asked.values]


def assumed(value: float) -> str:
    """Return the value of an assumption."""
    return count(value) if float(value).is_integer() else f"{value:g}"


def answer_lines(answers: Sequence[Answered]) -> list[str]:
    """Return the lines for a terminal: of each question the headline and its first table, in columns."""
    lines: list[str] = []
    for one in answers:
        said = (*one.shown.refusals, *faults_of(one))
        lines += ["", one.title, one.shown.lead, *_columns(without_idle_columns(one.shown.tables[0])), *said]
    return [visible(line) for line in lines]


def _columns(shown: ShownTable) -> list[str]:
    if not shown.rows:
        return []
    cells = [[field.title for field in shown.fields]]
    cells += texts_of(shown)
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
