"""Where a read begins and ends: at its limit, behind it, after the limit's segment; and what is found for a time."""

from __future__ import annotations

import pytest

from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.errors import UnsupportedForMessageFormatError
from log.partition.partition_log import PartitionLog
from log.partition.reading import Isolation, OffsetPlace
from log.record import NO_TIMESTAMP, Record
from tests.log.made import EPOCH, NOW, batch, config, opened


def of_batches(count: int, per_segment: int) -> PartitionLog:
    """A log of equal batches of one record, nothing committed."""
    size = len(batch())
    log = opened(settings=config(segment_bytes=per_segment * size))
    for _ in range(count):
        log.append_as_leader(batch(), leader_epoch=EPOCH, now_ms=NOW)
    return log


def test_an_empty_read_at_or_behind_its_limit_says_where_its_offset_lies() -> None:
    log, size = of_batches(5, per_segment=3), len(batch())
    log.update_high_watermark(Offset(2))
    for start in (2, 3, 4, 5):
        found = log.read(Offset(start), 1000, isolation=Isolation.HIGH_WATERMARK)
        assert bytes(found.records) == b""
        assert found.start == OffsetPlace(Offset(start), Offset(start // 3 * 3), start % 3 * size), start


def test_an_offset_of_which_no_batch_is_left_lies_at_the_end_of_the_log() -> None:
    """LocalLog.read: all records at and above the start offset are gone, as after a cut inside of their batch."""
    log = opened(settings=config(segment_bytes=10_000))
    for count in (2, 2, 4):
        log.append_as_leader(batch(count), leader_epoch=EPOCH, now_ms=NOW)
    log.truncate_to(Offset(6), now_ms=NOW)
    log.update_high_watermark(Offset(2))
    for start, isolation in ((4, Isolation.HIGH_WATERMARK), (5, Isolation.COMMITTED), (4, Isolation.LOG_END)):
        found = log.read(Offset(start), 1000, isolation=isolation)
        assert (bytes(found.records), found.start) == (b"", log.end_place), start
    log.update_high_watermark(Offset(5))
    whole = log.read(Offset(0), 1000, isolation=Isolation.HIGH_WATERMARK)
    assert len(whole.records) == log.size_bytes


@pytest.mark.parametrize(
    ("magic", "timestamp", "found"),
    [(0, NO_TIMESTAMP, None), (1, NO_TIMESTAMP, (0, -1)), (1, NOW, (1, NOW + 1)), (2, NOW, (1, NOW + 1))],
)
def test_the_latest_record_of_a_log_is_none_where_its_batches_have_no_times_at_all(
    magic: int, timestamp: int, found: tuple[int, int] | None
) -> None:
    """RecordBatch.offsetOfMaxTimestamp is empty for magic 0 only: of the later formats -1 is a time like any other."""
    log = opened(settings=config(segment_bytes=10_000))
    times = (timestamp, timestamp if timestamp < 0 else timestamp + 1)
    records = [Record(Offset(place), TimeMs(time), b"k", b"v") for place, time in enumerate(times)]
    log.append_as_follower(build_batch(BatchSpec(magic=magic, partition_leader_epoch=EPOCH), records), now_ms=NOW)
    latest = log.fetch_offset_by_timestamp(-3)
    assert (None if latest is None else (latest.offset, latest.timestamp_ms)) == found


@pytest.mark.parametrize("asked", [-2, -4])
def test_the_start_of_a_log_has_an_epoch_only_if_the_epochs_that_are_known_reach_that_far(asked: int) -> None:
    log = of_batches(3, per_segment=3)
    assert log.epochs is not None
    assert start_of(log, asked) == (0, EPOCH)
    log.epochs.clear()
    assert start_of(log, asked) == (0, None)
    log.assign_epoch_start(LeaderEpoch(8), Offset(1))
    assert start_of(log, asked) == (0, None)
    log.update_high_watermark(Offset(3))
    log.increment_log_start_offset(Offset(1))
    assert start_of(log, asked) == (1, 8)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_log_of_an_old_format_has_a_start_and_an_end_without_epochs(magic: int) -> None:
    log = opened(settings=config(message_format_version={0: "0.9.0", 1: "0.10.2"}[magic]))
    log.append_as_follower(batch(magic=magic, timestamp=NOW if magic else NO_TIMESTAMP), now_ms=NOW)
    assert [start_of(log, asked) for asked in (-1, -2, -4)] == [(1, None), (0, None), (0, None)]


@pytest.mark.parametrize("asked", [-3, 0, NOW])
def test_a_log_without_times_refuses_to_look_for_one(asked: int) -> None:
    log = opened(settings=config(message_format_version="0.9.0"))
    with pytest.raises(UnsupportedForMessageFormatError, match="topic-0: messages of magic 0 have no time"):
        log.fetch_offset_by_timestamp(asked)


def start_of(log: PartitionLog, asked: int) -> tuple[int, int | None]:
    """Offset and epoch of what is found for a time."""
    found = log.fetch_offset_by_timestamp(asked)
    assert found is not None
    assert found.timestamp_ms == -1
    return found.offset, found.leader_epoch
