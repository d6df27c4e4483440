"""Columns appended many batches at a time leave what batches appended one by one leave, to the last byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import BrokersideError
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches import build_columns
from log.batches.build import BatchSpec, build_batch
from log.codecs.compression import Codec
from log.errors import (
    IllegalArgumentError,
    SegmentOffsetOverflowError,
    StorageError,
)
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.record import NO_TIMESTAMP, Record, TimestampType
from log.segments.file_names import LOG
from log.storage import Fault, FaultKind, FaultyStorage
from tests.log.batches.test_build_columns import columns_of
from tests.log.made import NOW, config, memory, opened, segment
from tests.support.disk_image import image_of

PLAIN = BatchSpec(partition_leader_epoch=LeaderEpoch(4))
SPECS = (
    PLAIN,
    PLAIN,
    PLAIN,
    attrs.evolve(PLAIN, codec=Codec.LZ4),
    attrs.evolve(PLAIN, codec=Codec.GZIP, partition_leader_epoch=LeaderEpoch(7)),
    attrs.evolve(PLAIN, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=NOW),
    attrs.evolve(PLAIN, producer_id=ProducerId(3), producer_epoch=ProducerEpoch(0), base_sequence=0),
    BatchSpec(),  # Without an epoch, which is refused.
)
CONFIGS = st.fixed_dictionaries(
    {
        "segment_bytes": st.sampled_from((150, 1000, 100_000)),
        "segment_ms": st.sampled_from((3, 10**9)),
        "segment_index_bytes": st.sampled_from((40, 1000)),
        "index_interval_bytes": st.sampled_from((0, 100)),
        "flush_messages": st.sampled_from((5, 2**63 - 1)),
    }
)
TIMES = st.sampled_from((-1, NOW - 9, NOW, NOW + 1, NOW + 5, NOW + 40))
VALUES = st.none() | st.binary(max_size=30)
ROWS = st.lists(st.tuples(TIMES, st.none() | st.just(b"key"), VALUES), min_size=2, max_size=25)
GAPS = st.sampled_from((0, 0, 0, 2, -1))
CALLS = st.lists(st.tuples(GAPS, st.sampled_from(SPECS), ROWS, st.integers(1, 4)), min_size=1, max_size=3)


def records_of(rows: Sequence[tuple[int, bytes | None, bytes | None]], base_offset: int) -> list[Record]:
    return [Record(Offset(base_offset + row), TimeMs(rows[row][0]), *rows[row][1:]) for row in range(len(rows))]


def append_one_by_one(log: PartitionLog, spec: BatchSpec, records: list[Record], per_batch: int) -> None:
    for first in range(0, len(records), per_batch):
        sequence = first if spec.base_sequence >= 0 else -1
        each = attrs.evolve(spec, base_offset=Offset(spec.base_offset + first), base_sequence=sequence)
        log.append_as_follower(build_batch(each, records[first : first + per_batch]), now_ms=NOW)


def append_at_once(log: PartitionLog, spec: BatchSpec, records: list[Record], per_batch: int) -> None:
    info = log.append_columns(spec, columns_of(records), per_batch, now_ms=NOW)
    log.check_invariants()
    assert (info.first_offset, info.last_offset) == (spec.base_offset, log.log_end_offset - 1)
    largest = max(NO_TIMESTAMP if spec.log_append_time >= 0 else record.timestamp for record in records)
    assert info.max_timestamp.timestamp == max(largest, spec.log_append_time)


def outcome(log: PartitionLog, way: Any, spec: BatchSpec, records: list[Record], per_batch: int) -> str:
    """Append, and return the refusal in words."""
    try:
        way(log, spec, records, per_batch)
    except BrokersideError as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return ""


@given(CONFIGS, CALLS)
def test_files_state_and_refusals_are_those_of_batches_appended_one_by_one(
    settings: dict[str, int], calls: list[tuple[int, BatchSpec, list[Any], int]]
) -> None:
    at_once, one_by_one = opened(settings=config(**settings)), opened(settings=config(**settings))
    with patch.object(build_columns, "RUN_BYTES", 700):  # So that a call is more than one run.
        for gap, spec, rows, per_batch in calls:
            base_offset = max(0, at_once.log_end_offset + gap)
            records = records_of(rows, base_offset)
            moved = attrs.evolve(spec, base_offset=Offset(base_offset))
            refusals = [
                outcome(log, way, moved, records, per_batch)
                for log, way in ((at_once, append_at_once), (one_by_one, append_one_by_one))
            ]
            assert refusals[0] == refusals[1]
            assert at_once.state() == one_by_one.state()
            assert image_of(at_once.storage) == image_of(one_by_one.storage)
    for log in (at_once, one_by_one):
        log.close(now_ms=NOW)
    assert image_of(at_once.storage) == image_of(one_by_one.storage)


ROWS_OF_ONE_TIME = [(NOW, b"key", b"value")] * 12


def test_no_records_change_nothing() -> None:
    log = opened()
    info = log.append_columns(PLAIN, columns_of([]), 3, now_ms=NOW)
    assert (info.first_offset, info.last_offset, log.log_end_offset) == (-1, -1, 0)
    assert log.local.segments.active.size_bytes == 0


def test_what_was_appended_is_reported_of_all_batches_together() -> None:
    rows = [(NOW, None, b"1"), (NOW + 2, None, b"2"), (NOW + 1, None, b"3"), (NOW + 2, None, b"4"), (NOW, None, b"5")]
    for run_bytes in (1, 100_000):  # One batch a run, and all batches.
        log = opened(settings=config(segment_bytes=10_000))
        with patch.object(build_columns, "RUN_BYTES", run_bytes):
            info = log.append_columns(PLAIN, columns_of(records_of(rows, 0)), 1, now_ms=NOW)
        assert (info.first_offset, info.last_offset, info.log_start_offset) == (0, 4, 0)
        assert (info.max_timestamp.timestamp, info.max_timestamp.offset) == (NOW + 2, 1)


def test_the_age_of_a_segment_that_a_run_began_is_counted_from_the_first_batch_of_that_run() -> None:
    log = opened(settings=config(segment_bytes=10_000, segment_ms=3))
    bases = []
    for times in ((NOW, NOW - 9), (NOW + 3,), (NOW + 4,)):
        spec = attrs.evolve(PLAIN, base_offset=log.log_end_offset)
        append_at_once(log, spec, records_of([(time, b"key", b"value") for time in times], spec.base_offset), 1)
        bases.append([segment.base_offset for segment in log.segments])
    assert bases == [[0], [0], [0, 3]]


def test_of_a_write_that_was_torn_whole_batches_are_left_when_the_log_is_opened_again() -> None:
    disk = memory()
    log = opened(FaultyStorage(disk, Fault("*.log", FaultKind.TORN_WRITE)), config(segment_bytes=10_000))
    records = records_of(ROWS_OF_ONE_TIME, 0)
    with pytest.raises(StorageError):
        log.append_columns(PLAIN, columns_of(records), 2, now_ms=NOW)
    assert log.log_end_offset == 0
    torn_bytes = disk.size_bytes(log.local.segments.active.place.path(LOG))
    left = opened(disk, config(segment_bytes=10_000), last_shutdown=LastShutdown(clean=False))
    whole = opened(settings=config(segment_bytes=10_000))
    append_one_by_one(whole, PLAIN, records[: left.log_end_offset], 2)
    assert left.log_end_offset == 6  # Half of the bytes are three batches of six.
    assert left.local.segments.active.size_bytes == torn_bytes
    assert bytes(left.local.segments.active.records.view()) == bytes(whole.local.segments.active.records.view())


def test_a_run_that_does_not_fit_a_segment_is_refused_before_anything_is_written() -> None:
    made = segment(config(segment_index_bytes=40), base_offset=5)
    run = next(build_columns.each_run(BatchSpec(Offset(5)), columns_of(records_of(ROWS_OF_ONE_TIME, 5)), 2))
    with pytest.raises(IllegalArgumentError) as refusal:
        made.append_run(run)
    assert str(refusal.value).startswith(f"6 batches of {len(run.data)} bytes are too many for Segment(topic-0/")
    far = attrs.evolve(run, last_offsets=run.last_offsets + 2**31)
    with pytest.raises(SegmentOffsetOverflowError):
        made.append_run(far)
    below = attrs.evolve(run, last_offsets=run.last_offsets - 7)
    with pytest.raises(SegmentOffsetOverflowError):
        made.append_run(below)
    assert made.size_bytes == 0
    made.append_run(run.rows(0, 0))
    made.append_run(run.rows(0, 2))
    assert (made.size_bytes, made.read_next_offset()) == (run.ends[1], 9)
