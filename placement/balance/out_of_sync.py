"""Name the brokers missing from ISRs, and a few brokers that account for the under-replicated partitions.

A broker is missing from an ISR when it holds a replica of the partition and is out of the ISR, unless a reassignment is
adding it or it is an observer; of a partition without a leader those that may lead it are missing. Brokers are taken,
those missing most first, until `EXPLAINED_MIN` of the partitions miss nobody else; where that needs several and those
of one rack do it, they are the rack's.

Source: Kafka 4.3 TopicCommand.PartitionDescription.isUnderReplicated for what is expected; the explanation is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import PAD, BoolArray, BrokerView, ClusterView, Int32Array, Int64Array, PartitionTable
from broker.clusters import Clusters
from broker.ids import NO_LEADER
from broker.row_flags import any_in_row, members

EXPLAINED_MIN: Final = 0.9
"""Share of the under-replicated partitions from which on the brokers taken explain them."""
EXPLAINING_MAX: Final = 100  # A rack of more brokers is named by its first hundred.


@attrs.frozen(eq=False, kw_only=True)
class OutOfSync:
    """Hold which brokers are missing from ISRs.

    `missing` int32[P, W] has the missing brokers in the places of `replicas`, -1 elsewhere; `counts` int64[B] are the
    partitions that each broker of the view is missing from.
    """

    missing: Int32Array
    counts: Int64Array


def out_of_sync(view: ClusterView, under_replicated: Int64Array | None) -> OutOfSync | None:
    """Return which brokers are missing from ISRs; None when the view shows no ISR, or no partition out of sync.

    `under_replicated` are the rows of the under-replicated partitions, None when they are not known: a view that lists
    some partitions only says nothing of the others.
    """
    if view.partitions.isr is None or under_replicated is None:
        return None
    missing = missing_replicas(view)
    return OutOfSync(missing=missing, counts=_counts(missing, view.broker_ids))


def explained(clusters: Clusters, under_replicated: Int64Array | None) -> list[tuple[list[int], int]] | None:
    """Return of each cluster the brokers that explain its under-replicated partitions, and how many they explain.

    There are none where no partition is under-replicated; None as `out_of_sync`.
    """
    view = clusters.view
    if view.partitions.isr is None or under_replicated is None:
        return None
    absent = _absent(view, missing_replicas(view))[under_replicated]
    found: list[tuple[list[int], int]] = [([], 0)] * clusters.count
    of = clusters.of_partition[under_replicated]
    for place in np.unique(of).tolist():
        rows = absent[of == place]
        brokers = _explaining(rows, view.brokers[clusters.brokers_of(place)])
        if brokers:
            found[place] = clusters.own_ids(brokers), _explained_count(rows, brokers)
    return found


def missing_replicas(view: ClusterView) -> Int32Array:
    """Return the replicas missing from the ISR, in their columns; -1 for all others."""
    table = view.partitions
    expected = table.replicas >= 0
    for others in (table.isr, table.adding, table.observers):
        if others is not None:
            expected &= ~members(table.replicas, others)
    return np.where(expected, table.replicas, PAD).astype(np.int32)


def _absent(view: ClusterView, missing: Int32Array) -> Int32Array:
    """Return the missing replicas; of a partition without a leader those that may lead it, as none of them is live."""
    table = view.partitions
    if table.leader is None:
        return missing
    rows = np.flatnonzero(table.leader == NO_LEADER)
    awaited = np.where(may_lead(table, rows), table.replicas[rows], PAD)
    found = missing.copy()
    found[rows] = np.where(any_in_row(awaited >= 0)[:, None], awaited, missing[rows])
    return found


def may_lead(table: PartitionTable, rows: Int64Array) -> BoolArray:
    """Return which replicas may lead the partitions in `rows` without loss, bool[R, W]: ISR, ELR, else last known."""
    replicas = table.replicas[rows]
    clean = np.zeros(replicas.shape, dtype=np.bool_)
    for column in (table.isr, table.elr):
        if column is not None:
            clean |= (replicas >= 0) & members(replicas, column[rows])
    if table.last_known_elr is None:
        return clean
    last_known = (replicas >= 0) & members(replicas, table.last_known_elr[rows])
    return np.asarray(np.where(any_in_row(clean)[:, None], clean, last_known))


def _counts(rows: Int32Array, ids: Int32Array) -> Int64Array:
    places = np.searchsorted(ids, rows[rows >= 0])
    return np.bincount(places, minlength=ids.size).astype(np.int64)


def _explaining(rows: Int32Array, brokers: tuple[BrokerView, ...]) -> tuple[int, ...]:
    ids = np.array([broker.id for broker in brokers], dtype=np.int32)
    counts = _counts(rows, ids)
    ordered = sorted(np.flatnonzero(counts).tolist(), key=lambda place: (-counts[place], place))[:EXPLAINING_MAX]
    enough = EXPLAINED_MIN * rows.shape[0]
    chosen = _fewest(rows, [int(ids[place]) for place in ordered], enough)
    if len(chosen) < 2:
        return chosen
    for rack in sorted({broker.rack for broker in brokers if broker.rack is not None}):
        of_rack = tuple(int(ids[place]) for place in ordered if brokers[place].rack == rack)
        if of_rack and _explained_count(rows, of_rack) >= enough:
            return of_rack
    return chosen


def _fewest(rows: Int32Array, ordered: list[int], enough: float) -> tuple[int, ...]:
    """Return the shortest head of `ordered` that explains enough; all of it when none does."""
    low, high = min(1, len(ordered)), len(ordered)
    while low < high:  # A longer head explains no less.
        middle = (low + high) // 2
        if _explained_count(rows, tuple(ordered[:middle])) >= enough:
            high = middle
        else:
            low = middle + 1
    return tuple(ordered[:low])


def _explained_count(rows: Int32Array, brokers: tuple[int, ...]) -> int:
    known = np.isin(rows, np.array((*brokers, PAD), dtype=np.int32))
    return int(np.count_nonzero(known.all(axis=1) & (rows >= 0).any(axis=1)))


def brokers_in_words(brokers: Sequence[int], *, limit: int = 3) -> str:
    """Return brokers by name, such as "brokers 4, 5 and 6", the first `limit` of more.

    >>> brokers_in_words([4]), brokers_in_words([4, 5, 6, 7, 8])
    ('broker 4', 'brokers 4, 5, 6 and 2 more')
    """
    names = [str(broker) for broker in brokers[:limit]]
    if len(brokers) > limit:
        names.append(f"{len(brokers) - limit:,} more")
    *heads, last = names
    return f"brokers {', '.join(heads)} and {last}" if heads else f"broker {last}"
