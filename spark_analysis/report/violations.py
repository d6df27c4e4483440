"""Show the broken constraints of one cluster: each constraint with its partitions, brokers and racks.

What it decides: broken rules of placement come first, then states by urgency.

Example: "rack-spread: 12, the first 10 shown", and under it "orders-3", "1 (west), 2 (west)" and the detail.

Left out: the rest of a long list. The table of violations has the first hundred of each kind, the table of partitions
has all; the counts are of all.
"""

from __future__ import annotations

from broker.drawing.element import Markup, tag
from spark_analysis.report.figures import count, plural
from spark_analysis.report.model import ClusterDetail, Report, ShortenedList
from spark_analysis.report.parts import Header, brokers_in_racks, folded, note, table
from spark_analysis.report.queries import rest_of
from spark_analysis.report.rows import Violation
from spark_analysis.report.states import STATES
from spark_analysis.tables.limits import VIOLATIONS_MAX


def partition_name(violation: Violation) -> str:
    """Return the name of a violation's partition, such as "orders-3", or what is known of it."""
    if violation.topic is None:
        return "the cluster"
    return violation.topic if violation.partition is None else f"{violation.topic}-{violation.partition}"


def violations_part(detail: ClusterDetail, report: Report) -> Markup:
    """Return the violations of one cluster, one list a constraint, each with the query for the whole list."""
    heading = tag("h4", "Violations")
    if not detail.violations:
        total = detail.row.facts.violation_count
        said = "None." if total == 0 else f"{plural(total, 'violation')}; tables/violations lists them."
        return tag("div", heading, note(said))
    return tag("div", heading, *(_constraint(kept, detail, report) for kept in sorted(detail.violations, key=_urgency)))


def _urgency(kept: ShortenedList[Violation]) -> tuple[int, str]:
    name = kept.rows[0].constraint
    states = [place for place, state in enumerate(STATES) if state.names(name)]
    return (states[0] if states else -1, name)


def _constraint(kept: ShortenedList[Violation], detail: ClusterDetail, report: Report) -> Markup:
    constraint = kept.rows[0].constraint
    name = constraint.replace("_", " ")
    of_state = [state.of(detail.row.facts) for state in STATES if state.names(constraint)]
    whole = max([kept.count, *(found for found in of_state if found is not None)])
    headers = (Header("partition"), Header("brokers (racks)"), Header("what is broken"))
    rows = [(partition_name(row), brokers_in_racks(row.brokers, row.racks), row.detail) for row in kept.rows]
    listed = "at least " if whole == kept.count >= VIOLATIONS_MAX and not of_state else ""
    more = "" if whole == len(kept.rows) else f", the first {len(kept.rows)} shown"
    return folded(
        tag("span", name, f": {listed}{count(whole)}{more}"),
        table(f"{name}: brokers in order of preference", headers, rows),
        rest_of(report, len(rows), whole, constraint, detail.row) if more or listed else None,
        open_=whole <= 5,
    )
