"""Find the draws in which partitions are leaderless, under min-ISR or lost, 64 draws at once, compiled.

What it decides: for each partition and draw the states of succession.py: leaderless if all of the first `led` replicas
of its row are down; under min-ISR if `needed` or more of the first `members` are down; lost if all of the first `clean`
are lost. The kernel adds up, for each draw, how many partitions are in each state.

How: one machine word holds a broker's state in 64 draws. "All are down" is an AND of words, "one or more" an OR, and "k
or more" a row of k words, word j being 1 where j + 1 or more of the replicas so far are down. Partitions are counted by
bit slices: word j of a counter holds bit j of 64 counts, and adding a word carries as on paper. Most words are 0 and
cost one comparison.

Cost: O(replicas * words), some ten operations for 64 draws of a partition.

Source: ours; a test compares it with a count partition by partition and draw by draw.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.cluster import Int32Array
from broker.compiled import compiled_with
from placement.risks.streams import WordArray

STATES: Final = ("leaderless", "under_min_isr", "lost")
CARRIED: Final = 3


def add_words(counters: WordArray, state: int, found: WordArray, level: int) -> None:
    """Add 1 to the count of each draw whose bit is set in a row of `found`, which is used up.

    `counters` are uint64[3, bits, W], of `CARRIED` bits or more. All words are added at once to the lowest slices, a
    loop without a branch; what is carried beyond them, in few rows, is added word by word.
    """
    for place in range(CARRIED):
        some = np.uint64(0)
        for word in range(found.shape[1]):
            carry = found[level, word]
            found[level, word] = counters[state, place, word] & carry
            counters[state, place, word] ^= carry
            some |= found[level, word]
        if not some:
            return
    for word in range(found.shape[1]):
        carry = found[level, word]
        place = CARRIED
        while carry:
            more = counters[state, place, word] & carry
            counters[state, place, word] ^= carry
            carry = more
            place += 1


def all_of(bits: WordArray, order: Int32Array, row: int, count: int, found: WordArray) -> bool:
    """Set in the first row of `found` the draws in which the first `count` brokers have their bits; return if any."""
    some = np.uint64(0)
    one, two, three = order[row, 0], order[row, min(1, count - 1)], order[row, min(2, count - 1)]
    for word in range(found.shape[1]):
        some |= bits[one, word] & bits[two, word] & bits[three, word]
    if not some:
        return False
    for word in range(found.shape[1]):
        found[0, word] = bits[one, word] & bits[two, word] & bits[three, word]
    for place in range(3, count):
        one, some = order[row, place], np.uint64(0)
        for word in range(found.shape[1]):
            found[0, word] &= bits[one, word]
            some |= found[0, word]
    return bool(some)


def at_least(bits: WordArray, order: Int32Array, row: int, count: int, needed: int, found: WordArray) -> bool:
    """Set in row `needed` - 1 of `found` the draws with so many of the first `count` bits; return if there are any."""
    some, last = np.uint64(0), needed - 1
    if count == 3 and needed == 2:
        one, two, three = order[row, 0], order[row, 1], order[row, 2]
        # Most rows have no such draw: without a write, the compiler does four words at once.
        for word in range(found.shape[1]):
            a, b, c = bits[one, word], bits[two, word], bits[three, word]
            some |= (a & b) | ((a | b) & c)
        if some:
            for word in range(found.shape[1]):
                a, b, c = bits[one, word], bits[two, word], bits[three, word]
                found[1, word] = (a & b) | ((a | b) & c)
        return bool(some)
    found[:needed] = 0
    for place in range(count):
        one = order[row, place]
        for level in range(min(last, place), 0, -1):
            for word in range(found.shape[1]):
                found[level, word] |= found[level - 1, word] & bits[one, word]
        for word in range(found.shape[1]):
            found[0, word] |= bits[one, word]
    for word in range(found.shape[1]):
        some |= found[last, word]
    return bool(some)


@compiled_with(add_words, all_of, at_least, allocates=False)
def fill_states(
    bits: tuple[WordArray, WordArray],
    order: Int32Array,
    prefixes: Int32Array,
    every: WordArray,
    found: WordArray,
    counters: WordArray,
) -> None:
    """Count the partitions in each state in each draw: counters uint64[3, bits, W], in the order of `STATES`.

    `bits` are those of the brokers that are down, uint64[B, W], and of those lost; `order` int32[P, F] are their rows.
    `prefixes` int32[P, 4] are the columns led, members, needed, clean; `needed` of 0 or less is always under min-ISR,
    above `members` never. `every` uint64[W] has the bits of all draws; `found` uint64[F + 1, W] is room to work in.
    """
    down, lost = bits
    for row in range(order.shape[0]):
        led, members, needed, clean = prefixes[row, 0], prefixes[row, 1], prefixes[row, 2], prefixes[row, 3]
        if needed <= 0:
            for word in range(found.shape[1]):
                found[0, word] = every[word]
            add_words(counters, 1, found, 0)
        elif needed <= members:
            if at_least(down, order, row, members, needed, found):
                add_words(counters, 1, found, needed - 1)
            elif clean == led:
                continue  # A leaderless partition is under min-ISR; without unclean elections a lost one is leaderless.
        if led == 0:
            for word in range(found.shape[1]):
                found[0, word] = every[word]
            add_words(counters, 0, found, 0)
        elif all_of(down, order, row, led, found):
            add_words(counters, 0, found, 0)
        elif clean == led:
            continue
        if clean > 0 and all_of(lost, order, row, clean, found):
            add_words(counters, 2, found, 0)
