"""Write the figures of a report as Prometheus text, for a node exporter's textfile collector.

How: one gauge a line, in the text exposition format; a cluster and its placer are labels. What the input does not show
has no line, as an invented zero would silence an alert. Of moments of one cluster only the last is written.

Source: Prometheus, Exposition formats, text format 0.0.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from spark_analysis.report.model import QUANTITIES, ClusterRow, Report
from spark_analysis.report.states import STATES

_COUNTS: Final = (
    ("brokers", "broker_count", "Brokers registered."),
    ("partitions", "partition_count", "Partitions."),
    ("replicas", "replica_count", "Replicas."),
    ("size_bytes", "size_bytes", "Bytes of all replicas."),
)


def prometheus_text(report: Report) -> str:
    """Return the gauges of the current clusters, grouped by metric, in order of rank.

    Of a fleet beyond `ROWS_MAX` clusters those are written that rank first, as a comment says.
    """
    rows = report.current_rows
    lines: list[str] = []
    for name, field, text in _COUNTS:
        found = [(_labels(row), getattr(row.facts, field)) for row in rows]
        lines += _metric(name, text, found)
    in_state = [(_labels(row, ("state", state.key)), state.of(row.facts)) for row in rows for state in STATES]
    lines += _metric("partitions_in_state", "Partitions in a state, such as leaderless.", in_state)
    shares = [
        (_labels(row, ("quantity", name)), spread.moves_share)
        for row in rows
        for name in QUANTITIES
        if (spread := row.over_brokers.of(name)) is not None
    ]
    lines += _metric("moves_share", "Share of a quantity that has to move until brokers are even, 0 to 1.", shares)
    lines += _metric("rows_rejected", "Rows of the inputs that could not be used.", [("", report.rows_rejected)])
    unusable = [("", report.unusable.count)] if report.run.kind == "dumps" else []
    lines += _metric("inputs_unusable", "Inputs of which nothing could be used.", unusable)
    if report.rest.count:
        said = f"# The first {len(rows)} of {report.current_count} clusters by rank; tables/clusters has all of them."
        lines.insert(0, said)
    return "\n".join(lines) + "\n"


def _metric(name: str, text: str, found: Iterable[tuple[str, float | None]]) -> list[str]:
    samples = [f"brokerside_{name}{labels} {value!r}" for labels, value in found if value is not None]
    return [f"# HELP brokerside_{name} {text}", f"# TYPE brokerside_{name} gauge", *samples] if samples else []


def _labels(row: ClusterRow, *more: tuple[str, str]) -> str:
    pairs = (("cluster", row.facts.cluster), ("placer", row.facts.placer), *more)
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
