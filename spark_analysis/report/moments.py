"""Show the moments of clusters that were dumped several times: fenced brokers, and partitions in each state.

What it decides: all moments of a cluster stand together, in their order, the last one marked as now. Brokers that are
fenced are named where the input says which are.

Example: "prod at offset 168, … (broker 1 fenced)", "1", then a count for each state.

Left out: moments of clusters beyond the first; the table of clusters has them, as `previous_cluster_id`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from broker.drawing.element import Content, Markup, tag
from spark_analysis.report.figures import count
from spark_analysis.report.model import ClusterRow, Report
from spark_analysis.report.parts import Cell, Header, cluster_link, note, table
from spark_analysis.report.states import STATES

LISTED_MAX: Final = 100


def moments_table(report: Report) -> Markup | None:
    """Return the table of all moments of clusters that have several; None without any."""
    rows = report.moments
    if not rows:
        return None
    shown = rows[:LISTED_MAX]
    drawn = states_table(report, shown, "Partitions in each state, moment by moment; the last of a cluster is now")
    more = f"{LISTED_MAX} of {count(len(rows))} are shown; tables/clusters has all of them."
    return None if drawn is None else tag("div", drawn, note(more) if len(rows) > len(shown) else None)


def states_table(report: Report, rows: Sequence[ClusterRow], caption: str) -> Markup | None:
    """Return a table of dumps with their fenced brokers and the count of each state; None when none is known."""
    known = [state for state in STATES if any(state.of(row.facts) is not None for row in rows)]
    if not known:
        return None
    now = {row.place for row in report.current_rows}
    of_moments, anchored = bool(report.moments), {detail.row.place for detail in report.details}
    fenced = _fenced(report) if any(row.facts.fenced_broker_count for row in rows) else None
    headers = (
        Header("dump", "name"),
        *((Header("moment"),) if of_moments else ()),
        *((Header("fenced brokers"),) if fenced is not None else ()),
        Header("partitions", "num"),
        *(Header(state.short, "num", state.key) for state in known),
    )
    body = [
        (
            cluster_link(row.anchor if row.place in anchored else None, row.facts.cluster),
            *(("now" if row.place in now else "earlier",) if of_moments else ()),
            *((_fenced_cell(row, fenced),) if fenced is not None else ()),
            count(row.facts.partition_count),
            *(Cell(count(state.of(row.facts)), alert=state.alarm and bool(state.of(row.facts))) for state in known),
        )
        for row in rows
    ]
    return table(caption, headers, body)


def moments_json(report: Report) -> list[dict[str, Any]]:
    """Return the moments for programs: which brokers were fenced, and the states; at most the first hundred."""
    fenced = _fenced(report)
    now = {row.place for row in report.current_rows}
    return [
        {
            "cluster": row.facts.cluster,
            "is_now": row.place in now,
            "fenced_broker_count": row.facts.fenced_broker_count,
            "fenced_brokers": fenced.get(row.place),
            **{state.field: state.of(row.facts) for state in STATES},
            "worst": None if row.calm else row.worst,
        }
        for row in report.moments[:LISTED_MAX]
    ]


def _fenced(report: Report) -> dict[int, list[int]]:
    """Return the fenced brokers of the clusters that are shown in full, by their place."""
    return {
        detail.row.place: sorted(broker.broker_id for broker in detail.brokers if broker.fenced)
        for detail in report.details
    }


def _fenced_cell(row: ClusterRow, fenced: dict[int, list[int]]) -> Content:
    named = fenced.get(row.place)
    if named is None:
        return f"{count(row.facts.fenced_broker_count)}"
    return ", ".join(map(str, named)) or "none"
