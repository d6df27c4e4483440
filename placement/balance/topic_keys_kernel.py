"""Find topics that have the same optimum, compiled.

What it decides: topics with equal counts of partitions of each class (placement/balance/reachable.py) have one
optimum, so it needs to be computed once.

How: a hash table of those counts, open addressing, the counts compared whole.

Example: topics of 6 and 6 partitions of class 0, and one of 3: the keys are 0, 0 and 1.

Left out: the optimum itself (reachable_kernel.py).

Source: ours.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled


@compiled
def number_keys(
    topic_ends: Int64Array,
    class_of: Int32Array,
    weights: Int32Array,
    class_count: int,
    key_of: Int32Array,
    keys: tuple[Int64Array, Int32Array, Int64Array],
) -> int:
    """Number the topics by their counts of partitions of each class; return the number of keys.

    The entries of topic t end at topic_ends[t]; entry e is weights[e] partitions of class_of[e]. Fills key_of int32[T],
    and in `keys` the end of each key's entries, with their class and count.
    """
    ends, entry_class, entry_count = keys
    counts, seen = np.zeros(class_count, np.int64), np.zeros(class_count, np.bool_)
    touched = np.empty(class_count, np.int32)
    size = 64
    while size < 2 * topic_ends.size:
        size *= 2
    slots = np.full(size, -1, np.int32)
    key_count, used, first = 0, np.int64(0), np.int64(0)
    for topic in range(topic_ends.size):
        count = 0
        for entry in range(first, topic_ends[topic]):
            one = class_of[entry]
            if not seen[one]:
                seen[one] = True
                touched[count] = one
                count += 1
            counts[one] += weights[entry]
        first = topic_ends[topic]
        if count > 1:
            touched[:count].sort()
        code = np.int64(count)
        for place in range(count):
            one = touched[place]
            code = (code ^ (counts[one] << 20) ^ one) * np.int64(0x9E3779B97F4A7C1)
            code ^= code >> 29
            entry_class[used + place], entry_count[used + place] = one, counts[one]
            counts[one], seen[one] = 0, False
        slot = code & (size - 1)
        while slots[slot] >= 0:
            start = ends[slots[slot] - 1] if slots[slot] > 0 else np.int64(0)
            same = ends[slots[slot]] - start == count
            for place in range(count):
                if not same:
                    break
                same = entry_class[start + place] == entry_class[used + place]
                same = same and entry_count[start + place] == entry_count[used + place]
            if same:
                break
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = key_count
            used += count
            ends[key_count] = used
            key_count += 1
        key_of[topic] = slots[slot]
    return key_count
