"""Appends are cut where Kafka's buffer cuts them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from broker.units import SizeBytes
from log.batches.record_columns import BatchRun
from log.compaction.filter import FilteredBatches
from log.compaction.io_chunks import Appender, IoLimits
from log.record import TimestampOffset


class Appends:
    """Stands in for the new segment: what was appended."""

    def __init__(self) -> None:
        self.made: list[tuple[int, int, TimestampOffset]] = []

    def append_set(self, run: BatchRun, *, last_offset: int) -> None:
        assert run.ends[-1] == len(run.data)
        assert len(run.ends) == len(run.last_offsets) == len(run.max_timestamps)
        assert (np.diff(run.ends, prepend=0) > 0).all()  # What is gone is no batch of the append.
        self.made.append((len(run.data), last_offset, run.largest_timestamp))


def filtered(*batches: tuple[int, int], start: int = 0, first_offset: int = 0, times: tuple[int, ...] = ()) -> Any:
    """Batches of (size before, size after); the offset is the number of the batch, the time ten times that."""
    before, after = np.array(batches, np.int64).T
    offsets = np.where(after > 0, np.arange(first_offset, first_offset + len(batches)), -1)
    return FilteredBatches(
        end_position=start + np.cumsum(before),
        pieces=[b"x" * size for size in after.tolist()],
        size_bytes=after,
        max_timestamp=np.array(times, np.int64) if times else np.where(after > 0, 10 * offsets, -1),
        max_offset=offsets,
        timestamp_offset=offsets,
        bytes_read=0,
        bytes_kept=0,
        records_read=0,
        records_kept=0,
        keyless_count=0,
    )


def appends(buffer_size: int, *chunks: Any, largest: int = 1_000) -> list[tuple[int, int, TimestampOffset]]:
    destination: Any = Appends()
    limits = IoLimits(
        buffer_size_bytes=SizeBytes(buffer_size),
        broker_message_size_bytes_max=SizeBytes(largest),
        topic_message_size_bytes_max=SizeBytes(largest),
    )
    appender = Appender(destination, limits)
    for chunk in chunks:
        appender.feed(chunk)
    appender.finish()
    return destination.made


def sizes(*arguments: Any, **options: Any) -> list[int]:
    return [size for size, _offset, _time in appends(*arguments, **options)]


def test_an_append_is_what_stays_of_the_whole_batches_that_fit_the_buffer() -> None:
    assert sizes(100, filtered((40, 10), (40, 10), (40, 10), (60, 10), (1, 1))) == [20, 20, 1]


def test_output_that_outgrows_the_buffer_ends_the_portion_after_that_batch() -> None:
    assert sizes(100, filtered((30, 60), (30, 60), (30, 60), (30, 30))) == [120, 90]
    assert sizes(100, filtered((50, 50), (50, 50), (50, 50))) == [100, 50]


def test_a_batch_larger_than_the_buffer_doubles_it_for_the_rest_of_the_segment() -> None:
    assert sizes(100, filtered((60, 1), (150, 1), (100, 1), (100, 1), (100, 1))) == [1, 1, 2, 1]


def test_the_last_offset_is_the_largest_and_the_time_the_first_of_the_largest() -> None:
    made = appends(100, filtered((20, 1), (20, 1), (20, 1), (20, 1), times=(5, 9, 9, 7)))
    assert made == [(4, 3, TimestampOffset(9, 1))]


def test_a_batch_that_is_gone_has_no_say_in_the_time() -> None:
    assert appends(100, filtered((20, 1), (20, 0), (20, 1))) == [(2, 2, TimestampOffset(20, 2))]


@pytest.mark.parametrize(
    ("buffer", "batch", "grown"),
    [(100, 100, 100), (100, 101, 200), (100, 350, 350), (100, 450, 450), (400, 600, 600), (400, 2_000, 2_000)],
)
def test_a_buffer_doubles_up_to_the_larger_limit_and_then_to_the_batch(buffer: int, batch: int, grown: int) -> None:
    limits = IoLimits(
        buffer_size_bytes=SizeBytes(buffer),
        broker_message_size_bytes_max=SizeBytes(350),
        topic_message_size_bytes_max=SizeBytes(300),
    )
    assert limits.grown(buffer, batch) == grown
