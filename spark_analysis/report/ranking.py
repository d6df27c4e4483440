"""List the columns of the table of all clusters: those with a value for some cluster, and states that some are in.

Shares travel as whole parts per million, which the page and its script print by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from spark_analysis.report.figures import ppm
from spark_analysis.report.markup import visible
from spark_analysis.report.model import QUANTITIES, ClusterDetail, ClusterRow, Report
from spark_analysis.report.states import STATES, State
from spark_analysis.tables.limits import ROWS_MAX

__all__ = (
    "FIRST_MAX",
    "NAME_LENGTH_MAX",
    "SERVED_MAX",
    "columns_of",
    "filters",
    "first_rows",
    "listed_rows",
    "ranking_data",
    "ranking_heads",
)

FIRST_MAX: Final = 5
SERVED_MAX: Final = 100
NAME_LENGTH_MAX: Final = 120


@attrs.frozen
class Column:
    """Define one column: its head, its kind for the script ("text", "int", "ppm"), its value; `look` marks an alarm."""

    title: str
    kind: str
    value: Callable[[ClusterRow], Any]
    definition: str | None = None
    look: bool = False


def first_rows(report: Report) -> list[ClusterDetail]:
    """Return the clusters of the present to look at first, those that are shown in full."""
    rows = {row.place for row in report.current_rows if not row.healthy}
    return [detail for detail in report.details if detail.row.place in rows][:FIRST_MAX]


def listed_rows(report: Report) -> tuple[ClusterRow, ...]:
    """Return the rows that the script has."""
    return report.rows[:ROWS_MAX]


def columns_of(report: Report) -> tuple[Column, ...]:
    """Return the columns with a value for at least one cluster."""
    columns = [
        Column("cluster", "text", lambda row: row.facts.cluster),
        Column("worst thing", "text", lambda row: row.worst),
    ]
    if len(report.placers) > 1:
        columns.insert(1, Column("placer", "text", lambda row: row.facts.placer))
    if report.moments:
        now = {row.place for row in report.current_rows}
        columns.insert(1, Column("moment", "text", lambda row: "now" if row.place in now else "earlier"))
    if len(report.shapes) > 1:
        columns.insert(1, Column("shape", "text", lambda row: row.facts.shape or ""))
    columns += [
        Column("brokers", "int", lambda row: row.facts.broker_count),
        Column("racks", "int", lambda row: row.facts.rack_count),
        Column("partitions", "int", lambda row: row.facts.partition_count),
    ]
    columns += [
        _moves_column(name)
        for name in QUANTITIES
        if any(row.over_brokers.of(name) is not None for row in report.rows) or report.rest.shares(name).size
    ]
    columns += [
        _state_column(state)
        for state in STATES
        if any(state.of(row.facts) for row in report.rows) or report.rest.with_any(state.field)
    ]
    return (Column("#", "int", lambda row: row.place), *columns)


def _state_column(state: State) -> Column:
    return Column(state.short, "int", lambda row: state.of(row.facts), state.key, look=state.alarm)


def ranking_heads(columns: Iterable[Column]) -> str:
    """Return the heads of the columns."""
    kinds = {"worst thing": "~", "cluster": "!"}
    marked = ((kinds.get(one.title, "") if one.kind == "text" else "#", one) for one in columns)
    return "|".join(f"{kind}{one.title}" + (f"@{one.definition}" if one.definition else "") for kind, one in marked)


def _moves_column(name: str) -> Column:
    def value(row: ClusterRow) -> int | None:
        spread = row.over_brokers.of(name)
        return None if spread is None else ppm(spread.moves_share)

    return Column(f"{name} to move", "ppm", value, "moves_share")


def ranking_data(columns: Sequence[Column], rows: Sequence[ClusterRow], full: int) -> dict[str, Any]:
    """Return what the script sorts and filters."""
    return {
        "full": full,
        "columns": [{"kind": column.kind, "look": column.look, "title": column.title} for column in columns],
        "rows": [[_datum(column, row) for column in columns] for row in rows],
    }


def _datum(column: Column, row: ClusterRow) -> Any:
    value = column.value(row)
    return visible(value[:NAME_LENGTH_MAX]) if isinstance(value, str) else value


def filters(report: Report) -> list[tuple[str, tuple[str, ...]]]:
    """Return the columns to choose a value of, where there are several."""
    shapes = tuple(sorted({shape or "" for shape in report.shapes}))
    return [(name, values) for name, values in (("placer", report.placers), ("shape", shapes)) if len(values) > 1]
