"""How long it takes to recover a segment: every checksum, both indexes, leader epochs.

Run by hand: `python -m tests.benchmarks.log_recovery [MiB]`, 1024 MiB if nothing is said. The segment holds records of
100 bytes in batches of 100, without producer ids, in memory. Medians, by wall clock and by the processor time of the
thread, in GB/s. Beside it, as what bounds it: the checksums alone, one call of the wheel for each batch.
"""

from __future__ import annotations

import statistics
import struct
import sys
import time
from collections.abc import Callable
from typing import Final

from broker.clock import ManualClock
from broker.ids import LeaderEpoch, Offset
from broker.units import GIB, MIB, SizeBytes, TimeMs
from log.build import build_batch
from log.build_spec import BatchSpec
from log.crc import crc32c
from log.epoch_cache import LeaderEpochCache
from log.log_config import LogConfig
from log.producer_state import ProducerState
from log.record import Record
from log.segment import Segment, SegmentPlace
from log.segment_recovery import recover_segment
from log.storage import MemoryStorage
from log.time_index import TimestampOffset

DIRECTORY: Final = "topic-0"
RUN_COUNT: Final = 5
RECORDS_PER_BATCH: Final = 100
START_MS: Final = TimeMs(1_700_000_000_000)
BASE_OFFSET: Final = struct.Struct(">q")


def filled_segment(size_bytes: int) -> Segment:
    """Return a segment of about so many bytes. The base offsets lie outside the checksum, so one batch serves all."""
    storage = MemoryStorage(ManualClock(START_MS))
    storage.make_directory(DIRECTORY)
    config = LogConfig(segment_size_bytes=SizeBytes(GIB))
    segment = Segment(SegmentPlace(storage, DIRECTORY, Offset(0)), config, now_ms=START_MS)
    records = [
        Record(Offset(index), TimeMs(START_MS + index), b"key-%d" % index, b"v" * 100)
        for index in range(RECORDS_PER_BATCH)
    ]
    body = build_batch(BatchSpec(partition_leader_epoch=LeaderEpoch(0)), records)[BASE_OFFSET.size :]
    for base_offset in range(0, size_bytes // (len(body) + BASE_OFFSET.size) * RECORDS_PER_BATCH, RECORDS_PER_BATCH):
        last_offset = Offset(base_offset + RECORDS_PER_BATCH - 1)
        largest = TimestampOffset(START_MS + RECORDS_PER_BATCH - 1, last_offset)
        segment.append(BASE_OFFSET.pack(base_offset) + body, last_offset=last_offset, max_timestamp=largest)
    return segment


def recover(segment: Segment) -> None:
    """Recover the segment, which is whole."""
    storage = segment.place.storage
    producers = ProducerState.open(storage, DIRECTORY, name=DIRECTORY)
    epochs = LeaderEpochCache.open(storage, f"{DIRECTORY}/leader-epoch-checkpoint")
    assert recover_segment(segment, producers, epochs) == 0


def checksums(segment: Segment) -> None:
    """Compute every batch's checksum."""
    view = segment.records.view()
    size_bytes = next(segment.batches()).size_bytes
    for position in range(0, len(view), size_bytes):
        crc32c(view[position + 21 : position + size_bytes])


def print_rate(name: str, size_bytes: int, run: Callable[[], object]) -> None:
    """Print the medians of some runs, the first left out: it compiles."""
    run()
    walls, threads = [], []
    for _ in range(RUN_COUNT):
        wall, thread = time.perf_counter(), time.thread_time()
        run()
        walls.append(time.perf_counter() - wall)
        threads.append(time.thread_time() - thread)
    wall_rate, thread_rate = (size_bytes / statistics.median(times) / 1e9 for times in (walls, threads))
    print(f"{name:<16} {wall_rate:6.2f} GB/s wall {thread_rate:6.2f} GB/s thread")


def main() -> None:
    """Print both rates."""
    segment = filled_segment(int(sys.argv[1]) * MIB if len(sys.argv) > 1 else GIB)
    print(f"{segment.size_bytes} bytes, {segment.size_bytes // next(segment.batches()).size_bytes} batches")
    print_rate("recovery", segment.size_bytes, lambda: recover(segment))
    print_rate("checksums alone", segment.size_bytes, lambda: checksums(segment))


if __name__ == "__main__":
    main()
