"""What compiling buys: each compiled loop beside a fair numpy formulation of the same rows.

    python -m tests.benchmarks.numba_gain [--rounds 11] [--json]

What it measures: the CPU time of placing 1,000,000 partitions of factor 3 on 1,000 brokers, by the
library's compiled loops and by the numpy versions below, whose rows must be equal. numba is a large
dependency; it is here because a hot loop gains at least three times by it.

How: the numpy versions work on whole columns. Classic: one candidate a step for every partition,
and from the second step on only for those still without a follower. Striped: all draws of the
generator at once by jumping ahead, the shuffles of all rounds side by side, and then the rows from
the number of times that each rack was taken before. Both are written for this case alone (no
brokers fenced, racks of one size for striped, factor at most the racks), which favours them: the
compiled loops answer every case.

Left out: compilation, which happens once in the life of an installation, as it is cached.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from broker.cluster import BrokerView, Int32Array
from broker.entropy import JAVA_INCREMENT, JAVA_MULTIPLIER, JavaRandom
from broker.ids import BrokerId
from placement.placers.broker_columns import BrokerColumns
from placement.placers.classic import ClassicPlacer, ring_of
from placement.placers.striped import StripedPlacer
from tests.benchmarks.placement import BROKER_COUNT, FACTOR, PARTITION_COUNT, RACKED, SPEC
from tests.benchmarks.report import describe_machine, show

WARM_UP_ROUNDS: Final = 3
SEED: Final = 1
LARGE_RACK_EVERY: Final = 4
UNEVEN: Final = tuple(
    BrokerView(id=BrokerId(number), rack="large" if number % LARGE_RACK_EVERY else f"small-{number % 9}")
    for number in range(BROKER_COUNT)
)
"""Ten racks, one of which holds three brokers of four, so that most candidates are rejected."""


def main() -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.numba_gain", description="Measure compiled loops beside numpy."
    )
    parser.add_argument("--rounds", type=int, default=11, help="measured calls a line (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    options = parser.parse_args()
    classic, striped = ClassicPlacer(fixed_start_index=0), StripedPlacer()
    rows = [
        compare(
            "classic, 10 even racks",
            lambda: classic.place(SPEC, RACKED, JavaRandom(SEED)),
            lambda: numpy_rack_aware(RACKED),
            options.rounds,
        ),
        compare(
            "classic, 10 uneven racks",
            lambda: classic.place(SPEC, UNEVEN, JavaRandom(SEED)),
            lambda: numpy_rack_aware(UNEVEN),
            options.rounds,
        ),
        compare(
            "striped, 10 even racks",
            lambda: striped.place(SPEC, RACKED, JavaRandom(SEED)),
            lambda: numpy_striped(RACKED),
            options.rounds,
        ),
    ]
    title = f"{PARTITION_COUNT:,} partitions, factor {FACTOR}, {BROKER_COUNT:,} brokers: median CPU ms of one call"
    show(title, describe_machine("numpy", "numba"), rows, as_json=options.json)
    return 0


def compare(
    name: str, compiled: Callable[[], Int32Array], vectorised: Callable[[], Int32Array], rounds: int
) -> dict[str, object]:
    """Return one row of the table; the rows of both sides must be equal."""
    assert np.array_equal(compiled(), vectorised()), name
    compiled_ms: list[float] = []
    numpy_ms: list[float] = []
    for _ in range(WARM_UP_ROUNDS + rounds):
        compiled_ms.append(_cpu_ms(compiled))
        numpy_ms.append(_cpu_ms(vectorised))
    compiled_median = statistics.median(compiled_ms[WARM_UP_ROUNDS:])
    numpy_median = statistics.median(numpy_ms[WARM_UP_ROUNDS:])
    return {
        "loop": name,
        "compiled ms": round(compiled_median, 2),
        "numpy ms": round(numpy_median, 2),
        "gain": round(numpy_median / compiled_median, 2),
    }


def _cpu_ms(call: Callable[[], Int32Array]) -> float:
    begin = time.process_time_ns()
    call()
    return (time.process_time_ns() - begin) / 1e6


def numpy_rack_aware(brokers: tuple[BrokerView, ...]) -> Int32Array:
    """Return the classic rows for start index 0 and partitions from 0, whole columns at a time."""
    columns = BrokerColumns.of(brokers)
    ring = ring_of(columns).positions
    racks = columns.rack_codes[ring]
    size, rack_count = np.int32(len(ring)), np.int32(len(columns.rack_names))
    partitions = np.arange(PARTITION_COUNT, dtype=np.int32)
    leader = partitions % size
    placed, used_racks = [leader], [racks[leader]]
    step = partitions // size * rack_count % (size - 1)
    for _ in range(1, FACTOR):
        follower, step = _next_followers(leader, step, used_racks, racks, size)
        placed.append(follower)
        used_racks.append(racks[follower])
    rows: Int32Array = columns.ids[ring[np.stack(placed, axis=1)]]
    return rows


def _next_followers(
    leader: Int32Array, step: Int32Array, used_racks: list[Int32Array], racks: Int32Array, size: np.int32
) -> tuple[Int32Array, Int32Array]:
    """Return each partition's next follower in a rack unused so far, and the step after it."""
    follower, next_step, rejected = _candidates(leader, step, used_racks, racks, size)
    open_rows = np.flatnonzero(rejected)
    while len(open_rows):
        open_racks = [column[open_rows] for column in used_racks]
        place, after, rejected = _candidates(leader[open_rows], next_step[open_rows], open_racks, racks, size)
        follower[open_rows] = place
        next_step[open_rows] = after
        open_rows = open_rows[rejected]
    return follower, next_step


def _candidates(
    leader: Int32Array, step: Int32Array, used_racks: list[Int32Array], racks: Int32Array, size: np.int32
) -> tuple[Int32Array, Int32Array, NDArray[np.bool_]]:
    place = leader + np.int32(1) + step
    place -= np.where(place >= size, size, np.int32(0))
    after = step + np.int32(1)
    after -= np.where(after == size - 1, size - np.int32(1), np.int32(0))
    rack = racks[place]
    rejected = rack == used_racks[0]
    for used in used_racks[1:]:
        rejected |= rack == used
    return place, after, rejected


def numpy_striped(brokers: tuple[BrokerView, ...]) -> Int32Array:
    """Return the striped rows from a fresh generator; racks of one size, none fenced, factor at most the racks."""
    columns = BrokerColumns.of(brokers)
    rack_count = len(columns.rack_names)
    hash_order = np.array(columns.rack_hash_order)
    by_rack = np.stack([np.flatnonzero(columns.rack_codes == code) for code in hash_order]).astype(np.int32)
    rack_size = by_rack.shape[1]
    round_count = -(-PARTITION_COUNT // columns.count)
    draw_bounds = np.concatenate(
        ([rack_size] * rack_count, [rack_count], np.tile(_shuffle_bounds(rack_count, rack_size), round_count - 1))
    )
    drawn = _draws(draw_bounds)
    offsets, ring_offset = drawn[:rack_count], drawn[rack_count]
    swaps = drawn[rack_count + 1 :].reshape(round_count - 1, -1)
    rings = _shuffled(np.argsort(hash_order)[None].astype(np.int32), swaps[:, None, : rack_count - 1])[:, 0]
    lists = _shuffled(by_rack, swaps[:, rack_count - 1 :].reshape(round_count - 1, rack_count, -1))
    partitions = np.arange(PARTITION_COUNT)
    rounds = partitions // columns.count
    places = (partitions[:, None] + int(ring_offset) + np.arange(FACTOR)) % rack_count
    rack = rings[rounds[:, None], places]
    taken = _times_taken(rack, offsets, rack_count) % rack_size
    rows: Int32Array = columns.ids[lists[rounds[:, None], rack, taken]]
    return rows


def _shuffle_bounds(rack_count: int, rack_size: int) -> NDArray[np.int64]:
    one_list = np.arange(rack_size, 1, -1)
    return np.concatenate((np.arange(rack_count, 1, -1), np.tile(one_list, rack_count)))


def _draws(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return nextInt(bound) for every bound in order; a draw that Java would reject is not expected."""
    count = len(bounds)
    multipliers = np.empty(count, dtype=np.uint64)
    increments = np.empty(count, dtype=np.uint64)
    # The generator after n steps is multipliers[n-1] * state + increments[n-1]: doubled from what is known.
    multipliers[0], increments[0] = JAVA_MULTIPLIER, JAVA_INCREMENT
    known = 1
    while known < count:
        more = min(known, count - known)
        multipliers[known : known + more] = multipliers[:more] * multipliers[known - 1]
        increments[known : known + more] = increments[:more] + multipliers[:more] * increments[known - 1]
        known += more
    states = multipliers * np.uint64(JavaRandom(SEED).state) + increments
    bits = ((states & np.uint64((1 << 48) - 1)) >> np.uint64(17)).astype(np.int64)
    powers = bounds & (bounds - 1) == 0
    values = bits % bounds
    assert not np.any(~powers & (bits - values + bounds > 1 << 31)), "another seed is needed"
    return np.where(powers, bounds * bits >> 31, values)


def _shuffled(initial: NDArray[np.int32], swaps: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return lists[round, list, place]: `initial` in round 0, then shuffled on by `swaps` round by round."""
    round_count, list_count, swap_count = swaps.shape
    moved = np.tile(np.arange(swap_count + 1), (round_count, list_count, 1))
    every_round, every_list = np.ogrid[:round_count, :list_count]
    for number in range(swap_count):
        last, other = swap_count - number, swaps[:, :, number]
        kept = moved[:, :, last].copy()
        moved[:, :, last] = moved[every_round, every_list, other]
        moved[every_round, every_list, other] = kept
    lists = np.empty((round_count + 1, *initial.shape), dtype=np.int32)
    lists[0] = initial
    for number in range(round_count):
        lists[number + 1] = np.take_along_axis(lists[number], moved[number], axis=1)
    return lists


def _times_taken(rack: NDArray[np.int64], offsets: NDArray[np.int64], rack_count: int) -> NDArray[np.int64]:
    """Return for each replica its rack's drawn offset plus how often the rack was taken before it."""
    taken = rack.ravel()
    order = np.argsort(taken, kind="stable")
    counts = np.bincount(taken, minlength=rack_count)
    starts = np.cumsum(counts) - counts
    before = np.empty_like(order)
    before[order] = np.arange(len(taken)) - np.repeat(starts, counts)
    # A list moves its offset on when first touched in an epoch, but not in the very first one.
    touched_first = np.zeros(rack_count, dtype=np.int64)
    touched_first[rack[0]] = 1
    return (before + (offsets + 1 - touched_first)[taken]).reshape(rack.shape)


if __name__ == "__main__":
    sys.exit(main())
