"""Show the broken constraints of one cluster: each constraint with its partitions, brokers and racks.

What it decides: broken rules of placement come first, then states by urgency.

Example: "rack-spread: 12, the first 10 shown", and under it "orders-3", "1 (west), 2 (west)" and the detail.

Left out: the rest of a long list. The table of violations has the first hundred of each kind; the counts are of all.
"""

from __future__ import annotations

from broker.drawing.element import Markup, tag
from spark_analysis.report.figures import count, plural
from spark_analysis.report.model import ClusterDetail, ShortenedList, Violation
from spark_analysis.report.parts import Header, brokers_in_racks, folded, note, table
from spark_analysis.report.states import STATES


def partition_name(violation: Violation) -> str:
    """Return the name of a violation's partition, such as "orders-3", or what is known of it."""
    if violation.topic is None:
        return "the cluster"
    return violation.topic if violation.partition is None else f"{violation.topic}-{violation.partition}"


def violations_part(detail: ClusterDetail) -> Markup:
    """Return the violations of one cluster, one list a constraint."""
    heading = tag("h4", "Violations")
    if not detail.violations:
        total = detail.row.facts.violation_count
        said = "None." if total == 0 else f"{plural(total, 'violation')}; tables/violations lists them."
        return tag("div", heading, note(said))
    return tag("div", heading, *(_constraint(kept) for kept in sorted(detail.violations, key=_urgency)))


def _urgency(kept: ShortenedList[Violation]) -> tuple[int, str]:
    name = kept.rows[0].constraint
    states = [place for place, state in enumerate(STATES) if state.names(name)]
    return (states[0] if states else -1, name)


def _constraint(kept: ShortenedList[Violation]) -> Markup:
    name = kept.rows[0].constraint.replace("_", " ")
    headers = (Header("partition"), Header("brokers (racks)"), Header("what is broken"))
    rows = [(partition_name(row), brokers_in_racks(row.brokers, row.racks), row.detail) for row in kept.rows]
    listed = "at least " if kept.count >= 100 else ""
    more = "" if kept.count == len(kept.rows) else f", the first {len(kept.rows)} shown"
    return folded(
        tag("span", name, f": {listed}{count(kept.count)}{more}"),
        table(f"{name}: brokers in order of preference", headers, rows),
        open_=kept.count <= 5,
    )
