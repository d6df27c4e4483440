"""What leaders, followers and consumers get from a log, one fact a test; the state machine is in test_log_machine."""

from __future__ import annotations

import attrs
import pytest

from broker.entropy import SplitMix64
from broker.errors import CorruptDataError, UsageError
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.releases import Release
from broker.units import TimeMs
from log.batches.build import build_batch, build_marker
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.codecs.crc import crc32c
from log.errors import (
    CorruptBatchError,
    IllegalArgumentError,
    InconsistentTopicIdError,
    InvalidAppendError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    OutOfOrderSequenceError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    SegmentExistsError,
    UnexpectedAppendOffsetError,
)
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.partition.reading import Isolation
from log.partition.recovery import LastShutdown
from log.record import ControlType, EndTransactionMarker, Record, TimestampType
from log.storage.checkpoints import EpochEntry
from tests.log.made import EPOCH, NOW, appended, batch, config, memory, opened, refused, sized, values


def test_a_leader_gives_offsets_and_its_epoch() -> None:
    log = opened()
    assert appended(log, batch(3), batch(2)) == [0, 3]
    found = [each for segment in log.segments for each in segment.batches()]
    assert [(each.base_offset, each.last_offset, each.partition_leader_epoch) for each in found] == [
        (0, 2, 3),
        (3, 4, 3),
    ]
    assert all(each.is_valid() for each in found)


def test_the_producers_checksum_is_kept_where_the_times_are_right() -> None:
    log = opened()
    sent = batch(2)
    appended(log, sent)
    (stored,) = log.active_segment.batches()
    assert stored.crc == next(batches_in(sent)).crc


def test_a_wrong_largest_time_in_the_header_is_put_right() -> None:
    log = opened()
    sent = bytearray(batch(2))
    sent[35:43] = (5).to_bytes(8)
    (forged,) = batches_in(bytes(sent))
    sent[17:21] = crc32c(bytes(sent[21:])).to_bytes(4)
    appended(log, bytes(sent))
    (stored,) = log.active_segment.batches()
    assert (forged.max_timestamp, stored.max_timestamp, stored.is_valid()) == (5, NOW + 1, True)


def test_with_log_append_time_the_brokers_clock_stamps() -> None:
    log = opened(settings=config(message_timestamp_type="LogAppendTime"))
    info = log.append_as_leader(batch(2, timestamp=5), leader_epoch=EPOCH, now_ms=TimeMs(NOW + 9))
    (stored,) = log.active_segment.batches()
    assert info.log_append_time_ms == info.max_timestamp.timestamp == NOW + 9
    assert [record.timestamp for record in stored.records()] == [NOW + 9] * 2
    assert stored.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert stored.is_valid()


def test_the_log_may_choose_the_codec() -> None:
    log = opened(settings=config(compression_type="zstd", segment_bytes=10_000))
    appended(log, batch(20, value=b"v" * 20))
    (stored,) = log.active_segment.batches()
    assert (stored.codec.label, stored.record_count, stored.is_valid()) == ("zstd", 20, True)


def test_a_damaged_batch_is_refused() -> None:
    damaged = bytearray(batch())
    damaged[-1] ^= 1
    message = refused(opened(), bytes(damaged), CorruptBatchError)
    assert message.startswith("topic-0 at byte 0: batch of offset 0 is damaged: its stored checksum is ")


def test_a_client_must_not_choose_its_offsets() -> None:
    assert refused(opened(), batch(base_offset=7), InvalidAppendError) == (
        "topic-0: a client's batch has base offset 7; it must be 0, as the leader gives it"
    )


def test_a_batch_above_the_limit_is_refused_and_one_at_it_is_not() -> None:
    log = opened(settings=config(max_message_bytes=100))
    assert refused(log, sized(101), RecordTooLargeError) == (
        "topic-0: a batch of 101 bytes is larger than max.message.bytes, 100"
    )
    assert appended(log, sized(100)) == [0]


def test_a_set_above_the_segment_size_is_refused() -> None:
    log = opened(settings=config(segment_bytes=99))
    appended(log, sized(99))
    with pytest.raises(RecordBatchTooLargeError, match=r"a record set of 100 bytes is larger than segment\.bytes, 99"):
        log.append_as_leader(sized(100), leader_epoch=EPOCH, now_ms=NOW)


def test_a_retry_is_known_and_not_written_again() -> None:
    log = opened()
    sent = [batch(2, producer_id=9, producer_epoch=0, base_sequence=sequence) for sequence in (0, 2)]
    appended(log, *sent)
    before = log.state()
    again = log.append_as_leader(sent[0], leader_epoch=EPOCH, now_ms=NOW)
    assert (again.is_duplicate, again.first_offset, again.last_offset) == (True, 0, 1)
    assert log.state() == before


def test_a_gap_in_the_sequence_is_refused() -> None:
    log = opened()
    appended(log, batch(2, producer_id=9, producer_epoch=0, base_sequence=0))
    refused(log, batch(1, producer_id=9, producer_epoch=0, base_sequence=3), OutOfOrderSequenceError)


def test_nothing_is_appended_of_a_torn_batch() -> None:
    log = opened()
    info = log.append_as_leader(batch()[:-1], leader_epoch=EPOCH, now_ms=NOW)
    assert (info.first_offset, info.last_offset, log.log_end_offset) == (-1, -1, 0)


def test_a_follower_keeps_every_byte() -> None:
    leader, follower = opened(), opened()
    appended(leader, batch(3), batch(1, value=b"x" * 50), batch(2))
    for segment in leader.segments:
        follower.append_as_follower(bytes(segment.records.view()), now_ms=NOW)
    assert follower.state().leader_epochs == leader.state().leader_epochs
    assert [bytes(each.records.view()) for each in follower.segments] == [
        bytes(each.records.view()) for each in leader.segments
    ]


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


def test_a_consumer_of_a_log_without_a_high_watermark_reads_nothing() -> None:
    log = opened()
    log.append_as_leader(batch(3), leader_epoch=EPOCH, now_ms=NOW)
    assert len(log.read(Offset(0), 10_000, isolation=Isolation.HIGH_WATERMARK).records) == 0
    assert log.high_watermark == 0


def test_a_read_inside_a_batch_gets_the_whole_batch() -> None:
    log = opened()
    appended(log, batch(3))
    read = log.read(Offset(2), 1)
    assert (len(read.records), read.start.position, read.first_batch_incomplete) == (log.size_bytes, 0, False)
    cut = log.read(Offset(2), 1, min_one_message=False)
    assert (len(cut.records), cut.first_batch_incomplete) == (1, True)


@pytest.mark.parametrize("offset", [-1, 1, 5])
def test_a_read_outside_the_log_is_refused(offset: int) -> None:
    log = opened()
    appended(log, batch(4))
    log.increment_log_start_offset(Offset(2))
    with pytest.raises(OffsetOutOfRangeError):
        log.read(Offset(offset), 100)


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


def test_times_are_found_across_segments() -> None:
    log = opened(settings=config(segment_bytes=100))
    appended(log, *[batch(timestamp=NOW + 10 * index) for index in range(5)])
    found = log.fetch_offset_by_timestamp(NOW + 11)
    assert found is not None
    assert (found.offset, found.timestamp_ms, found.leader_epoch) == (2, NOW + 20, 3)
    assert log.fetch_offset_by_timestamp(NOW + 41) is None
    largest = log.fetch_offset_by_timestamp(-3)
    assert largest is not None
    assert (largest.offset, largest.timestamp_ms) == (4, NOW + 40)


@pytest.mark.parametrize(
    ("release", "timestamp", "offset"), [("4.3", -5, -1), ("4.3", -6, -1), ("4.2", -6, -1), ("4.1", -6, 0)]
)
def test_what_is_asked_of_remote_storage_is_not_there(release: str, timestamp: int, offset: int) -> None:
    log = opened(settings=attrs.evolve(config(), release=Release(release)))
    appended(log, batch(2))
    found = log.fetch_offset_by_timestamp(timestamp)
    assert found is not None
    assert (found.offset, found.leader_epoch) == ((-1, -1) if offset < 0 else (0, EPOCH))


def test_the_log_start_never_passes_the_high_watermark() -> None:
    log = opened()
    appended(log, batch(4))
    log.update_high_watermark(Offset(2))
    with pytest.raises(OffsetOutOfRangeError, match="the log cannot start at 3, above the high watermark 2"):
        log.increment_log_start_offset(Offset(3))
    assert [log.increment_log_start_offset(Offset(each)) for each in (2, 2, 1)] == [True, False, False]


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


def test_a_transaction_that_began_below_the_log_start_holds_back_what_is_left_of_it() -> None:
    log = opened()
    appended(log, transactional(0, 2), batch(4))
    assert log.last_stable_offset == 0
    log.increment_log_start_offset(Offset(3))  # Inside the second batch, which begins at 2.
    assert (log.last_stable_offset, log.high_watermark) == (2, 6)


def test_a_cut_inside_a_batch_takes_it_whole_and_the_next_append_is_at_the_cut() -> None:
    log = opened()
    appended(log, batch(2), batch(4))
    assert log.truncate_to(Offset(3), now_ms=NOW)
    assert (log.log_end_offset, log.high_watermark, len(values(log))) == (3, 3, 2)
    assert appended(log, batch()) == [3]
    log.check_invariants()


def test_a_cut_below_the_log_start_takes_the_start_along() -> None:
    log = opened(settings=config(segment_bytes=10_000))
    appended(log, batch(), batch(), batch(), batch())
    log.increment_log_start_offset(Offset(3))
    log.truncate_to(Offset(2), now_ms=NOW)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 2, 2)
    log.check_invariants()


def test_a_cut_below_the_first_segment_begins_anew_there() -> None:
    log = opened(settings=config(segment_bytes=80))
    appended(log, batch(), batch(), batch())
    log.increment_log_start_offset(Offset(2))
    log.delete_old_segments(now_ms=NOW)
    assert log.truncate_to(Offset(1), now_ms=NOW)
    assert (log.log_start_offset, log.log_end_offset, values(log)) == (1, 1, [])
    assert appended(log, batch()) == [1]
    log.check_invariants()


def test_a_cut_below_zero_is_refused_and_one_above_the_end_does_nothing() -> None:
    log = opened()
    appended(log, batch(2))
    before = log.state()
    assert not log.truncate_to(Offset(2), now_ms=NOW)
    assert log.state() == before
    with pytest.raises(IllegalArgumentError, match="cannot be cut to the negative offset -1"):
        log.truncate_to(Offset(-1), now_ms=NOW)


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


def test_a_rolled_segment_is_flushed_by_the_next_scheduled_work() -> None:
    log = opened()
    appended(log, batch())
    log.roll(now_ms=NOW)
    assert log.recovery_point == 0
    log.run_scheduled(NOW)
    assert log.recovery_point == 1


def test_a_log_is_flushed_by_count_and_by_age() -> None:
    by_count = opened(settings=config(flush_messages=3))
    appended(by_count, batch(2))
    assert by_count.recovery_point == 0
    appended(by_count, batch(1))
    assert by_count.recovery_point == 3
    by_age = opened(settings=config(flush_ms=100))
    appended(by_age, batch(2))
    by_age.run_scheduled(TimeMs(NOW + 99))
    assert by_age.recovery_point == 0
    by_age.run_scheduled(TimeMs(NOW + 100))
    assert by_age.recovery_point == 2


def test_a_log_of_one_topic_cannot_be_opened_as_anothers() -> None:
    storage = memory()
    opened(storage, topic_id="AAAAAAAAHvoAAAAAAAGZJg").close(now_ms=NOW)
    assert opened(storage).topic_id == "AAAAAAAAHvoAAAAAAAGZJg"
    with pytest.raises(InconsistentTopicIdError, match="topic-0 belongs to the topic of id AAAAAAAAHvoAAAAAAAGZJg"):
        opened(storage, topic_id="AAAAAAAAHvoAAAAAAAGZJh")


def test_a_log_that_is_renamed_goes_on() -> None:
    log = opened()
    appended(log, batch())
    log.rename_directory("topic-0.x-delete")
    appended(log, *[batch(value=b"v" * 100) for _ in range(4)])
    log.close(now_ms=NOW)
    assert log.storage.list("") == ("topic-0.x-delete",)
    assert len([name for name in log.storage.list(log.directory) if name.endswith(".log")]) == 4


def test_an_end_that_lies_below_the_start_begins_anew_at_the_start() -> None:
    storage = memory()
    log = opened(storage)
    appended(log, batch(5))
    log.close(now_ms=NOW)
    again = opened(storage, last_shutdown=LastShutdown(log_start_offset=Offset(100)))
    assert (again.log_start_offset, again.log_end_offset, values(again)) == (100, 100, [])


def test_epochs_end_where_the_next_begins() -> None:
    log = opened()
    for epoch in (1, 1, 4):
        log.append_as_leader(batch(2), leader_epoch=LeaderEpoch(epoch), now_ms=NOW)
    answers = [log.end_offset_for_epoch(LeaderEpoch(epoch)) for epoch in (1, 3, 4, 5)]
    assert [None if each is None else (each.epoch, each.end_offset) for each in answers] == [
        (1, 4),
        (1, 4),
        (4, 6),
        None,
    ]


def test_jitter_is_drawn_from_the_chance_given() -> None:
    with pytest.raises(UsageError, match="needs a source of chance"):
        opened(settings=config(segment_jitter_ms=1000))
    log = opened(settings=config(segment_jitter_ms=1000), entropy=SplitMix64(1))
    jitters = [log.roll(now_ms=NOW, expected_next_offset=Offset(offset)).jitter_ms for offset in range(1, 9)]
    assert len(set(jitters)) > 4
    assert all(0 <= jitter < 1000 for jitter in jitters)


def test_damage_is_told_with_its_place() -> None:
    log = opened(settings=config(segment_bytes=10_000))
    appended(log, batch(), batch())
    log.active_segment.records.write_at(8, bytes(4))
    with pytest.raises(CorruptDataError, match=r"topic-0/0{20}\.log at byte 0"):
        log.read(Offset(0), 100)
