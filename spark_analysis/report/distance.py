"""Show how far the clusters are from the best possible spread, one chart each for replicas, leaders and bytes.

What it decides: the distance of a cluster is what has to move, no less, until the spread over its live brokers is the
most even that the rack rule allows, divided by the total. 0 is the optimum whatever the size and the racks of the
cluster, so clusters and placers stand on one axis. A simulated fleet is split by shape and placer; a few clusters are
shown one by one.

Left out: spreads over racks and topics, which stand with each cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.drawing.element import Content, Markup, tag
from spark_analysis.report.distribution_chart import Group, distribution
from spark_analysis.report.figures import count, percent, ppm
from spark_analysis.report.model import QUANTITIES, ClusterRow, Report
from spark_analysis.report.parts import Header, chart_box, definition_link, folded, note, section, table

SINGLE_MAX: Final = 12  # Up to so many clusters each has a row of its own.
GROUPS_MAX: Final = 16
_MOMENT: Final = " at offset "  # What sources/moments.py puts between a cluster's name and its moment.


def distance_section(report: Report) -> Markup:
    """Return the section with one distribution for each quantity known of at least one cluster."""
    parts: list[Content] = []
    for quantity in QUANTITIES:
        groups = groups_of(report, quantity)
        if groups:
            parts.append(tag("h3", quantity.capitalize()))
            parts.append(_chart(quantity, groups))
            parts.append(_numbers(quantity, groups))
        else:
            missing = "not simulated" if report.run.kind == "fleet" else "not in the dump"
            parts.append(tag("p", f"{quantity.capitalize()}: {missing}.", class_="note"))
    return section(
        "distance",
        "How far from the best possible?",
        note(
            "For each cluster, the ",
            definition_link("moves_share", "share that must move"),
            " until the load of the brokers is the most even that can be reached: no rack rule broken, nothing new on "
            "fenced brokers. 0 is the best possible; the further to the right, the more there is to move. For bytes "
            "the best is a bound, as partitions move whole.",
        ),
        *parts,
    )


def _chart(quantity: str, groups: Sequence[Group]) -> Markup:
    drawn = distribution(f"distance-{quantity}", quantity, groups)
    if all(len(group.values) == 1 for group in groups):
        under = None
    else:
        under = note(
            "Height: share of the row's clusters, the same scale in every row. A cluster at the optimum falls "
            "into the first bar."
        )
    return tag(
        "figure",
        chart_box(drawn, f"Chart of {quantity} to move"),
        under,
    )


def _numbers(quantity: str, groups: Sequence[Group]) -> Markup | None:
    if all(len(group.values) == 1 for group in groups):
        return None
    headers = (
        Header("group"),
        Header("clusters", "num"),
        Header("at the optimum", "num"),
        Header("median", "num"),
        Header("9 in 10 are below", "num"),
        Header("worst", "num"),
    )
    rows = [
        (
            f"{group.label} {group.sublabel}".strip(),
            count(len(group.values)),
            count(group.at_optimum_count),
            percent(group.median),
            percent(quantile(group.values, 90)),
            percent(group.values[-1]),
        )
        for group in groups
    ]
    caption = f"{quantity.capitalize()} to move, % of all {quantity} of the cluster"
    return folded("In numbers", table(caption, headers, rows))


def quantile(values: Sequence[int], hundredths: int) -> int:
    """Return the smallest of the ascending `values` that is at least as large as `hundredths` per cent of them.

    >>> quantile([1, 2, 3, 40], 50), quantile([1, 2, 3, 40], 95)
    (2, 40)
    """
    return values[max(0, -(-len(values) * hundredths // 100) - 1)]


def groups_of(report: Report, quantity: str) -> tuple[Group, ...]:
    """Return the rows of the distribution: one per cluster, or one per shape and placer, or one per placer.

    It takes the finest of the three that has few enough rows. Moments of one cluster are no clusters to count: they
    have rows of their own, or only the last of them counts.
    """
    rows = report.rows if len(report.rows) <= SINGLE_MAX else report.current_rows
    known = [(row, share) for row in rows if (share := _distance(row, quantity)) is not None]
    if len(known) + report.rest.shares(quantity).size <= SINGLE_MAX:
        by_number = sorted(known, key=lambda item: (item[0].facts.cluster_id, item[0].facts.placer))
        several = len(report.placers) > 1
        alike = _shared_name([row.facts.cluster for row, _ in by_number])
        return tuple(
            Group(row.facts.cluster[alike:], row.facts.placer if several else "", (share,)) for row, share in by_number
        )
    gathered: dict[tuple[str, str], list[int]] = {}
    for row, share in known:
        gathered.setdefault((row.facts.shape or "", row.facts.placer), []).append(share)
    for shape, placer, more in report.rest.groups():
        if shares := more.parts_per_million(quantity).tolist():
            gathered.setdefault((shape, placer), []).extend(shares)
    if len(gathered) > GROUPS_MAX:
        merged: dict[tuple[str, str], list[int]] = {}
        for (_, placer), shares in gathered.items():
            merged.setdefault(("", placer), []).extend(shares)
        gathered = merged
    return tuple(Group(placer, shape, tuple(sorted(gathered[shape, placer]))) for shape, placer in sorted(gathered))


def _shared_name(names: Sequence[str]) -> int:
    """Return the length of the name that moments of one metadata log share, which says nothing in a chart of them."""
    heads = {name.partition(_MOMENT)[0] for name in names}
    if len(heads) > 1 or len(names) < 2 or not all(_MOMENT in name for name in names):
        return 0
    return len(heads.pop()) + len(_MOMENT) - len("offset ")


def _distance(row: ClusterRow, quantity: str) -> int | None:
    spread = row.over_brokers.of(quantity)
    return None if spread is None else ppm(spread.moves_share)
