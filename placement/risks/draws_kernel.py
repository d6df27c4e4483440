"""Set the bits of the brokers that are down or lost, 64 draws a machine word, compiled.

How: brokers are taken from a random permutation, which is shuffled again when too few are left for a draw. So the
brokers of a draw are a random set, and sets of one size use every broker about equally often.

Cost: O(brokers down, over all draws).

Source: ours; the shuffle is that of Fisher and Yates.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array
from broker.compiled import compiled_with
from placement.risks.streams import WordArray, next_below, next_chance, next_word


@compiled_with(next_word, next_chance, next_below)
def fill_down(stream: WordArray, down_count: Int32Array, lost_chance: float, down: WordArray, lost: WordArray) -> None:
    """Set in `down` and `lost`, uint64[B, W], the bits of the brokers of each draw; `down_count` says how many."""
    broker_count = down.shape[0]
    order = np.arange(broker_count)
    taken = broker_count
    for draw in range(down_count.shape[0]):
        wanted = down_count[draw]
        if broker_count - taken < wanted:
            for place in range(broker_count - 1, 0, -1):
                other = next_below(stream, place + 1)
                order[place], order[other] = order[other], order[place]
            taken = 0
        bit = np.uint64(1) << np.uint64(draw & 63)
        for place in range(taken, taken + wanted):
            broker = order[place]
            down[broker, draw >> 6] |= bit
            if lost_chance > 0.0 and next_chance(stream) < lost_chance:
                lost[broker, draw >> 6] |= bit
        taken += wanted
