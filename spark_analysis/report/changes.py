"""Show what changed between successive dumps of one cluster, one comparison after the other.

What it decides: each comparison is one line of counts by kind of change, with the partitions of each kind under it.
Kinds that lose or endanger data are marked and come first: an unclean election (a leader from outside the ISR, so
acknowledged records may be gone), then lost leaders, then shrunk ISRs.

Left out: causes, and what began and ended between two dumps: a dump shows states, not events.

Source: the kinds are those of `placement.balance.changes`, which says when an election counts as unclean.
"""

from __future__ import annotations

from typing import Final

from broker.drawing.element import Markup, tag
from placement.balance.changes import ISR_SHRUNK, LEADER_LOST, UNCLEAN_ELECTION
from spark_analysis.report.figures import count, plural
from spark_analysis.report.model import DumpComparison, Report, ShortenedList
from spark_analysis.report.moments import moments_table
from spark_analysis.report.parts import Header, folded, note, section, table
from spark_analysis.report.rows import PartitionChange

_GRAVE: Final = (UNCLEAN_ELECTION, LEADER_LOST, ISR_SHRUNK)


def changes_section(report: Report) -> Markup | None:
    """Return the section of changes; None when dumps were not compared."""
    if not report.changes and not report.moments:
        return None
    return section(
        "changes",
        "What changed between the dumps?",
        note(
            "Successive dumps of one cluster, compared partition by partition. An unclean election may have lost "
            "acknowledged records."
        ),
        moments_table(report),
        None if report.changes else note("Nothing changed."),
        *(_step(step) for step in report.changes),
    )


def gravity(change: str) -> int:
    """Return the place of a kind of change in the order of gravity, 0 for the gravest."""
    return _GRAVE.index(change) if change in _GRAVE else len(_GRAVE)


def _step(step: DumpComparison) -> Markup:
    kinds = sorted(step.kinds, key=lambda kept: (gravity(kept.rows[0].change), kept.rows[0].change))
    heading = tag("h3", step.from_cluster, tag("span", " → ", aria_label="to"), step.to_cluster)
    return tag("div", heading, *(_kind(kept) for kept in kinds), class_="step")


def _kind(kept: ShortenedList[PartitionChange]) -> Markup:
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
