"""Match partitions with members of their zones, compiled.

What it decides: which partitions can be read in a zone of their own while sizes of members are as even as possible.

How: each partition, in the order given, is a unit of flow from its class (its set of zones) to a zone. A zone of M
members takes M * lo units, and up to M more, of which all zones together take `over`. If no zone of the class has
room, a search looks for a chain of units that can be moved on to make some. A class for which none is found never gets
another unit. The sets of partitions that can be matched are a matroid, so the greedy order by weight gives the
greatest weight, and as many partitions as any order.

Cost: partitions x (zones x classes) at most; nearly always one step a partition.

Source: Ford and Fulkerson's augmenting paths; Edmonds on greedy algorithms and matroids (1971).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.cluster import Int64Array
from broker.compiled import compiled

NOT_SEEN: Final = -1
FROM_CLASS: Final = -2
FROM_POOL: Final = -3
"""The pool are the units beyond M * lo that zones share."""


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
