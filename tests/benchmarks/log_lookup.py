"""How long a look-up by offset or by timestamp takes, over an array of targets and one by one.

Run by hand: `python -m tests.benchmarks.log_lookup`. The indexes are those of a 1 GiB segment of 100-byte records in
batches of 100: 90,384 entries each, as Kafka writes them every 4 KiB. A million random targets; medians of several
runs, in microseconds a look-up, by wall clock and by the processor time of the thread. The indexes are decoded before.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final

import numpy as np

from broker.clock import ManualClock
from broker.units import MIB
from log.index_file import Int64Array
from log.offset_index import OFFSET_ENTRY, OffsetIndex
from log.segment_lookups import find_offsets, find_timestamps
from log.storage import DiskImage, MemoryStorage
from log.time_index import TIME_ENTRY, TimeIndex
from tests.benchmarks.log_recovery import filled_segment

ENTRY_COUNT: Final = 90_384
TARGET_COUNT: Final = 1_000_000
SINGLE_COUNT: Final = 100_000
RUN_COUNT: Final = 7
OFFSETS_PER_ENTRY: Final = 100
BYTES_PER_ENTRY: Final = 11_880
START_MS: Final = 1_700_000_000_000


def indexes() -> tuple[OffsetIndex, TimeIndex]:
    """Make the two indexes: an entry a batch, a millisecond a record."""
    relative = np.arange(1, ENTRY_COUNT + 1) * OFFSETS_PER_ENTRY
    offset_entries = np.zeros(ENTRY_COUNT, OFFSET_ENTRY)
    offset_entries["key"], offset_entries["value"] = relative, np.arange(ENTRY_COUNT) * BYTES_PER_ENTRY
    time_entries = np.zeros(ENTRY_COUNT, TIME_ENTRY)
    time_entries["key"], time_entries["value"] = START_MS + relative, relative
    image = DiskImage({"index": offset_entries.tobytes(), "timeindex": time_entries.tobytes()})
    storage = MemoryStorage(ManualClock(), image)
    return (
        OffsetIndex.open(storage, "index", 0, size_bytes_max=offset_entries.nbytes),
        TimeIndex.open(storage, "timeindex", 0, size_bytes_max=time_entries.nbytes),
    )


def print_median(name: str, lookup_count: int, run: Callable[[], object]) -> None:
    """Print the medians of one way of looking up."""
    run()
    walls, threads = [], []
    for _ in range(RUN_COUNT):
        wall, thread = time.perf_counter(), time.thread_time()
        run()
        walls.append(time.perf_counter() - wall)
        threads.append(time.thread_time() - thread)
    wall_us, thread_us = (statistics.median(times) / lookup_count * 1e6 for times in (walls, threads))
    print(f"{name:<28} {wall_us:8.3f} µs wall {thread_us:8.3f} µs thread")


def one_by_one(lookup: Callable[[int], object], targets: Int64Array) -> Callable[[], None]:
    """Return a run that looks up the first targets one by one."""
    singles = targets[:SINGLE_COUNT].tolist()

    def run() -> None:
        for target in singles:
            lookup(target)

    return run


def print_to_the_batch(generator: np.random.Generator) -> None:
    """Print how long it takes to find batches in a segment of 256 MiB, headers from the index entry on included."""
    segment = filled_segment(256 * MIB)
    end_offset, count = segment.read_next_offset(), TARGET_COUNT // 5
    offsets = generator.integers(0, end_offset, count)
    timestamps = generator.integers(START_MS, START_MS + 100, count)
    print_median("batch by offset, array", count, lambda: find_offsets(segment, offsets))
    print_median("batch by timestamp, array", count, lambda: find_timestamps(segment, timestamps, segment.base_offset))


def main() -> None:
    """Print the table."""
    offset_index, time_index = indexes()
    generator = np.random.default_rng(1)
    offsets = generator.integers(0, (ENTRY_COUNT + 1) * OFFSETS_PER_ENTRY, TARGET_COUNT)
    timestamps = offsets + START_MS
    print(f"{ENTRY_COUNT} entries, {TARGET_COUNT} random targets, median of {RUN_COUNT}")
    print_median("offset, array", TARGET_COUNT, lambda: offset_index.lookup_many(offsets))
    print_median("timestamp, array", TARGET_COUNT, lambda: time_index.lookup_many(timestamps))
    print_median("offset, one by one", SINGLE_COUNT, one_by_one(offset_index.lookup, offsets))
    print_median("timestamp, one by one", SINGLE_COUNT, one_by_one(time_index.lookup, timestamps))
    print_to_the_batch(generator)


if __name__ == "__main__":
    main()
