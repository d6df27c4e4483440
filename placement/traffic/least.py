"""Compute the least bytes that a group must fetch across zones, whatever its assignor.

What it decides: two bounds. `any_` is the least of all assignments: a partition must be fetched across zones only if no
subscriber of its topic stands in a zone from which it can be read. `even_` is the least of the assignments whose sizes
are as even as possible, in which each zone's members have so many places and no more.

Constraints: consumers fetch from the closest replica (KIP-392). Each bound is the least of partitions and of bytes at
once. `any_` is not known with a member without a zone; nor is `even_`, and not for different subscriptions.
Partitions without a leader, or whose leader has no zone, never count as crossing, nor do they here.

How: each partition, the largest first, is a unit of flow from its class (its set of zones) to a zone. A zone of M
members takes M * lo units, and up to M more, of which all zones together take `over`. If no zone of the class has room,
a search looks for a chain of units that can be moved on to make some. A class for which none is found never gets
another unit. The sets of partitions that can be matched are a matroid, so the greedy order by weight gives the greatest
weight, and as many partitions as any order.

Source: Ford and Fulkerson's augmenting paths; Edmonds on greedy algorithms and matroids (1971).
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.compiled import compiled
from placement.traffic.consumers import Consumers
from placement.traffic.crossing import Crossing
from placement.traffic.zones import NO_ZONE, ZonedPartitions

NOT_SEEN: Final = -1
FROM_CLASS: Final = -2
FROM_POOL: Final = -3
"""The pool are the units beyond M * lo that zones share."""


@attrs.frozen(kw_only=True)
class Least:
    """Hold the least partitions and bytes that cross zones; None where they are not known."""

    any_count: int | None
    any_bytes: int | None
    even_count: int | None
    even_bytes: int | None


NOT_KNOWN: Final = Least(any_count=None, any_bytes=None, even_count=None, even_bytes=None)


def least_of(partitions: ZonedPartitions, consumers: Consumers) -> Least:
    """Return the bounds of one group."""
    if not consumers.is_zoned or not len(consumers.zones):
        return NOT_KNOWN
    rows = consumers.rows
    counts = (partitions.leaders[rows] >= 0) & (partitions.leader_zones[rows] != NO_ZONE)
    readable = partitions.readable[rows]
    sizes = None if partitions.sizes is None else partitions.sizes[rows]
    group = consumers.group
    subscribers = np.zeros(len(group.topics), np.int64)
    named = group.subscribed
    np.bitwise_or.at(subscribers, named.values, np.int64(1) << consumers.zones[named.rows].astype(np.int64))
    crosses = counts & (readable & subscribers[group.partition_topics[: len(rows)]] == 0)
    any_count, any_bytes = _sums(crosses, sizes)
    if not consumers.subscribes_alike:
        return attrs.evolve(NOT_KNOWN, any_count=any_count, any_bytes=any_bytes)
    crosses = counts & ~_matched(consumers, readable, counts, sizes, len(partitions.zones))
    even_count, even_bytes = _sums(crosses, sizes)
    return Least(any_count=any_count, any_bytes=any_bytes, even_count=even_count, even_bytes=even_bytes)


def least_fetched(partitions: ZonedPartitions, consumers: Consumers) -> Crossing:
    """Return the fetches of one group with the least that cross; none cross, and all are unknown, if that is not known.

    That is a lower bound for every assignment.
    """
    rows, least = consumers.rows, least_of(partitions, consumers)
    fetched = partitions.leaders[rows] >= 0
    known = fetched & (partitions.leader_zones[rows] != NO_ZONE) & (least.any_count is not None)
    sizes = None if partitions.sizes is None else partitions.sizes[rows][fetched]
    return Crossing(
        count=float(fetched.sum()),
        crossing_count=float(least.any_count or 0),
        unknown_count=float((fetched & ~known).sum()),
        size_bytes=None if sizes is None else float(sizes.sum()),
        crossing_bytes=None if sizes is None else float(least.any_bytes or 0),
    )


def _matched(
    consumers: Consumers, readable: Int64Array, counts: NDArray[np.bool_], sizes: Int64Array | None, zone_count: int
) -> NDArray[np.bool_]:
    """Return bool[G]: whether a partition is read in its zone by an assignment of even sizes and least bytes."""
    bits, codes = np.unique(readable, return_inverse=True)
    candidates = np.flatnonzero(counts)
    if sizes is not None:
        candidates = candidates[np.argsort(-sizes[candidates], kind="stable")]
    members = np.bincount(consumers.zones, minlength=zone_count + 1).astype(np.int64)
    lo, over = divmod(len(readable), len(consumers.zones))
    matched = np.zeros(len(candidates), np.bool_)
    match_zones(codes.ravel()[candidates].astype(np.int64), bits.astype(np.int64), members, lo, over, matched)
    found = np.zeros(len(readable), np.bool_)
    found[candidates[matched]] = True
    return found


def _sums(crosses: NDArray[np.bool_], sizes: Int64Array | None) -> tuple[int, int | None]:
    return int(crosses.sum()), None if sizes is None else int(sizes[crosses].sum())


@compiled
def match_zones(
    codes: Int64Array,
    bits: Int64Array,
    members: Int64Array,
    lo: int,
    over: int,
    matched: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> None:
    """Set `matched` bool[K] for each partition of class `codes` int64[K] that finds a place; `bits` are the classes'
    zones, `members` int64[Z] the members of each zone.
    """
    zone_count, class_count = len(members), len(bits)
    base, extra = np.zeros(zone_count, np.int64), np.zeros(zone_count, np.int64)
    flow = np.zeros((class_count, zone_count), np.int64)
    closed = np.zeros(class_count, np.bool_)
    came, via, queue = np.empty(zone_count, np.int64), np.empty(zone_count, np.int64), np.empty(zone_count, np.int64)
    pooled = 0
    for place in range(len(codes)):
        wanted = codes[place]
        if closed[wanted]:
            continue
        came[:] = NOT_SEEN
        tail = 0
        for zone in range(zone_count):
            if bits[wanted] >> zone & 1:
                came[zone] = FROM_CLASS
                queue[tail] = zone
                tail += 1
        head, end, giver, by_pool = 0, -1, -1, False
        while head < tail:  # Each zone is queued once.
            zone = queue[head]
            head += 1
            if base[zone] < members[zone] * lo:
                end = zone
                break
            if giver < 0 and extra[zone] < members[zone]:
                if pooled < over:
                    end, by_pool = zone, True
                    break
                giver = zone
                for other in range(zone_count):
                    if extra[other] > 0 and came[other] == NOT_SEEN:
                        came[other] = FROM_POOL
                        queue[tail] = other
                        tail += 1
            for code in range(class_count):
                if flow[code, zone] > 0:
                    for other in range(zone_count):
                        if came[other] == NOT_SEEN and bits[code] >> other & 1:
                            came[other], via[other] = zone, code
                            queue[tail] = other
                            tail += 1
        if end < 0:
            closed[wanted] = True
            continue
        if by_pool:
            extra[end] += 1
            pooled += 1
        else:
            base[end] += 1
        while came[end] != FROM_CLASS:  # Each step goes back to a zone that was queued before.
            if came[end] == FROM_POOL:
                extra[end] -= 1
                extra[giver] += 1
                end = giver
            else:
                flow[via[end], came[end]] -= 1
                flow[via[end], end] += 1
                end = came[end]
        flow[wanted, end] += 1
        matched[place] = True
