"""Show where the rest of a shortened list of partitions is, with the query that reads it.

How: the query is DuckDB's and is run in the folder of the page; any reader of Parquet does the same.

Example: duckdb -c "from 'tables/partitions/*.parquet' where list_contains(broken, 'under-replicated')"

Left out: lists of simulated fleets, whose partitions are only written where that is asked for.
"""

from __future__ import annotations

from typing import Final

from broker.drawing.element import Markup, tag
from spark_analysis.report.figures import count
from spark_analysis.report.model import ClusterRow, Report
from spark_analysis.report.parts import note

_FILES: Final = "tables/partitions/*.parquet"
_ALIASES: Final = {"fewer_racks": "rack-spread"}


def rest_of(report: Report, shown_count: int, whole_count: int, problem: str, row: ClusterRow | None = None) -> Markup:
    """Return the sentence about the partitions with a problem that are not shown, of one cluster or of all of them."""
    said = f"{count(shown_count)} of {count(whole_count)} are shown. "
    if not report.lists_partitions:
        return note(said, "The others are not written; brokerside fleet --partitions writes all partitions.")
    name = _ALIASES.get(problem, problem.replace("_", "-"))
    where = f"list_contains(broken, '{name}')"
    if row is not None:
        where += f" and cluster_id = {row.facts.cluster_id}"
    query = f"duckdb -c \"from '{_FILES}' where {where}\""
    return note(said, "tables/partitions has all of them; in the folder of this page: ", tag("code", query))
