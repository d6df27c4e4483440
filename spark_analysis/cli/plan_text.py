"""Show a plan as tables for the terminal: what it costs beside the bound, and the brokers before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from rich.console import RenderableType
from rich.text import Text

from broker.units import format_size
from placement.planning.plan import Plan
from spark_analysis.cli.cluster_inputs import shown_table
from spark_analysis.report.figures import UNKNOWN, count, plural
from spark_analysis.report.plan_page import broker_marks

BROKERS_SHOWN_MAX: Final = 12
_COLUMNS: Final = ("broker", "rack", "replicas", "then", "in", "out", "leads now", "preferred then")


def plan_shown(plan: Plan, summary: Mapping[str, Any], brokers: pa.Table) -> Sequence[RenderableType]:
    """Return the answer for people."""
    tally = plan.tally
    goal = f"{plan.goal.kind} by bytes" if plan.goal.by == "bytes" else plan.goal.kind
    if plan.goal.tolerance is not None:
        goal += f" within {100 * plan.goal.tolerance:g} %"
    heading = (
        f"{summary['cluster']}: goal {goal}, {plural(summary['broker_count'], 'broker')}, "
        f"{plural(summary['partition_count'], 'partition')}"
    )
    moved_bytes = summary["moved_bytes"]
    size = UNKNOWN if moved_bytes is None else format_size(moved_bytes)
    rows = [
        ("replicas that move", count(tally.moved), "" if tally.moved_bound is None else count(tally.moved_bound)),
        ("bytes that move", size, "" if tally.moved_bytes_bound is None else format_size(tally.moved_bytes_bound)),
        *_gap(tally.moved_bytes_gap),
        ("leaders that change", count(tally.leader_changes), count(tally.leader_changes_least)),
        ("partitions that change", count(summary["changed_partition_count"]), ""),
        ("batches", count(summary["batch_count"]), ""),
    ]
    return (
        shown_table(heading, ("", "this plan", "any plan, at least"), rows),
        Text(f"At least: of {summary['least_of']}."),
        Text(""),
        _brokers_shown(brokers),
        *(Text(f"Note: {each}") for each in summary["notes"]),
    )


def _gap(gap: float | None) -> Iterator[tuple[str, str, str]]:
    """Yield the row of how much of the bytes is above the bound, where whole partitions may need more."""
    if gap is not None:
        yield "of them above the bound", f"{100 * gap:.2f} %", ""


def _brokers_shown(brokers: pa.Table) -> RenderableType:
    found = brokers.to_pylist()
    found.sort(key=lambda row: (-(row["replicas_received"] + row["replicas_given"]), row["broker"]))
    rows = [
        (
            f"{row['broker']}{broker_marks(row)}",
            row["rack"] or UNKNOWN,
            count(row["replicas_before"]),
            count(row["replicas_after"]),
            count(row["replicas_received"]),
            count(row["replicas_given"]),
            count(row["leaders_before"]),
            count(row["leaders_after"]),
        )
        for row in found[:BROKERS_SHOWN_MAX]
    ]
    title = "Brokers" if len(found) <= BROKERS_SHOWN_MAX else f"The {BROKERS_SHOWN_MAX} brokers that move most"
    return shown_table(title, _COLUMNS, rows, left_count=2)
