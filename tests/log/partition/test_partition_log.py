"""What followers and consumers get from a log, where a read begins and ends, and what each release answers."""

from __future__ import annotations

import attrs
import pytest

from broker.entropy import SplitMix64
from broker.errors import CorruptDataError, UsageError
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.releases import NEWEST, Release
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch, build_marker
from log.batches.in_buffer import batches_in
from log.codecs.crc import crc32c
from log.errors import (
    InconsistentTopicIdError,
    OffsetsOutOfOrderError,
    SegmentExistsError,
    UnexpectedAppendOffsetError,
)
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.partition.reading import Isolation, OffsetPlace
from log.partition.recovery import LastShutdown
from log.record import NO_TIMESTAMP, ControlType, EndTransactionMarker, Record
from log.storage.checkpoints import EpochEntry
from tests.log.made import EPOCH, NOW, appended, batch, config, memory, opened


def test_a_wrong_largest_time_in_the_header_is_put_right() -> None:
    log = opened()
    sent = bytearray(batch(2))
    sent[35:43] = (5).to_bytes(8)
    (forged,) = batches_in(bytes(sent))
    sent[17:21] = crc32c(bytes(sent[21:])).to_bytes(4)
    appended(log, bytes(sent))
    (stored,) = log.active_segment.batches()
    assert (forged.max_timestamp, stored.max_timestamp, stored.is_valid()) == (5, NOW + 1, True)


def test_a_follower_takes_gaps_but_no_step_back() -> None:
    log = opened()
    log.append_as_follower(batch(base_offset=100, partition_leader_epoch=0), now_ms=NOW)
    assert log.log_end_offset == 101
    with pytest.raises(UnexpectedAppendOffsetError, match="begins at offset 50, below the next one 101"):
        log.append_as_follower(batch(base_offset=50), now_ms=NOW)
    with pytest.raises(OffsetsOutOfOrderError, match="offsets of the batches to append do not grow"):
        log.append_as_follower(batch(base_offset=300) + batch(base_offset=200), now_ms=NOW)


def test_a_follower_rolls_where_an_offset_would_not_fit() -> None:
    log = opened()
    log.append_as_follower(batch(base_offset=5, partition_leader_epoch=0), now_ms=NOW)
    log.append_as_follower(batch(base_offset=2**31, partition_leader_epoch=0), now_ms=NOW)
    assert [segment.base_offset for segment in log.segments] == [0, 2**31]


def transactional(sequence: int, count: int = 1) -> bytes:
    return batch(count, producer_id=7, producer_epoch=0, base_sequence=sequence, is_transactional=True)


def end(log: PartitionLog, kind: ControlType) -> None:
    spec = BatchSpec(producer_id=ProducerId(7), producer_epoch=ProducerEpoch(0))
    marker = build_marker(spec, EndTransactionMarker(kind, 0), NOW)
    log.append_as_leader(marker, leader_epoch=EPOCH, now_ms=NOW, origin=AppendOrigin.COORDINATOR, transaction_version=0)


def test_an_open_transaction_below_a_log_start_without_data_holds_nobody_back() -> None:
    log = opened(settings=config(segment_bytes=10_000))
    appended(log, transactional(0))
    record = Record(Offset(6), NOW, b"k", b"v")
    log.append_as_follower(build_batch(BatchSpec(Offset(6), partition_leader_epoch=EPOCH), [record]), now_ms=NOW)
    log.update_high_watermark(log.log_end_offset)
    log.truncate_to(Offset(5), now_ms=NOW)
    assert (log.log_end_offset, log.last_stable_offset) == (5, 0)
    log.increment_log_start_offset(Offset(4))
    assert log.last_stable_offset == 5


@pytest.mark.parametrize(
    ("release", "timestamp", "offset"), [("4.3", -5, -1), ("4.3", -6, -1), ("4.2", -6, -1), ("4.1", -6, 0)]
)
def test_what_is_asked_of_remote_storage_is_not_there(release: str, timestamp: int, offset: int) -> None:
    log = opened(settings=attrs.evolve(config(), release=Release(release)))
    appended(log, batch(2))
    found = log.fetch_offset_by_timestamp(timestamp)
    assert found is not None
    assert (found.offset, found.leader_epoch) == ((-1, -1) if offset < 0 else (0, EPOCH))


def test_what_lies_below_a_new_log_start_is_forgotten_and_counts_as_flushed() -> None:
    log = opened()
    for epoch in (1, 2):
        log.append_as_leader(batch(2), leader_epoch=LeaderEpoch(epoch), now_ms=NOW)
    log.update_high_watermark(Offset(4))
    log.increment_log_start_offset(Offset(3))
    state = log.state()
    assert (state.recovery_point, state.leader_epochs) == (3, (EpochEntry(LeaderEpoch(2), Offset(3)),))
    log.increment_log_start_offset(Offset(4))
    log.take_producer_snapshot()  # Nothing is left that one could be of.
    assert not [name for name in log.storage.list(log.directory) if name.endswith(".snapshot")]


def test_rolling_twice_at_the_same_offset_replaces_the_empty_segment() -> None:
    log = opened()
    appended(log, batch())
    assert [log.roll(now_ms=NOW).base_offset for _ in range(2)] == [1, 1]
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    log.roll(now_ms=NOW, expected_next_offset=Offset(9))
    with pytest.raises(SegmentExistsError, match="cannot roll to 5, below the last segment's base 9"):
        log.roll(now_ms=NOW, expected_next_offset=Offset(5))
    with pytest.raises(SegmentExistsError, match="cannot roll to 1, where a segment begins already"):
        log.roll(now_ms=NOW)  # The empty segment of 1 is not the last one, and stays.
    assert [segment.base_offset for segment in log.segments] == [0, 1, 9]


def test_a_log_of_one_topic_cannot_be_opened_as_anothers() -> None:
    storage = memory()
    opened(storage, topic_id="AAAAAAAAHvoAAAAAAAGZJg").close(now_ms=NOW)
    assert opened(storage).topic_id == "AAAAAAAAHvoAAAAAAAGZJg"
    with pytest.raises(InconsistentTopicIdError, match="topic-0 belongs to the topic of id AAAAAAAAHvoAAAAAAAGZJg"):
        opened(storage, topic_id="AAAAAAAAHvoAAAAAAAGZJh")


def test_jitter_is_drawn_from_the_chance_given() -> None:
    with pytest.raises(UsageError, match="needs a source of chance"):
        opened(settings=config(segment_jitter_ms=1000))
    log = opened(settings=config(segment_jitter_ms=1000), entropy=SplitMix64(1))
    jitters = [log.roll(now_ms=NOW, expected_next_offset=Offset(offset)).jitter_ms for offset in range(1, 9)]
    assert len(set(jitters)) > 4
    assert all(0 <= jitter < 1000 for jitter in jitters)


def test_damage_is_reported_with_its_place() -> None:
    log = opened(settings=config(segment_bytes=10_000))
    appended(log, batch(), batch())
    log.active_segment.records.write_at(8, bytes(4))
    with pytest.raises(CorruptDataError, match=r"topic-0/0{20}\.log at byte 0"):
        log.read(Offset(0), 100)


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
    assert start_of(log, asked) == (0, EPOCH)
    log.epochs.clear()
    assert start_of(log, asked) == (0, None)
    log.assign_epoch_start(LeaderEpoch(8), Offset(1))
    assert start_of(log, asked) == (0, None)
    log.update_high_watermark(Offset(3))
    log.increment_log_start_offset(Offset(1))
    assert start_of(log, asked) == (1, 8)


def start_of(log: PartitionLog, asked: int) -> tuple[int, int | None]:
    """Offset and epoch of what is found for a time."""
    found = log.fetch_offset_by_timestamp(asked)
    assert found is not None
    assert found.timestamp_ms == -1
    return found.offset, found.leader_epoch


IDS = {"producer_id": ProducerId(7), "producer_epoch": ProducerEpoch(0), "base_sequence": 0}
RELEASES = (Release("3.9"), Release("4.0"), NEWEST)


def log_of(release: Release, *sets: bytes) -> PartitionLog:
    """A log that starts at 0 and is replicated up to its end, segments of one size."""
    log = opened(settings=attrs.evolve(config(segment_bytes=100_000), release=release))
    for each in sets:
        log.append_as_leader(each, leader_epoch=EPOCH, now_ms=NOW)
    log.update_high_watermark(log.log_end_offset)
    return log


@pytest.mark.parametrize("release", RELEASES)
def test_a_log_start_inside_the_batch_that_opened_a_transaction(release: Release) -> None:
    log = log_of(release, batch(2), batch(8, is_transactional=True, **IDS))
    assert log.last_stable_offset == 2
    log.increment_log_start_offset(Offset(7))
    assert log.last_stable_offset == (7 if release < Release("4.0") else 2)
    assert log.high_watermark == 10
    log.check_invariants()


@pytest.mark.parametrize("release", RELEASES)
def test_a_consumer_s_read_moves_a_high_watermark_inside_a_batch_to_its_begin(release: Release) -> None:
    log = log_of(release, batch(2), batch(8), batch(3))
    assert log.update_high_watermark(Offset(7)) == 7
    assert log.high_watermark == 7
    log.read(Offset(0), 1, isolation=Isolation.LOG_END)
    assert log.high_watermark == 7
    log.read(Offset(0), 1, isolation=Isolation.HIGH_WATERMARK)
    assert log.high_watermark == (7 if release < Release("4.0") else 2)
    log.check_invariants()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("is_cut", [True, False])
def test_a_high_watermark_at_the_end_of_the_log_stays_there_though_the_next_batch_leaves_a_gap(
    release: Release, is_cut: bool
) -> None:
    """UnifiedLog.updateHighWatermark and truncateTo keep the place of the log's end: nothing is looked up for it."""
    log = log_of(release, batch(2), batch(2))
    if is_cut:
        log.update_high_watermark(Offset(2))
        log.truncate_to(Offset(2), now_ms=NOW)
    end_offset = log.log_end_offset
    assert log.high_watermark == end_offset
    log.append_as_follower(batch(3, base_offset=9, partition_leader_epoch=EPOCH), now_ms=NOW)
    log.read(Offset(0), 1000, isolation=Isolation.HIGH_WATERMARK)
    assert log.high_watermark == end_offset


@pytest.mark.parametrize("release", RELEASES)
def test_a_log_opened_at_a_start_inside_an_open_transaction_is_stable_up_to_where_it_was(release: Release) -> None:
    log = log_of(release, batch(2), batch(8, is_transactional=True, **IDS))
    log.increment_log_start_offset(Offset(7))
    stable_offset = log.last_stable_offset
    log.close(now_ms=NOW)
    last = LastShutdown(log_start_offset=Offset(7), recovery_point=log.log_end_offset)
    again = opened(log.storage, log.config, last_shutdown=last)
    assert (again.log_start_offset, again.high_watermark, again.last_stable_offset) == (7, 7, stable_offset)


def test_what_is_looked_for_at_the_end_of_a_log_opens_no_index_of_its_empty_segment() -> None:
    """LocalLog.read answers with the place of the end at once."""
    log = log_of(NEWEST, batch(2, is_transactional=True, **IDS))
    log.roll(now_ms=NOW)
    before = log.storage.list(log.directory)
    for isolation in Isolation:
        assert bytes(log.read(Offset(2), 100, isolation=isolation).records) == b""
    log.increment_log_start_offset(Offset(2))
    assert log.last_stable_offset == 2
    assert log.storage.list(log.directory) == before
