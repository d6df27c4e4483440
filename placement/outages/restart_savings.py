"""Find the few partitions that cost extra batches: without them a schedule of restarts has fewer.

Brokers are put into so many batches that as few partitions as possible break, by tabu search over the partitions that
pairs of brokers share. The number is what was found, not proven to be least; a saving that costs more than `SHARE_MAX`
of the partitions is not listed.
"""

from __future__ import annotations

from typing import Final

import attrs
import numpy as np

from broker.cluster import ClusterView, Int32Array, Int64Array
from placement.outages.restart_budget import RestartLimits, broken_rows
from placement.outages.restart_kernel import fill_by_tabu
from placement.outages.restarts import RestartSchedule

COUNTS_MAX: Final = 16
SHARE_MAX: Final = 0.1
TABU_STEPS_MAX: Final = 20_000_000
TABU_TURNS: Final = 2_000
BROKERS_MAX: Final = 2_000  # The weights of pairs take four bytes each.


@attrs.frozen(kw_only=True, eq=False)
class Saving:
    """Hold a number of batches that would do without the partitions in `rows` of `view.partitions`."""

    batch_count: int
    rows: Int64Array


def savings(view: ClusterView, schedule: RestartSchedule) -> tuple[Saving, ...]:
    """Return the savings worth a look, the fewest batches first; each costs fewer partitions than the one before."""
    limits = schedule.limits
    now, count = len(schedule.batches), limits.limits.brokers.size
    if limits.limits.batch_max < count or count > BROKERS_MAX:
        return ()
    weight = _weights(limits, count)
    spread = map(int, np.linspace(9, now - 1, COUNTS_MAX - 8))
    counts = range(1, now) if now <= COUNTS_MAX else sorted({*range(1, 9), len(view.racks), *spread})
    found: list[Saving] = []
    for batch_count in (each for each in counts if 0 < each < now):
        rows = _cheapest(view, limits, weight, batch_count)
        # More batches are worth a line only if they cost fewer partitions.
        if rows.size <= SHARE_MAX * view.partitions.count and (not found or rows.size < found[-1].rows.size):
            found.append(Saving(batch_count=batch_count, rows=rows))
    return tuple(found)


def _weights(limits: RestartLimits, count: int) -> Int32Array:
    """Return for each pair of brokers how many partitions forbid them to restart together, int32[N, N]."""
    weight = np.zeros((count, count), dtype=np.int32)
    rows = limits.together[limits.allowed == 1]
    for one in range(rows.shape[1]):
        for other in range(rows.shape[1]):
            if one != other:
                both = (rows[:, one] >= 0) & (rows[:, other] >= 0)
                np.add.at(weight, (rows[both, one], rows[both, other]), 1)
    return weight


def _cheapest(view: ClusterView, limits: RestartLimits, weight: Int32Array, batch_count: int) -> Int64Array:
    """Return the rows that break in the best assignment to `batch_count` batches that was found."""
    racks, count = view.rack_places[limits.limits.brokers], limits.limits.brokers.size
    every = np.arange(count)
    starts = [np.where(racks < 0, every, racks) % batch_count, every % batch_count]
    tried = []
    for start in starts:
        batch_of = start.astype(np.int32)
        fill_by_tabu(weight, batch_count, min(TABU_STEPS_MAX, TABU_TURNS * count * batch_count), batch_of)
        tried += [broken_rows(limits, start.astype(np.int32)), broken_rows(limits, batch_of)]
    return min(tried, key=lambda rows: rows.size)
