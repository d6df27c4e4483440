"""Give the numbers of the page by name, for programs: each state of its tiles, and each cluster that it shows in full.

The names are those of the columns of the tables beside the page (`tables/schemas.txt`); null is what the input does not
say.
"""

from __future__ import annotations

from typing import Any

from spark_analysis.report.model import ClusterDetail, Report
from spark_analysis.report.now import state_count
from spark_analysis.report.rows import row_json
from spark_analysis.report.states import STATES


def states_json(report: Report) -> dict[str, dict[str, Any]]:
    """Return of each state how many partitions are in it now, of how many, in how many clusters that show it."""
    found = {state.key: state_count(report.current_rows, state, report.rest) for state in STATES}
    return {
        key: {
            "count": total.found,
            "share": total.found / total.partition_count if total.found is not None and total.partition_count else None,
            "partition_count": total.partition_count,
            "cluster_count": total.cluster_count,
        }
        for key, total in found.items()
    }


def cluster_json(detail: ClusterDetail, *, is_now: bool) -> dict[str, Any]:
    """Return the numbers of one cluster that the page shows in full."""
    return {
        "place": detail.row.place,
        "is_now": is_now,
        "worst": None if detail.row.healthy else detail.row.worst,
        **row_json(detail.row.facts, without=()),
        "measures": [row_json(each) for each in detail.spreads],
        "brokers": [row_json(each) for each in detail.brokers],
        "racks": [row_json(each) for each in detail.racks],
        "topics": [row_json(each) for each in detail.topics.rows],
        "log_dirs": [row_json(each) for each in detail.log_dirs.rows],
        "violations": {kept.rows[0].constraint: kept.count for kept in detail.violations},
    }
