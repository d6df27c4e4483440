"""Measure an assignment: balance, stickiness and racks, each beside the best possible value.

The sum over pairs of members of the difference of their sizes is Kafka's balance score
(AbstractStickyAssignor.getBalanceScore). Of a partition that several claim, at least one loses it.
"""

from __future__ import annotations

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.consumer.assignment import GroupAssignment
from placement.consumer.group import Group
from placement.consumer.optimum import Optimum, sole_claims


@attrs.frozen(kw_only=True)
class Measures:
    """Hold the measures of one assignment; `racked_count` counts partitions whose racks and member's rack are known."""

    size_min: int
    size_max: int
    score: int
    best_size_min: int
    best_size_max: int
    best_score: int
    kept_count: int
    most_kept_count: int
    matched_count: int
    racked_count: int


def measure(assignment: GroupAssignment, optimum: Optimum, holding: Group | None = None) -> Measures:
    """Return the measures of an assignment.

    `optimum` belongs to `holding`, the group with what its members hold now, if that is not what the assignor started
    from: a group that is moving to its target is assigned from that target.
    """
    sizes = assignment.rows.lengths
    matched, racked = rack_matches(assignment)
    return Measures(
        size_min=int(sizes.min(initial=sizes.max(initial=0))),
        size_max=int(sizes.max(initial=0)),
        score=pair_score(sizes),
        best_size_min=int(optimum.sizes[0]) if len(optimum.sizes) else 0,
        best_size_max=int(optimum.sizes[-1]) if len(optimum.sizes) else 0,
        best_score=pair_score(optimum.sizes),
        kept_count=kept_count(assignment, assignment.group if holding is None else holding),
        most_kept_count=optimum.kept_count,
        matched_count=matched,
        racked_count=racked,
    )


def pair_score(sizes: Int64Array) -> int:
    """Return the sum of size differences over all pairs of members. Cost: members, sorted."""
    ascending = np.sort(sizes)
    return int((ascending * (2 * np.arange(len(sizes)) - len(sizes) + 1)).sum())


def kept_count(assignment: GroupAssignment, holding: Group) -> int:
    """Return how many partitions stay with their only former claimant in `holding`."""
    group = assignment.group
    assert (holding.members, holding.partition_count) == (group.members, group.partition_count)
    claims, rows = sole_claims(holding), assignment.rows
    # Claims name only partitions that exist: the numbers of others differ from group to group.
    rows = rows.where(rows.values < group.partition_count)
    held = _pairs(group, claims.rows, claims.values)
    return len(np.intersect1d(held, _pairs(group, rows.rows, rows.values)))


def _pairs(group: Group, members: Int32Array, partitions: Int32Array) -> Int64Array:
    codes: Int64Array = members.astype(np.int64) * group.partition_count + partitions
    return codes


def rack_matches(assignment: GroupAssignment) -> tuple[int, int]:
    """Return how many partitions are read within the member's rack, and how many have known racks on both sides."""
    racks, matched, racked = assignment.group.replica_racks, 0, 0
    for rack, partitions in zip(assignment.group.member_racks, assignment.rows.lists(), strict=True):
        if rack:
            sets = [racks.sets[racks.codes[one]] for one in partitions if one < len(racks.codes)]
            racked += sum(bool(one) for one in sets)
            matched += sum(rack in one for one in sets)
    return matched, racked
