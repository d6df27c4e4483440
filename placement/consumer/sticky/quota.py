"""Compute the constrained sticky assignment on arrays, for sound claims and without racks.

Each partition has one former holder at most, so a member keeps the first of its partitions in order of (number, topic);
what is left is dealt in order of (topic, number), and who receives the k-th of it depends on sizes alone.

Source: as `placement.consumer.sticky.constrained`, which says why and serves all other groups.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.consumer.assignment import NOBODY
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged, grouped, ranges
from placement.consumer.sticky.claims import holding_order
from placement.consumer.sticky.constrained import StickyAnswer, Waiting


def assign_by_quota(group: Group, held: Ragged, partitions: Int32Array) -> StickyAnswer:
    """Return the assignment of `partitions`, ids in order, that members own in part and nothing else."""
    count = len(group.members)
    waiting = Waiting.of(len(partitions), count)
    kept_sizes, held_sizes = np.zeros(count, np.int64), held.lengths.tolist()
    for member in holding_order(group).tolist() if len(held.values) else range(count):
        kept_sizes[member] = waiting.kept_size(member, held_sizes[member])
    waiting.sort(group.member_ranks.tolist())
    holders = np.full(group.partition_count, NOBODY, np.int32)
    holders[held.values] = held.rows
    by_number = grouped(group.partition_numbers[partitions], int(group.partition_counts.max(initial=0)))
    ordered = partitions[by_number.values] if len(held.values) else partitions[:0]
    by_member = grouped(holders[ordered], count)
    rank = np.arange(len(by_member.values)) - np.repeat(by_member.starts[:-1], by_member.lengths)
    stays = rank < np.repeat(kept_sizes, by_member.lengths)
    kept = Ragged(by_member.starts, ordered[by_member.values]).where(stays)
    is_kept = np.zeros(group.partition_count, np.bool_)
    is_kept[kept.values] = True
    free = partitions[~is_kept[partitions]]
    given = grouped(_receivers(waiting, kept_sizes)[: len(free)], count)
    rows = kept.then(Ragged(given.starts, free[given.values]))
    former = holders[rows.values]
    return StickyAnswer(rows, (former != NOBODY) & (former != rows.rows))


def _receivers(waiting: Waiting, kept_sizes: Int64Array) -> Int32Array:
    """Return the receivers of the free partitions, in order: enough for all of them, or more.

    Members below the smaller quota in turn, each until it has that; then one each to those who have it, and behind them
    to those who came from below, in the order in which they got there.
    """
    below, at_least = np.array(waiting.below, np.int32), np.array(waiting.at_least, np.int32)
    missing = waiting.least - kept_sizes[below]
    rounds = ranges(np.zeros_like(missing), missing)
    in_turn = np.repeat(below, missing)[np.argsort(rounds, kind="stable")]
    return np.concatenate([in_turn, at_least, below[np.argsort(missing, kind="stable")]])
