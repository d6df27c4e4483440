"""Measure how evenly whole units are spread over groups, beside the most even spread that can be reached.

For shares x[0] … x[n-1] of a total T (replicas, leaders or bytes over brokers, racks or topics): the figures of
`Distribution`, each beside its best value. One function, `spreads`, does it for any number of clusters at once. Brokers
count that are not fenced, and what they hold: a fenced broker can be given nothing, so the mean does not count it.

The best spread over brokers and racks is that of reachable.py: the most even one without breaking the rack rule; for
bytes a bound. Where nothing stands in the way, and over topics, it is that of whole shares: with q, r = divmod(T, n),
r of them are q + 1 and n - r are q. Every figure is then least, as each is Schur-convex and the best spread is
majorised by every other within reach. A placement that breaks the rack rule may be more even than the best; then
nothing is to be gained, and moves is 0.

Moves. With low and high the floor and ceiling of the mean of a broker's block (without racks: of T / n), at least

    moves = Σ over blocks of max( Σ max(x - high, 0), Σ max(low - x, 0) + Σ x - units of the block )

units move until the spread is at its best. *For replicas without a rack rule*, so many are enough: a move goes from A
to B with count(A) > count(B), so some partition on A is not on B. Under the rack rule that holds for moves within a
rack; `moves_exact` tells whether they suffice. *For leaders*, a move is a partition led by B instead of A. *For bytes*
it is a lower bound, as partitions move whole. *Over topics* there is no such move, and the three fields are None.

How: with y = x - q, whose sum is r, and i the rank of a share, 1 holding most,

    n² variance = n Σ y² - r²        n T Gini = (n + 1) r - 2 Σ i y

and the same of the best shares, whose y sum to r too. Σ y² and Σ i y are sums of doubles, from the largest share to the
smallest, so that they do not depend on what else is in the batch; they do not cancel.

Example: shares 4, 1, 1, 1 (n 4, T 7): mean 1.75, max_over_mean 2.286 (best 1.143), stdev 1.299
(best 0.433), cv 0.742 (best 0.247), Gini 0.321 (best 0.107), moves 2 (from 4, 1, 1, 1 to 2, 2, 2, 1).

Source: ours. Gini coefficient: mean absolute difference over twice the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import BoolArray, ClusterView, Int64Array
from broker.clusters import Clusters
from broker.errors import UsageError
from placement.balance.loads import summed_by
from placement.balance.reachable import BOUND, FREE
from placement.balance.shares import GIVEN, NOT_KNOWN, QUANTITIES, Best, Held, Shares

Float64Array: TypeAlias = NDArray[np.float64]

TOLERANCE: Final = 0.01
"""Share of a quantity that has to move before its spread is worth a word: 1 %. Below it, nothing is called uneven."""
COMPARED: Final = ("total", "min", "mean", "max", "max_over_mean", "stdev", "cv", "gini", "moves")
"""The figures of a distribution by which two views are compared."""
_CELLS_MAX: Final = 1 << 20  # Shares that are sorted at once: 8 MB.


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


@attrs.frozen(eq=False, kw_only=True)
class Spread:
    """Measure one quantity over one scope in columns: the clusters with known values, and fields of `Distribution`.

    `moves`, `moves_share` and `moves_exact` are None where units cannot move; `max_group` is taken from the names.
    """

    scope: str
    quantity: str
    cluster: Int64Array
    group_count: Int64Array
    total: Int64Array
    min: Int64Array
    mean: Float64Array
    max: Int64Array
    max_group: Any
    max_over_mean: Float64Array
    stdev: Float64Array
    cv: Float64Array
    gini: Float64Array
    moves: Int64Array | None
    moves_share: Float64Array | None
    best_max_over_mean: Float64Array
    best_stdev: Float64Array
    best_cv: Float64Array
    best_gini: Float64Array
    moves_exact: BoolArray | None

    def row(self, place: int) -> Distribution:
        """Return one row."""
        columns = {field.name: getattr(self, field.name) for field in attrs.fields(Distribution)}
        values: dict[str, Any] = {name: None if one is None else one[place] for name, one in columns.items()}
        values = {name: one.item() if isinstance(one, np.generic) else one for name, one in values.items()}
        return Distribution(**values | {"max_group": str(values["max_group"])})


def measures(view: ClusterView, *, assume_preferred: bool = False) -> tuple[Measure, ...]:
    """Return each known quantity's distribution over unfenced brokers, then racks, then topics.

    Over racks, brokers without a rack are left out: they are no place of their own; no racks, no such
    measure. Racks and topics stand in order of name, so that the first of equals is the same in Spark.
    `assume_preferred`: see `loads`.
    """
    held = Held.of(Clusters.of_view(view), assume_preferred=assume_preferred).shares()
    found = (one for shares in held for one in spreads(shares))
    return tuple(Measure(scope=one.scope, quantity=one.quantity, distribution=one.row(0)) for one in found)


def side_by_side(before: ClusterView, after: ClusterView) -> list[dict[str, Any]]:
    """Return each figure of two views beside the other's, one row each; None where a view does not have it."""
    first, last = ({(one.scope, one.quantity): one.distribution for one in measures(view)} for view in (before, after))

    def figure(found: Distribution | None, name: str) -> float | None:
        value = None if found is None else getattr(found, name)
        return None if value is None else float(value)

    return [
        {"scope": key[0], "quantity": key[1], "measure": name}
        | {"before": figure(first.get(key), name), "after": figure(last.get(key), name)}
        for key in first | last
        for name in COMPARED
    ]


def spreads(shares: Shares) -> tuple[Spread, ...]:
    """Return the spread of each quantity that is known of a cluster: replicas, leaders, bytes.

    Cost: O(n log n) for n groups in all, in numpy.
    """
    bests = shares.bests or (None,) * len(QUANTITIES)
    found = []
    for quantity, held, best in zip(QUANTITIES, shares.quantities, bests, strict=True):
        if held is None:
            continue
        firsts = np.cumsum(shares.counts) - shares.counts
        clusters = np.flatnonzero(shares.counts)
        clusters = clusters[held[firsts[clusters]] != NOT_KNOWN]
        if not clusters.size:
            continue
        counts, places = shares.counts[clusters], None
        if clusters.size < shares.counts.size:
            is_known = np.zeros(shares.counts.size, dtype=np.bool_)
            is_known[clusters] = True
            marked = np.repeat(is_known, shares.counts)
            places, held = np.flatnonzero(marked), held[marked]
            best = None if best is None else best.taken(clusters, marked)
        figures, first = _figures(held, counts, best)
        first = first if places is None else places[first]
        names = np.array(shares.names, dtype=object) if isinstance(shares.names, list | tuple) else shares.names
        found.append(
            Spread(scope=shares.scope, quantity=quantity, cluster=clusters, max_group=names.take(first), **figures)
        )
    return tuple(found)


def distribution(
    shares: Int64Array, *, names: Sequence[str] | None = None, movable: bool = True, best: Best | None = None
) -> Distribution:
    """Return the distribution of `shares`, int64[groups], each 0 or more; without `names`, groups are named by index.

    `movable` is False where units cannot change groups. `best` is the best spread; without it, whole shares are even.
    Raises UsageError for a negative share or wrong names.
    """
    if names is not None and len(names) != shares.size:
        raise UsageError(f"{shares.size} shares need as many names; there are {len(names)}")
    if shares.size and int(shares.min()) < 0:
        raise UsageError(f"a share is {int(shares.min())}; allowed are whole numbers from 0")
    place = np.arange(shares.size)
    whole = Best.whole(np.array([FREE]), place) if best is None else best
    listed = place if names is None else list(names)
    bests = (whole, None, None) if movable else ()
    found = spreads(Shares("", np.array([shares.size]), listed, (shares, None, None), bests))
    return found[0].row(0) if found else _nothing(movable=movable)


def _nothing(*, movable: bool) -> Distribution:
    """Return the distribution over no groups."""
    values: dict[str, Any] = {field.name: 0.0 for field in attrs.fields(Distribution)}
    values |= dict.fromkeys(("group_count", "total", "min", "max", "moves"), 0)
    values |= {"max_group": "", "max_over_mean": 1.0, "best_max_over_mean": 1.0, "moves_exact": True}
    stays = () if movable else ("moves", "moves_share", "moves_exact")
    return Distribution(**values | dict.fromkeys(stays))


def _figures(held: Int64Array, counts: Int64Array, best: Best | None) -> tuple[dict[str, Any], Int64Array]:
    """Return the columns of `Spread` for runs of shares, none of them empty, and the place of the first largest."""
    firsts = np.cumsum(counts) - counts
    total, most = np.add.reduceat(held, firsts), np.maximum.reduceat(held, firsts)
    floor, rest = np.divmod(total, counts)
    largest = np.flatnonzero(held == np.repeat(most, counts))
    squares, weighted = _differences(held, counts, floor)
    share, whole, groups = rest.astype(np.float64), total.astype(np.float64), counts.astype(np.float64)
    best_most, best_squares, best_weighted = floor + (rest > 0), share, share * (share + 1) / 2
    moves = exact = None
    if best is not None:
        target, low, high = best.levels(counts, total)
        if (best.kinds & GIVEN).any():
            best_most = np.maximum.reduceat(target, firsts)
            best_squares, best_weighted = _differences(target, counts, floor)
        moves, exact = _moves(held, counts, best, target, (low, high))
        gains = squares > best_squares
        moves, exact = np.where(gains, moves, 0), exact | ~gains

    def over_total(value: Any, empty: float = 0.0) -> Float64Array:
        return np.asarray(np.divide(value, whole, out=np.full(total.size, empty), where=total > 0))

    def root(squared: Float64Array) -> Float64Array:
        return np.asarray(np.sqrt(groups * squared - share * share))

    def gini(ranked: Float64Array) -> Float64Array:
        return over_total((groups + 1) * share - 2 * ranked) / groups

    figures = {
        "group_count": counts,
        "total": total,
        "min": np.minimum.reduceat(held, firsts),
        "mean": whole / groups,
        "max": most,
        "max_over_mean": over_total(most * groups, 1.0),
        "stdev": root(squares) / groups,
        "cv": over_total(root(squares)),
        "gini": gini(weighted),
        "moves": moves,
        "moves_share": None if moves is None else over_total(moves.astype(np.float64)),
        "best_max_over_mean": over_total(best_most * groups, 1.0),
        "best_stdev": root(best_squares) / groups,
        "best_cv": over_total(root(best_squares)),
        "best_gini": gini(best_weighted),
        "moves_exact": exact,
    }
    return figures, largest[np.searchsorted(largest, firsts)]


def _differences(values: Int64Array, counts: Int64Array, floor: Int64Array) -> tuple[Float64Array, Float64Array]:
    """Return Σ y² and Σ i y of each run, summed up from its largest value to its smallest."""
    squares, weighted = np.zeros(counts.size), np.zeros(counts.size)
    firsts = np.cumsum(counts) - counts
    widths = np.frexp(counts - 1)[1]  # Runs of about one length are sorted as the rows of one matrix.
    for width in np.unique(widths).tolist():
        rows = np.flatnonzero(widths == width)
        step = max(1, _CELLS_MAX >> width)
        for part in (rows[start : start + step] for start in range(0, rows.size, step)):
            place = np.arange(int(counts[part].max()))
            inside = place < counts[part, None]
            cells = np.minimum(firsts[part, None] + place, values.size - 1)
            below = np.where(inside, floor[part, None] - values[cells], np.iinfo(np.int64).max)
            below.sort(axis=1)
            above = np.where(inside, -below, 0).astype(np.float64)
            squares[part] = np.add.accumulate(above * above, axis=1)[:, -1]  # `sum` would add in pairs.
            weighted[part] = np.add.accumulate(above * (place + 1), axis=1)[:, -1]
    return squares, weighted


def _moves(
    held: Int64Array, counts: Int64Array, best: Best, target: Int64Array, ends: tuple[Int64Array, Int64Array]
) -> tuple[Int64Array, BoolArray]:
    """Return the least units to move in each run, and whether so many are enough."""
    firsts = np.cumsum(counts) - counts
    first = np.repeat(firsts, counts)
    low, high = ends
    excess, lack = np.maximum(held - high, 0), np.maximum(low - held, 0)
    is_settled = np.ones(counts.size, dtype=np.bool_)
    if (best.kinds & GIVEN).any():
        block = first + np.where(np.repeat(best.kinds & GIVEN > 0, counts), best.block, 0)
        surplus = _summed(block, held - target)
        moves = np.add.reduceat(np.maximum(_summed(block, excess), _summed(block, lack) + surplus), firsts)
        is_settled = np.logical_and.reduceat(surplus == 0, firsts)
    else:
        moves = np.maximum(np.add.reduceat(excess, firsts), np.add.reduceat(lack, firsts))
    is_bound, exact = best.kinds & BOUND > 0, best.kinds & FREE > 0
    if not (is_bound | exact).all():
        group = first + best.group
        inside = np.add.reduceat(np.maximum(_summed(group, excess), _summed(group, lack)), firsts)
        fits = (_summed(group, held - high) <= 0) & (_summed(group, low - held) <= 0)
        exact |= np.logical_and.reduceat(fits, firsts) & is_settled & (inside == moves)
    return moves, exact & ~is_bound


def _summed(places: Int64Array, values: Int64Array) -> Int64Array:
    return summed_by(places, values, values.size)
