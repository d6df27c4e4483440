"""Compute the constrained sticky assignment on arrays, for sound claims and without racks.

Gives what `placement.consumer.sticky.constrained` gives, which says why, for groups in which no partition is
claimed twice, none that does not exist, and no member has a rack.

How:
Each partition has one former holder at most, so who keeps what is one walk over all partitions in order of (number,
topic), and what is left is dealt in one walk in order of (topic, number). Who receives the k-th of these depends on
sizes alone and is written down before.

Cost: partitions. Source: as its readable twin.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled
from placement.consumer.assignment import NOBODY
from placement.consumer.group import Group
from placement.consumer.ragged import Ragged, grouped
from placement.consumer.sticky.claims import holding_order
from placement.consumer.sticky.constrained import StickyAnswer, Waiting


def assign_by_quota(group: Group, held: Ragged, partitions: Int32Array) -> StickyAnswer:
    """Return the assignment of `partitions`, ids in order, that members own in part and nothing else."""
    waiting = Waiting.of(len(partitions), len(group.members))
    kept_sizes, held_sizes = np.zeros(len(group.members), np.int64), held.lengths.tolist()
    for member in holding_order(group).tolist() if len(held.values) else range(len(group.members)):
        kept_sizes[member] = waiting.kept_size(member, held_sizes[member])
    waiting.sort(group.member_ranks.tolist())
    receivers = np.empty(len(partitions) - int(kept_sizes.sum()), np.int32)
    write_receivers(_array(waiting.below), kept_sizes, waiting.least, _array(waiting.at_least), receivers)
    sizes = kept_sizes + np.bincount(receivers, minlength=len(group.members))
    rows = Ragged(np.concatenate([[0], sizes.cumsum()]), np.empty(len(partitions), np.int32))
    holders = np.full(group.partition_count, NOBODY, np.int32)
    holders[held.values] = held.rows
    transfers = np.zeros(group.partition_count, np.bool_)
    order = _by_number(group, partitions) if len(held.values) else partitions[:0]
    fill_rows(order, partitions, holders, kept_sizes, receivers, rows.starts, rows.values, transfers)
    return StickyAnswer(rows, transfers[rows.values])


def _array(members: list[int]) -> Int32Array:
    return np.array(members, np.int32)


def _by_number(group: Group, partitions: Int32Array) -> Int32Array:
    """Return the partitions ordered by (number, topic)."""
    number_count = int(group.partition_counts.max(initial=0))
    if len(partitions) == group.partition_count:
        return grouped(group.partition_numbers, number_count).values
    return partitions[grouped(group.partition_numbers[partitions], number_count).values]


@compiled
def write_receivers(
    below: Int32Array, kept_sizes: Int64Array, least: int, at_least: Int32Array, receivers: Int32Array
) -> None:
    """Fill `receivers` int32[K] with the receiver of each free partition.

    Those `below` in turn, each until it has `least`; then one each to those `at_least`, and behind them to those
    that came from below, in the order in which they got there.
    """
    turns = below.copy()
    missing = np.empty(len(below), np.int64)
    for place in range(len(below)):
        missing[place] = least - kept_sizes[below[place]]
    queue = np.empty(len(at_least) + len(below), np.int32)
    queue[: len(at_least)] = at_least
    queue_end = len(at_least)
    next_free = 0
    turn_count = len(turns)
    while turn_count > 0 and next_free < len(receivers):
        left = 0
        for place in range(turn_count):
            if next_free == len(receivers):
                break
            receivers[next_free] = turns[place]
            next_free += 1
            if missing[place] == 1:
                queue[queue_end] = turns[place]
                queue_end += 1
            else:
                turns[left] = turns[place]
                missing[left] = missing[place] - 1
                left += 1
        turn_count = left
    receivers[next_free:] = queue[: len(receivers) - next_free]


@compiled
def fill_rows(
    order: Int32Array,
    partitions: Int32Array,
    holders: Int32Array,
    kept_sizes: Int64Array,
    receivers: Int32Array,
    starts: Int64Array,
    values: Int32Array,
    transfers: NDArray[np.bool_],
) -> None:
    """Fill `values` int32[N], rows from `starts` int64[M + 1], and `transfers` bool[P].

    `order` are the partitions as members keep them, up to `kept_sizes` int64[M] of those whose `holders` int32[P] they
    are; `partitions` the same as the others are dealt to `receivers`.
    """
    ends = starts[:-1].copy()
    kept = np.zeros(len(holders), np.bool_)
    for partition in order:
        member = holders[partition]
        if member >= 0 and ends[member] - starts[member] < kept_sizes[member]:
            values[ends[member]] = partition
            ends[member] += 1
            kept[partition] = True
    next_free = 0
    for partition in partitions:
        if not kept[partition]:
            member = receivers[next_free]
            next_free += 1
            values[ends[member]] = partition
            ends[member] += 1
            transfers[partition] = holders[partition] >= 0 and holders[partition] != member
