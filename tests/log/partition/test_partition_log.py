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
    InconsistentTopicIdError,
    OffsetOutOfRangeError,
    OffsetsOutOfOrderError,
    SegmentExistsError,
    UnexpectedAppendOffsetError,
)
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.record import ControlType, EndTransactionMarker, Record
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


def test_a_retry_is_known_and_not_written_again() -> None:
    log = opened()
    sent = [batch(2, producer_id=9, producer_epoch=0, base_sequence=sequence) for sequence in (0, 2)]
    appended(log, *sent)
    before = log.state()
    again = log.append_as_leader(sent[0], leader_epoch=EPOCH, now_ms=NOW)
    assert (again.is_duplicate, again.first_offset, again.last_offset) == (True, 0, 1)
    assert log.state() == before


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
