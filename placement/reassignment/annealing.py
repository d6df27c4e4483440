"""Search for a placement that copies fewer bytes by random exchanges, from one that is found.

What it decides: whether a placement within the bands that copies fewer bytes is found, and which.

How. Stages of random exchanges (anneal_kernel.py), each colder than the one before, then the exchanges that save bytes
without chance. What does not end within the bands, or copies no fewer bytes, is thrown away.

Constraints: as many steps as replicas and a limit allow, from a fixed seed, so that the same input gives the same plan
everywhere.

Example: the brokers of 80, which hold 30 replicas each, shall end within 0.13 % of the mean: 205.5 GB are copied before
and 197.7 afterwards, where any plan copies 195.7.

Left out: choices of partitions as large as a broker's room (large_partitions.py).

Source: ours.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from broker.cluster import Int64Array
from placement.reassignment.anneal_kernel import Fresh, anneal
from placement.reassignment.band_kernel import Loads
from placement.reassignment.parts import Parts
from placement.reassignment.whole_partitions import (
    Found,
    better,
    by_size,
    copied_bytes,
    exchange_whole,
    is_new,
    list_held,
    room_for,
    shape_of,
    spread_of,
)

_SEED: Final = 14
_STAGES: Final = 50
_STEPS_MAX: Final = 200_000  # Of a stage: 10 million in all, half a second of CPU.
_STEPS_PER_REPLICA: Final = 100
_COOLER: Final = 0.9
_HOT: Final = 0.1  # Of the mean size of a new replica.


def annealed(parts: Parts, found: Found, low: Int64Array, high: Int64Array, turn: int = 0) -> Found:
    """Return a placement within `low` to `high` int64[B] that copies fewer bytes, or the one given.

    Each `turn` draws other numbers.
    """
    problem, sizes = parts.whole, parts.sizes
    shape, _ = shape_of(problem, low, high)
    now, loads = found.now.copy(), Loads(found.loads.copy(), low, high, sizes, spread_of(problem))
    ascending, held = by_size(problem, sizes), room_for(found.now, low.size)
    seed, heat = np.array([_SEED + turn], dtype=np.int64), 0.0
    steps = min(_STEPS_MAX, _STEPS_PER_REPLICA * held.row.size)
    for stage in range(_STAGES):
        rows, columns = np.nonzero(is_new(problem, now))
        if not rows.size:
            return found
        heat = heat * _COOLER if stage else _HOT * float(sizes[rows].mean())
        fresh = Fresh(rows.astype(np.int64), now[rows, columns].astype(np.int64))
        list_held(now, ascending, held, loads)
        anneal(shape, now, loads, held, fresh, seed, steps, heat)
    exchange_whole(shape, now, loads, ascending, problem)
    other = Found(now=now, loads=loads.load, price=found.price, copied=copied_bytes(problem, now, sizes))
    return better(found, other, low, high)
