"""Define a question: its table, its assumptions, its answer for one cluster, and what is shown of many clusters.

What it decides: one definition serves the DataFrame function, the command and the page. `answer` turns one ClusterView
into the rows of the question's table, without the key; `show` turns the rows of all clusters into a few small tables,
which the terminal prints, `--json` holds as objects, and the page draws as a section.

Constraints: `answer` and `show` are functions of a module, so that executors can load them by name; they depend on
their arguments alone. A cluster that cannot be answered is a row with a `fault`. The name of a question is the name of
its table. An assumption is a number with a unit, limits, a default and the source of the default.

Example:
    >>> Assumption("draws", 1024, "How many draws", "draws", low=64, high=1 << 20).checked("128")
    128.0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs
import pyarrow as pa

from broker.cluster import ClusterView
from broker.errors import BrokersideError, UsageError
from placement.consumer.group import Member
from spark_analysis.tables.columns import KEY, Column, Table
from spark_analysis.tables.schemas import FAULT

Values: TypeAlias = Mapping[str, float]
"""The value of each assumption of a question, by name."""
Groups: TypeAlias = Sequence[tuple[str, Sequence[Member]]]
"""The consumer groups of a cluster, each with its members."""
Cell: TypeAlias = str | int | float | bool | None
_KEY_COUNT: Final = len(KEY)


@attrs.frozen
class Assumption:
    """Define a number that an answer assumes: name, default, meaning, unit, limits, and where the default is from.

    `whole` refuses fractions, which a count or a seed cannot have.
    """

    name: str
    default: float
    meaning: str
    unit: str
    source: str = "ours"
    low: float = attrs.field(default=0.0, kw_only=True)
    high: float = attrs.field(default=math.inf, kw_only=True)
    whole: bool = attrs.field(default=False, kw_only=True)

    @property
    def allowed(self) -> str:
        """Return the numbers that are allowed, in words."""
        number = "a whole number" if self.whole else "a number"
        upto = "" if math.isinf(self.high) else f" to {_limit(self.high)}"
        return f"{number} from {_limit(self.low)}{upto}" + (f", in {self.unit}" if self.unit else "")

    def checked(self, text: str) -> float:
        """Return the number in the text of an option; raise UsageError if it is none, or not allowed."""
        value = self._number(text)
        if value is None:
            raise UsageError(f"--assume {self.name}={text}: allowed is {self.allowed}")
        return value

    def checked_value(self, given: object) -> float:
        """Return a number that a program gives, numpy's too; raise UsageError if it is none, or not allowed."""
        value = None if isinstance(given, str | bytes) else self._number(given)
        if value is None:
            raise UsageError(f"assumption {self.name} is {given!r}; allowed is {self.allowed}")
        return value

    def _number(self, given: Any) -> float | None:
        try:
            value = float(given)
        except (TypeError, ValueError, OverflowError):
            return None
        fits = self.low <= value <= self.high and not math.isinf(value)
        return value if fits and (value.is_integer() or not self.whole) else None


def _limit(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else f"{value:g}"


@attrs.frozen
class Field:
    """Define a column of a shown table: its key in JSON, its title, and how its values are written.

    `kind` is text, count, decimal, mean (of counts: without decimals if all of the column are whole), bytes (with a
    unit, such as KiB), percent (a share of 0..1) or chance (a probability, to three digits).
    """

    key: str
    title: str
    kind: str = "text"


@attrs.frozen
class ShownTable:
    """Hold a small table about all clusters: its caption, its columns, its rows."""

    name: str
    caption: str
    fields: tuple[Field, ...]
    rows: tuple[tuple[Cell, ...], ...]


@attrs.frozen
class Shown:
    """Hold what is shown of a question: a sentence with the headline, tables, the first of which is in the terminal.

    `refusals` say of which clusters something is not answered, and why; they stand in the terminal, too.
    """

    lead: str
    tables: tuple[ShownTable, ...]
    notes: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Question:
    """Define a question that is put to each cluster.

    `answer(view, values)` returns the rows of one cluster, columns by name, those left out being null. `show(rows,
    values)` gets all rows: the table's columns and `fault`, with `cluster` and `shape` beside them. A question about
    groups draws them as the assumptions named by `drawn` say; where those have no value, `answer_groups` takes groups
    that are given.
    """

    table: Table
    title: str
    answer: Callable[[ClusterView, Values], pa.Table]
    show: Callable[[pa.Table, Values], Shown]
    assumptions: tuple[Assumption, ...] = ()
    answer_groups: Callable[[ClusterView, Values, Groups], pa.Table] | None = None
    drawn: tuple[str, ...] = ()

    @property
    def run_table(self) -> Table:
        """Return the table of a run: every column but the key may be null, and `fault` says why."""
        nullable = tuple(attrs.evolve(column, nullable=True) for column in self.table.columns[_KEY_COUNT:])
        return attrs.evolve(self.table, columns=(*KEY, *nullable, FAULT))

    def values(self, given: Mapping[str, Any] | None = None) -> dict[str, float]:
        """Return the values of all assumptions, the defaults replaced by those given; raise UsageError for others."""
        found = {one.name: one.default for one in self.assumptions}
        by_name = {one.name: one for one in self.assumptions}
        for name, value in (given or {}).items():
            if name not in by_name:
                raise UsageError(f"{self.table.name} has no assumption {name!r}; it has {', '.join(found) or 'none'}")
            found[name] = by_name[name].checked_value(value)
        return found

    def rows(self, view: ClusterView, values: Values, groups: Groups | None = None) -> pa.Table:
        """Return the rows of `run_table` for one cluster, without the key; a fault is a row.

        `groups` are answered about instead of drawn ones, where the values do not say how to draw.
        """
        columns: tuple[Column, ...] = self.run_table.columns[_KEY_COUNT:]
        try:
            found = self._answered(view, values, groups)
        except BrokersideError as error:
            found = pa.table({FAULT.name: pa.array([str(error)])})
        fields = [self.run_table.arrow_schema().field(column.name) for column in columns]
        arrays = [
            found[field.name].cast(field.type).combine_chunks()
            if field.name in found.column_names
            else pa.nulls(found.num_rows, field.type)
            for field in fields
        ]
        return pa.table(arrays, names=[column.name for column in columns])

    def _answered(self, view: ClusterView, values: Values, groups: Groups | None) -> pa.Table:
        if self.answer_groups is None or set(self.drawn) <= set(values):
            return self.answer(view, values)
        if groups is None:
            raise UsageError(f"no groups of cluster {view.name!r} are given; --groups NAME=FILE gives them")
        return self.answer_groups(view, values, groups)
