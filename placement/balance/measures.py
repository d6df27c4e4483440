"""Measure how evenly whole units are spread over groups, beside the most even spread that can be reached.

What it decides: for shares x[0] … x[n-1] of a total T (replicas, leaders or bytes over brokers,
racks or topics), the figures of `Distribution`, each beside its best value.

Brokers count that are not fenced, and what they hold. A fenced broker can be given nothing, so the mean does not
count it; a rack without a live broker is no group either.

The best spread over brokers and racks is that of placement/balance/reachable.py: the most even one without breaking the
rack rule; for bytes a bound, which may be out of reach. Where nothing stands in the way, and over topics, it is that of
whole shares: with q, r = divmod(T, n), r of them are q + 1 and n - r are q, so that

    best max          = q + (r > 0)
    best stdev        = sqrt(r (n - r)) / n     the shares less q are 0 or 1, r of them 1
    best Gini         = r (n - r) / (n T)       of all pairs, r (n - r) differ, by one

Every figure is then least, as each is Schur-convex and the best spread is majorised by every other within reach.
A placement that breaks the rack rule may be more even than the best; then nothing is to be gained, and moves is 0.

Moves. With low and high the floor and ceiling of the mean of a broker's block (without racks: of T / n), at least

    moves = Σ over blocks of max( Σ max(x - high, 0), Σ max(low - x, 0) + Σ x - units of the block )

units move until the spread is at its best: a move lowers one share by one and raises another.

*For replicas without a rack rule*, so many are enough, without two replicas of a partition meeting on one broker: a
move always goes from A to B with count(A) > count(B), and if every partition on A were on B too, B would hold at least
as many. So some partition on A is not on B, and its replica moves. Under the rack rule that holds for moves within a
rack; `moves_exact` tells whether they suffice. Otherwise the number is a lower bound.
*For leaders*, a move is a partition led by B instead of A: by handing over the lead when B has a
replica, else by moving a replica too. In that sense the figure is exact; where only the lead may
be handed over it is a lower bound. *For bytes* it is a lower bound, as partitions move whole.
*Over topics* there is no such move, since a partition cannot change its topic: `moves`, `moves_share` and `moves_exact`
are None, and the best values are those of equal shares, for comparison only.

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
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import ClusterView, Int64Array
from broker.errors import UsageError
from placement.balance.loads import GroupLoads, loads
from placement.balance.reachable import Classes, Groups, Reach, reach

TOLERANCE: Final = 0.01
"""Share of a quantity that has to move before its spread is worth a word: 1 %. Below it, nothing is called uneven."""


@attrs.frozen(kw_only=True)
class Distribution:
    """Measure how `total` whole units are spread over `group_count` groups; `DEFINITIONS` defines each field.

    Shares are 0 or more. `max_group` names the group of the largest share, the first of equals; it is
    empty when there is no group. `moves`, `moves_share` and `moves_exact` are None where units cannot move.
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
    moves_exact: bool | None


@attrs.frozen(kw_only=True)
class Measure:
    """Hold one distribution of a cluster: `quantity` (replicas, leaders, bytes) over `scope` (broker, rack, topic)."""

    scope: str
    quantity: str
    distribution: Distribution


def distribution(
    shares: Int64Array, *, names: Sequence[str] | None = None, movable: bool = True, best: Reach | None = None
) -> Distribution:
    """Return the distribution of `shares`, int64[groups], each 0 or more; without `names`, groups are named by index.

    `movable` is False where units cannot change groups. `best` is the best spread; without it, whole shares are even.
    Raises UsageError for a negative share or wrong names. Cost: O(n log n).
    """
    if names is not None and len(names) != shares.size:
        raise UsageError(f"{shares.size} shares need as many names; there are {len(names)}")
    if shares.size and int(shares.min()) < 0:
        raise UsageError(f"a share is {int(shares.min())}; allowed are whole numbers from 0")
    group_count = int(shares.size)
    total = sum(shares.tolist())  # Python's whole numbers: the bytes of a cluster may pass an int64's range.
    floor, rest = divmod(total, group_count) if group_count else (0, 0)
    reached = even_reach(shares) if best is None else best
    moves, exact = _moves(shares, reached) if movable else (None, None)
    top = int(shares.argmax()) if group_count else 0
    spread = math.sqrt(_scaled_variance(shares, floor, rest))
    best_spread = math.sqrt(_scaled_variance(reached.target, floor, rest))
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
        best_max_over_mean=_ratio(int(reached.target.max(initial=0)) * group_count, total, empty=1.0),
        best_stdev=_ratio(best_spread, group_count),
        best_cv=_ratio(best_spread, total),
        best_gini=_ratio(_rank_weighted(reached.target, floor), group_count * total),
        moves_exact=exact,
    )


def even_reach(shares: Int64Array, *, free: bool = True, is_bound: bool = False) -> Reach:
    """Return the best spread of these shares when nothing stands in its way: whole shares, as even as can be."""
    total, count = sum(shares.tolist()), int(shares.size)
    floor, rest = divmod(total, count) if count else (0, 0)
    target = np.full(count, floor, dtype=np.int64)
    target[:rest] += 1
    return Reach(np.zeros(count, dtype=np.int64), target, np.arange(count), free, is_bound)


def measures(view: ClusterView, *, assume_preferred: bool = False) -> tuple[Measure, ...]:
    """Return each known quantity's distribution over live brokers, then racks, then topics.

    Over racks, brokers without a rack are left out: they are no place of their own; no racks, no such
    measure. Racks and topics stand in order of name, so that the first of equals is the same in Spark.
    `assume_preferred`: see `loads`.
    """
    held = loads(view, assume_preferred=assume_preferred)
    groups = Groups.of_view(view)
    classes = Classes.of_view(view, groups, assume_preferred=assume_preferred)
    found = [*_over_brokers(held.brokers, groups, classes), *_over_racks(view, held.brokers, groups, classes)]
    return (*found, *([] if held.topics is None else _over_topics(held.topics)))


def best_over_brokers(groups: Groups, classes: Classes | None, quantity: str, shares: Int64Array) -> Reach:
    """Return the best spread over live brokers of `quantity`, now `shares`.

    Where not every partition is known it is that of whole shares, which the rack rule may forbid.
    """
    found = None if classes is None else reach(groups, classes, quantity)
    if found is not None and int(found.target.sum()) == int(shares.sum()):
        return found
    return even_reach(shares, free=not groups.is_ruled and quantity != "bytes", is_bound=quantity == "bytes")


def best_over_racks(groups: Groups, classes: Classes | None, quantity: str, shares: Int64Array) -> Reach:
    """Return the best spread over racks; whole shares, as a bound, where a live broker has no rack."""
    partly = groups.rack_count < groups.sizes.size
    found = None if classes is None or partly else reach(groups, classes, quantity, over_racks=True)
    if found is not None and int(found.target.sum()) == int(shares.sum()):
        return found
    return even_reach(shares, free=False, is_bound=True)


def _over_brokers(brokers: GroupLoads, groups: Groups, classes: Classes | None) -> Iterator[Measure]:
    live = np.flatnonzero(groups.of >= 0)
    names = [brokers.names[row] or "" for row in live.tolist()]
    if live.size or not brokers.names:
        for quantity, shares in brokers.quantities():
            best = best_over_brokers(groups, classes, quantity, shares[live])
            yield _measure("broker", quantity, distribution(shares[live], names=names, best=best))


def _over_racks(view: ClusterView, brokers: GroupLoads, groups: Groups, classes: Classes | None) -> Iterator[Measure]:
    count = groups.rack_count
    names = sorted({broker.rack for broker in view.brokers if broker.rack is not None and not broker.fenced})
    racked = np.flatnonzero((groups.of >= 0) & (groups.of < count))
    for quantity, shares in brokers.quantities() if count else ():
        held = np.zeros(count, dtype=np.int64)
        np.add.at(held, groups.of[racked], shares[racked])
        yield _measure(
            "rack", quantity, distribution(held, names=names, best=best_over_racks(groups, classes, quantity, held))
        )


def _over_topics(topics: GroupLoads) -> Iterator[Measure]:
    named = sorted((name or "", row) for row, name in enumerate(topics.names))
    rows = np.array([row for _, row in named], dtype=np.int64)
    for quantity, shares in topics.quantities():
        yield _measure("topic", quantity, distribution(shares[rows], names=[name for name, _ in named], movable=False))


def _measure(scope: str, quantity: str, found: Distribution) -> Measure:
    return Measure(scope=scope, quantity=quantity, distribution=found)


def _moves(shares: Int64Array, best: Reach) -> tuple[int, bool]:
    """Return the least units to move, and whether so many are enough."""
    now: list[int] = shares.tolist()
    target: list[int] = best.target.tolist()
    if sum(one * one for one in now) <= sum(one * one for one in target):
        return 0, True
    low, high = best.ranges()
    excess, lack = np.maximum(shares - high, 0), np.maximum(low - shares, 0)
    surplus = _sums(best.block, shares - best.target)
    moves = sum(np.maximum(_sums(best.block, excess), _sums(best.block, lack) + surplus).tolist())
    if best.free or best.is_bound:
        return moves, not best.is_bound
    inside = np.maximum(_sums(best.group, excess), _sums(best.group, lack))
    held, brokers = _sums(best.group, shares), np.bincount(best.group)
    fits = (_sums(best.group, low) <= held) & (held <= _sums(best.group, high)) | (brokers == 0)
    return moves, bool(not surplus.any() and fits.all() and sum(inside.tolist()) == moves)


def _sums(places: Int64Array, values: Int64Array) -> Int64Array:
    sums = np.zeros(int(places.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(sums, places, values)
    return sums


def _scaled_variance(shares: Int64Array, floor: int, rest: int) -> int:
    centred: list[int] = (shares - floor).tolist()
    return len(centred) * sum(value * value for value in centred) - rest * rest


def _rank_weighted(shares: Int64Array, floor: int) -> int:
    centred: list[int] = np.sort(shares - floor).tolist()
    first_weight = 1 - len(centred)
    return sum((first_weight + 2 * index) * value for index, value in enumerate(centred))


def _ratio(numerator: float, denominator: int, *, empty: float = 0.0) -> float:
    return numerator / denominator if denominator else empty
