"""Hold the results of several clusters as columns, from where they are computed to where they are written.

What it decides: how what is found of clusters passes from those that count to those that write: as columns of many
clusters, so that numpy and Arrow are called per column, not per cluster.

The best spread that can be reached is that of placement/balance/reachable.py. A `Best` carries it where groups differ;
where they do not (no racks, or even ones, and nobody fenced) it is that of whole shares, which spreads.py makes.

Example: Rows([2, 1], (broker_ids, racks)) are two rows of the first cluster and one of the second.

Left out: the keys of the rows, which the whole run numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import attrs
import numpy as np

from broker.cluster import Int64Array
from placement.balance.reachable import Reach
from spark_analysis.tables.columns import Table

Part: TypeAlias = Any
"""The values of one column: a numpy array, an Arrow array, a list, or None for all null."""

NOT_KNOWN: Final = -1
QUANTITIES: Final = ("replicas", "leaders", "bytes")
GIVEN: Final = 1
"""The best spread is given; else it is that of whole shares."""
FREE: Final = 2
"""No rule forbids a move."""
BOUND: Final = 4
"""The best spread is a bound, so moves are one too."""


@attrs.frozen(eq=False)
class Rows:
    """Hold some clusters' rows of one table: the number of rows of each cluster, and the columns without the key."""

    counts: Sequence[int] | Int64Array
    parts: tuple[Part, ...]


@attrs.frozen(eq=False)
class Shares:
    """Hold the shares of the groups of one scope, one cluster after another.

    `counts` int64[clusters] cuts the groups; `names` are the groups' names or numbers, in the order in which equals are
    taken. `quantities` are replicas, leaders and bytes, int64[groups] each; None, or -1 in all groups of a cluster,
    where not known. `bests` are their best spreads; without them nothing can move.
    """

    scope: str
    counts: Int64Array
    names: Any
    quantities: tuple[Int64Array | None, ...]
    bests: tuple[Best | None, ...] = ()


@attrs.frozen(eq=False)
class Best:
    """Hold the best spread of one quantity of some clusters, one cluster after another.

    `kinds` int64[clusters] adds up `GIVEN`, `FREE` and `BOUND`. The rest is int64[groups], as in `Reach`; `block` and
    `target` are not read of a cluster that is not `GIVEN`.
    """

    kinds: Int64Array
    group: Int64Array
    block: Int64Array
    target: Int64Array

    @classmethod
    def of(cls, reached: Reach) -> Best:
        """Return the best spread of one cluster."""
        return cls(np.array([kind_of(reached)]), reached.group, reached.block, reached.target)


def kind_of(reached: Reach) -> int:
    """Return the sum of `GIVEN`, `FREE` and `BOUND` for a best spread."""
    return GIVEN + FREE * reached.free + BOUND * reached.is_bound


@attrs.frozen(eq=False)
class ClusterRows:
    """Hold some clusters, each as placed by one placer: their facts, their rows of other tables, and their shares.

    `facts` are columns by name, without `cluster_id`, which the whole run numbers; a column that is left out is null.
    `further` are rows of other tables in batches, made while they are written, as they are too many to hold.
    """

    placers: Sequence[str]
    facts: dict[str, Part]
    tables: dict[Table, Rows]
    shares: tuple[Shares, ...]
    further: Iterable[tuple[Table, Rows]] = ()


def joined_shares(clusters: Sequence[ClusterRows]) -> tuple[Shares, ...]:
    """Return the shares of all these clusters, one after another; a scope that a cluster lacks has no groups there."""
    held = [({each.scope: each for each in one.shares}, len(one.placers)) for one in clusters]
    scopes = dict.fromkeys(scope for of_scope, _ in held for scope in of_scope)
    return tuple(
        _joined_scope([each.get(scope) or _no_groups(scope, count) for each, count in held]) for scope in scopes
    )


def _no_groups(scope: str, count: int) -> Shares:
    return Shares(scope, np.zeros(count, dtype=np.int64), (), (None,) * len(QUANTITIES))


def _joined_scope(parts: Sequence[Shares]) -> Shares:
    places = range(len(QUANTITIES))
    return Shares(
        parts[0].scope,
        np.concatenate([one.counts for one in parts]),
        list(chain.from_iterable(one.names for one in parts)),
        tuple(_joined_quantity(parts, place) for place in places),
        tuple(_joined_bests(parts, place) for place in places),
    )


def _joined_quantity(parts: Sequence[Shares], place: int) -> Int64Array | None:
    if all(one.quantities[place] is None for one in parts):
        return None
    return np.concatenate([_known(one.quantities[place], one) for one in parts])


def _known(held: Int64Array | None, shares: Shares) -> Int64Array:
    return np.full(len(shares.names), NOT_KNOWN, dtype=np.int64) if held is None else held


def _joined_bests(parts: Sequence[Shares], place: int) -> Best | None:
    """Return the best spreads of one quantity; where shares are unknown, or of no groups, so is their best."""
    bests = [one.bests[place] if one.bests else None for one in parts]
    if all(best is None for best in bests):
        return None
    filled = [_no_best(one, place) if best is None else best for best, one in zip(bests, parts, strict=True)]
    return Best(*(np.concatenate([getattr(best, name) for best in filled]) for name in attrs.fields_dict(Best)))


def _no_best(shares: Shares, place: int) -> Best:
    assert shares.quantities[place] is None, "known shares have a best spread in all clusters, or in none"
    groups = np.zeros(len(shares.names), dtype=np.int64)
    return Best(np.zeros_like(shares.counts), groups, groups, groups)
