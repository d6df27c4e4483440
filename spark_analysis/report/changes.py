"""What changed between successive dumps of one cluster, a step at a time.

Each step is one line of counts by kind, and under it the partitions of each kind. Kinds
that lose or endanger data are marked and come first: an unclean election (a leader from
outside the in-sync replicas, so acknowledged records may be gone), then lost leaders, then
shrunk ISRs.

Left out: why; a dump shows states, not events, so what came and went between two dumps is not seen.

Source: the kinds are those of `placement.balance.changes`, which says when an election counts as unclean.
"""

from __future__ import annotations

from typing import Final

from broker.drawing.element import Markup, tag
from placement.balance.changes import ISR_SHRUNK, LEADER_LOST, UNCLEAN_ELECTION
from spark_analysis.report.figures import count, plural
from spark_analysis.report.model import Change, ChangeStep, Kept, Report
from spark_analysis.report.parts import Header, folded, note, section, table

_GRAVE: Final = (UNCLEAN_ELECTION, LEADER_LOST, ISR_SHRUNK)


def changes_section(report: Report) -> Markup | None:
    """Return the section of changes; None when there are none to show."""
    if not report.changes:
        return None
    return section(
        "changes",
        "What changed between the dumps?",
        note(
            "Successive dumps of one cluster, compared partition by partition. An unclean election may have lost "
            "acknowledged records."
        ),
        *(_step(step) for step in report.changes),
    )


def gravity(change: str) -> int:
    """Return 0 for the gravest kind of change, and more for the others."""
    return _GRAVE.index(change) if change in _GRAVE else len(_GRAVE)


def _step(step: ChangeStep) -> Markup:
    kinds = sorted(step.kinds, key=lambda kept: (gravity(kept.rows[0].change), kept.rows[0].change))
    heading = tag("h3", step.from_cluster, tag("span", " → ", aria_label="to"), step.to_cluster)
    return tag("div", heading, *(_kind(kept) for kept in kinds), class_="step")


def _kind(kept: Kept[Change]) -> Markup:
    change = kept.rows[0].change
    grave = gravity(change) < len(_GRAVE)
    more = "" if kept.count == len(kept.rows) else f", the first {len(kept.rows)} shown"
    rows = [(f"{row.topic}-{row.partition}", row.detail) for row in kept.rows]
    return folded(
        tag(
            "span", tag("span", change, class_="alert" if grave else None), f": {plural(kept.count, 'partition')}{more}"
        ),
        table(f"{change}: {count(kept.count)}", (Header("partition"), Header("before and after")), rows),
        open_=gravity(change) == 0,
    )
