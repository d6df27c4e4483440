"""Simulate years of one cluster, loss by loss, compiled.

The next loss of any good broker is one exponential time of the sum of their rates. A loss of data is an event: one
broker or one power cut that completes one copyset or more; it counts by its number of replicas and by the cause. What
was lost begins anew when its brokers are replaced.
"""

from __future__ import annotations

import numpy as np

from broker.cluster import Int32Array, Int64Array
from broker.compiled import compiled_with
from placement.risks.draws import WordArray, next_below, next_chance, next_wait, next_word

ALONE = 0
POWER = 1


def count_lost(
    sets: tuple[Int32Array, Int64Array, Int64Array],
    is_lost: Int64Array,
    fresh: Int64Array,
    fresh_count: int,
    tally: tuple[Int64Array, Int64Array],
    cause: int,
) -> None:
    """Count the copysets that are lost now with one of the first `fresh_count` brokers of `fresh`, each once.

    `is_lost` is 0 for a good broker, 1 for one lost before, and 2 + its place in `fresh` for one that is lost now. A
    copyset counts at its broker that is first in `fresh`.
    """
    copysets, first, of_broker = sets
    events, set_counts = tally
    seen = 0  # A bit for each number of replicas with a loss.
    for place in range(fresh_count):
        broker = fresh[place]
        for at in range(first[broker], first[broker + 1]):
            row = of_broker[at]
            size = 0
            whole = True
            for column in range(copysets.shape[1]):
                other = copysets[row, column]
                if other < 0:
                    break
                size += 1
                if is_lost[other] == 0 or (is_lost[other] >= 2 and is_lost[other] - 2 < place):
                    whole = False
                    break
            if whole:
                set_counts[cause, size] += 1
                if not (seen >> size) & 1:
                    events[cause, size] += 1
                    seen |= 1 << size


@compiled_with(next_word, next_chance, next_below, next_wait, count_lost)
def fill_years(
    stream: WordArray,
    years: float,
    rates: tuple[float, float, float, float],
    sets: tuple[Int32Array, Int64Array, Int64Array],
    tally: tuple[Int64Array, Int64Array],
) -> int:
    """Simulate so many years; return the number of brokers lost.

    `rates` are losses a broker and year, mean years of a replacement, power cuts a year, and the chance that one loses
    a broker. `sets` are the copysets int32[S, F], padded with -1, and for each broker the places of its copysets in the
    third array, from first[b] to first[b + 1]. `tally` int64[2, F + 1] each: events with a loss, and copysets lost, by
    cause (`ALONE`, `POWER`) and number of replicas.
    """
    loss_rate, replace_years, cut_rate, cut_chance = rates
    broker_count = sets[1].shape[0] - 1
    smallest = sets[0].shape[1]
    for row in range(sets[0].shape[0]):
        size = 0
        for column in range(sets[0].shape[1]):
            size += sets[0][row, column] >= 0
        smallest = min(smallest, size)
    is_lost = np.zeros(broker_count, np.int64)
    lost = np.zeros(broker_count, np.int64)
    until = np.zeros(broker_count, np.float64)
    fresh = np.zeros(broker_count, np.int64)
    lost_count = total = 0
    now = 0.0
    while True:
        rate = (broker_count - lost_count) * loss_rate + cut_rate
        if rate == 0.0 and lost_count == 0:
            return total
        next_loss = now + next_wait(stream, 1.0 / rate) if rate > 0.0 else np.inf
        soonest = -1
        for place in range(lost_count):
            if until[place] < next_loss and (soonest < 0 or until[place] < until[soonest]):
                soonest = place
        if soonest >= 0:
            # What has no memory may be drawn anew after the return.
            now = until[soonest]
            if now > years:
                return total
            lost_count -= 1
            is_lost[lost[soonest]] = 0
            lost[soonest], until[soonest] = lost[lost_count], until[lost_count]
            continue
        now = next_loss
        if now > years:
            return total
        fresh_count, cause = 0, ALONE
        if next_chance(stream) * rate < cut_rate:
            cause = POWER
            for broker in range(broker_count if cut_chance > 0.0 else 0):
                if is_lost[broker] == 0 and next_chance(stream) < cut_chance:
                    fresh[fresh_count] = broker
                    fresh_count += 1
        else:
            broker = next_below(stream, broker_count)
            while is_lost[broker] != 0:
                broker = next_below(stream, broker_count)
            fresh[0], fresh_count = broker, 1
        for place in range(fresh_count):
            broker = fresh[place]
            is_lost[broker] = 2 + place
            lost[lost_count], until[lost_count] = broker, now + next_wait(stream, replace_years)
            lost_count += 1
        total += fresh_count
        if lost_count >= smallest and fresh_count > 0:
            count_lost(sets, is_lost, fresh, fresh_count, tally, cause)
        for place in range(fresh_count):
            is_lost[fresh[place]] = 1
