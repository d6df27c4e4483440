"""Show all clusters in one table, worst first, to sort, filter and page through.

How: the first hundred rows are a table in the page, readable without any script. The first `ROWS_MAX` rows are in the
page as data: its script sorts and filters them and shows a hundred at a time; the page says so where that is not all.
Shares travel as whole parts per million and are printed by the same rule on both sides.

Left out: columns without a value for any cluster, and states that no partition is in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from broker.drawing.element import Content, Markup, json_data, tag, visible
from spark_analysis.report.figures import count, percent, plural, ppm
from spark_analysis.report.model import QUANTITIES, ClusterRow, Report
from spark_analysis.report.parts import Cell, Header, cluster_link, note, section, table
from spark_analysis.report.states import STATES, State
from spark_analysis.tables.limits import ROWS_MAX

SERVED_MAX: Final = 100
_NAME_LENGTH_MAX: Final = 120


@attrs.frozen
class Column:
    """Define one column: its head, its kind for the script ("text", "int", "ppm"), its value; `look` marks bad news."""

    title: str
    kind: str
    value: Callable[[ClusterRow], Any]
    definition: str | None = None
    look: bool = False


def ranking_section(report: Report) -> Markup:
    """Return the section with the table of all clusters."""
    columns = columns_of(report)
    full_count = len(report.details)
    served = report.rows[:SERVED_MAX]
    listed, whole = report.rows[:ROWS_MAX], report.row_count
    caption = f"{plural(whole, 'row')}, the cluster to look at first on top"
    if len(listed) < whole:
        caption = f"The first {count(len(listed))} of {caption}"
    headers = [Header(column.title, _kind(column), column.definition) for column in columns]
    rows = [[_cell(column, row, full_count) for column in columns] for row in served]
    data = {
        "full": full_count,
        "columns": [{"kind": column.kind, "look": column.look, "title": column.title} for column in columns],
        "rows": [[_datum(column, row) for column in columns] for row in listed],
    }
    more = None
    if whole > len(served):
        more = tag("noscript", note(f"The first {len(served)} are shown; tables/clusters has all of them."))
    in_full = f"The first {full_count} are shown in full below. " if full_count < whole else ""
    return section(
        "ranking",
        "Which clusters first?",
        note(
            in_full,
            _beyond(len(listed), whole),
            "Shares are of all replicas, leaders or bytes of the cluster; an en dash means that the input "
            "does not say. Heads of columns sort, and links lead to definitions.",
        ),
        _controls(report),
        tag("div", table(caption, headers, rows, label="All clusters"), id="ranking-table"),
        tag(
            "p",
            tag("button", "Previous", type="button", id="page-back"),
            " ",
            tag("button", "Next", type="button", id="page-on"),
            id="pager",
            hidden=True,
        ),
        more,
        json_data("ranking-data", data),
    )


def _beyond(listed_count: int, whole_count: int) -> str:
    """Return where the clusters are that have no row on the page; nothing if all have one."""
    if listed_count == whole_count:
        return ""
    return (
        f"The table has the first {count(listed_count)} of {count(whole_count)} rows; tables/clusters has all of them, "
        "in the order of its column rank. Every other number of this page is over all of them. "
    )


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


def _kind(column: Column) -> str:
    if column.kind != "text":
        return "num"
    return {"worst thing": "wide", "cluster": "name"}.get(column.title, "text")


def _moves_column(name: str) -> Column:
    def value(row: ClusterRow) -> int | None:
        spread = row.over_brokers.of(name)
        return None if spread is None else ppm(spread.moves_share)

    return Column(f"{name} to move", "ppm", value, "moves_share")


def _datum(column: Column, row: ClusterRow) -> Any:
    value = column.value(row)
    return visible(value[:_NAME_LENGTH_MAX]) if isinstance(value, str) else value


def _cell(column: Column, row: ClusterRow, full_count: int) -> Cell | Content:
    value = column.value(row)
    if column.kind == "text":
        shown = value[:_NAME_LENGTH_MAX]
        return (
            cluster_link(row.anchor if row.place <= full_count else None, shown) if column.title == "cluster" else shown
        )
    shown = percent(value) if column.kind == "ppm" else count(value)
    return Cell(shown, alert=column.look and bool(value))


def _controls(report: Report) -> Markup:
    chosen = [
        ("filter-placer", "placer", report.placers),
        ("filter-shape", "shape", tuple(sorted({shape or "" for shape in report.shapes}))),
    ]
    selects = [
        tag(
            "label",
            f"{name.capitalize()} ",
            tag(
                "select",
                tag("option", f"every {name}", value=""),
                *(tag("option", value or "none", value=value) for value in values),
                id=identifier,
                data_column=name,
            ),
        )
        for identifier, name, values in chosen
        if len(values) > 1
    ]
    return tag(
        "form",
        tag(
            "label",
            "Filter ",
            tag(
                "input",
                type="search",
                id="filter-text",
                autocomplete="off",
                placeholder="part of a name or of the worst thing",
            ),
        ),
        *selects,
        tag("output", id="ranking-status", role="status"),
        id="ranking-controls",
        hidden=True,
    )
