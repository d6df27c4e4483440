"""Measure how evenly whole units are spread over groups, beside the most even spread possible.

What it decides: for shares x[0] … x[n-1] of a total T (replicas, leaders or bytes over brokers,
racks or topics), the figures of `Distribution`, each beside the best value that whole shares allow.

The best spread. Let q, r = divmod(T, n). Whole shares are most even when r of them are q + 1 and
n - r are q. Every figure below is then least: each is Schur-convex, and any other whole shares of
the same sum turn into these by moving units from a larger share to a smaller one. So

    best max          = q + (r > 0)
    best stdev        = sqrt(r (n - r)) / n     the shares less q are 0 or 1, r of them 1
    best Gini         = r (n - r) / (n T)       of all pairs, r (n - r) differ, by one

Moves. With floor = q and ceil = q + (r > 0), the least number of units to move until every share
is floor or ceil is

    moves = max( Σ max(x - ceil, 0), Σ max(floor - x, 0) )

*No fewer*: a move lowers one share by one and raises another, so it lowers each sum by at most
one. *No more*: if both sums are positive, move a unit from a share above ceil to one below floor;
both fall. If only the first is, some share is below ceil, for otherwise the total would exceed
n · ceil; move a unit there; the first falls, the second stays 0. The other case is its mirror.

*For replicas* each of these moves can be made without two replicas of a partition meeting on one
broker: it always goes from A to B with count(A) > count(B), and if every partition on A were on B
too, B would hold at least as many. So some partition on A is not on B, and its replica moves.
Fenced brokers and racks may forbid that move; then the figure is a lower bound.
*For leaders*, a move is a partition led by B instead of A: by handing over the lead when B has a
replica, else by moving A's replica too. In that sense the figure is exact; where only the lead may
be handed over it is a lower bound. *For bytes* it is a lower bound, as partitions move whole.
*Over topics* there is no such move, since a partition cannot change its topic: `moves` and
`moves_share` are None, and the best values are those of equal shares, for comparison only.

Exactness. Sums are whole numbers of any size: with y = x - q, whose sum is r,

    n² variance       = n Σ y² - r²
    n T Gini          = Σ (2 i - n - 1) y_i     y ascending, i from 1

so nothing cancels, however large the shares (the second because the weights sum to 0), and each
float is one rounding or two away from the exact value. In Spark SQL: a first pass for n and T, then
SUM(y * y) as DECIMAL(38, 0) and SUM((2 * row_number - n - 1) * y); ties in the row number do not matter.

Nothing to spread (no groups, or T = 0): max_over_mean 1; stdev, cv, Gini, moves, moves_share 0.

Example: shares 4, 1, 1, 1 (n 4, T 7): mean 1.75, max_over_mean 2.286 (best 1.143), stdev 1.299
(best 0.433), cv 0.742 (best 0.247), Gini 0.321 (best 0.107), moves 2 (from 4, 1, 1, 1 to 2, 2, 2, 1).

Left out: weights for brokers of unequal capacity, which no dump states.

Source: ours. Net imbalance as distance from the achievable remainder: Yelp kafka-utils,
`cluster_info/stats.py`. Gini coefficient: mean absolute difference over twice the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np

from broker.cluster import ClusterView, Int64Array
from broker.errors import UsageError
from placement.balance.loads import GroupLoads, loads


@attrs.frozen(kw_only=True)
class Distribution:
    """Measure how `total` whole units are spread over `group_count` groups; `DEFINITIONS` defines each field.

    Shares are 0 or more. `max_group` names the group of the largest share, the first of equals; it is
    empty when there is no group. `moves` and `moves_share` are None where units cannot move.
    """

    group_count: int
    total: int
    min: int
    mean: float
    max: int
    max_group: str
    max_over_mean: float
    stdev: float
    cv: float
    gini: float
    moves: int | None
    moves_share: float | None
    best_max_over_mean: float
    best_stdev: float
    best_cv: float
    best_gini: float


@attrs.frozen(kw_only=True)
class Measure:
    """Hold one distribution of a cluster: `quantity` (replicas, leaders, bytes) over `scope` (broker, rack, topic)."""

    scope: str
    quantity: str
    distribution: Distribution


def distribution(shares: Int64Array, *, names: Sequence[str] | None = None, movable: bool = True) -> Distribution:
    """Return the distribution of `shares`, int64[groups], each 0 or more; without `names`, groups are named by index.

    `movable` is False where units cannot change groups. Raises UsageError for a negative share or wrong names.
    Cost: O(n log n).
    """
    if names is not None and len(names) != shares.size:
        raise UsageError(f"{shares.size} shares need as many names; there are {len(names)}")
    if shares.size and int(shares.min()) < 0:
        raise UsageError(f"a share is {int(shares.min())}; allowed are whole numbers from 0")
    group_count = int(shares.size)
    total = sum(shares.tolist())  # Python's whole numbers: the bytes of a cluster may pass an int64's range.
    floor, rest = divmod(total, group_count) if group_count else (0, 0)
    moves = _moves(shares, floor, floor + (rest > 0)) if movable else None
    top = int(shares.argmax()) if group_count else 0
    spread = math.sqrt(_scaled_variance(shares, floor, rest))
    best_spread = math.sqrt(rest * (group_count - rest))
    return Distribution(
        group_count=group_count,
        total=total,
        min=int(shares.min()) if group_count else 0,
        mean=_ratio(total, group_count),
        max=int(shares[top]) if group_count else 0,
        max_group=(str(top) if names is None else names[top]) if group_count else "",
        max_over_mean=_ratio(int(shares[top]) * group_count, total, empty=1.0) if total else 1.0,
        stdev=_ratio(spread, group_count),
        cv=_ratio(spread, total),
        gini=_ratio(_rank_weighted(shares, floor), group_count * total),
        moves=moves,
        moves_share=None if moves is None else _ratio(moves, total),
        best_max_over_mean=_ratio((floor + (rest > 0)) * group_count, total, empty=1.0),
        best_stdev=_ratio(best_spread, group_count),
        best_cv=_ratio(best_spread, total),
        best_gini=_ratio(rest * (group_count - rest), group_count * total),
    )


def measures(view: ClusterView, *, assume_preferred: bool = False) -> tuple[Measure, ...]:
    """Return each known quantity's distribution over brokers, then racks, then topics.

    Over racks, brokers without a rack are left out: they are no place of their own; no racks, no such
    measure. Racks and topics stand in order of name, so that the first of equals is the same in Spark.
    `assume_preferred`: see `loads`.
    """
    held = loads(view, assume_preferred=assume_preferred)
    groups = [group for group in (held.brokers, held.racks, held.topics) if group is not None]
    return tuple(
        Measure(scope=group.scope, quantity=quantity, distribution=_of_group(group, shares))
        for group in groups
        for quantity, shares in group.quantities()
    )


def _of_group(group: GroupLoads, shares: Int64Array) -> Distribution:
    named = [(name, row) for row, name in enumerate(group.names) if name is not None]
    if group.scope != "broker":  # Brokers are in order of their number already.
        named.sort()
    rows = np.array([row for _, row in named], dtype=np.int64)
    return distribution(shares[rows], names=[name for name, _ in named], movable=group.scope != "topic")


def _moves(shares: Int64Array, floor: int, ceiling: int) -> int:
    excess: list[int] = np.maximum(shares - ceiling, 0).tolist()
    lack: list[int] = np.maximum(floor - shares, 0).tolist()
    return max(sum(excess), sum(lack))


def _scaled_variance(shares: Int64Array, floor: int, rest: int) -> int:
    centred: list[int] = (shares - floor).tolist()
    return len(centred) * sum(value * value for value in centred) - rest * rest


def _rank_weighted(shares: Int64Array, floor: int) -> int:
    centred: list[int] = np.sort(shares - floor).tolist()
    first_weight = 1 - len(centred)
    return sum((first_weight + 2 * index) * value for index, value in enumerate(centred))


def _ratio(numerator: float, denominator: int, *, empty: float = 0.0) -> float:
    return numerator / denominator if denominator else empty
