"""Group the clusters by how far they are from the best possible spread of replicas, leaders and bytes.

What it decides: the distance of a cluster is what has to move, no less, until the spread over its unfenced brokers is
the most even that the rack rule allows, divided by the total. 0 is the optimum whatever the size and the racks of the
cluster, so clusters and placers stand on one axis. A simulated fleet is split by shape and placer; a few clusters are
shown one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spark_analysis.report.distribution_chart import Group
from spark_analysis.report.figures import ppm
from spark_analysis.report.model import ClusterRow, Report

__all__ = ("groups_of", "quantile")

SINGLE_MAX: Final = 12  # Up to so many clusters each has a row of its own.
GROUPS_MAX: Final = 16
_MOMENT: Final = " at offset "  # What sources/moments.py puts between a cluster's name and its moment.


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
