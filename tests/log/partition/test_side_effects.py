"""What an append, a flush, a truncation, retention and opening change besides what they are called for."""

from __future__ import annotations

import pytest

from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from log.errors import StorageError
from log.partition import splitting
from log.partition.opening import PRODUCER_CHECK_INTERVAL_MS
from log.partition.recovery import LastShutdown
from log.record import ControlType
from log.storage import FaultyStorage
from log.storage.faults import Fault, FaultKind
from tests.log.made import EPOCH, NOW, appended, batch, config, memory, opened, put, segment
from tests.log.partition.test_partition_log import end, transactional


def test_a_retry_has_the_time_of_what_it_repeats_and_not_that_of_its_own_arrival() -> None:
    log = opened()
    sent = batch(2, producer_id=9, producer_epoch=0, base_sequence=0)
    appended(log, sent)
    again = log.append_as_leader(sent, leader_epoch=EPOCH, now_ms=TimeMs(NOW + 50))
    assert (again.is_duplicate, again.log_append_time_ms) == (True, NOW + 1)


def test_messages_without_epochs_make_a_follower_forget_the_epochs_it_knows() -> None:
    log = opened()
    appended(log, batch())
    assert log.epochs is not None
    assert log.epochs.latest_epoch == EPOCH
    log.append_as_follower(batch(base_offset=1, magic=1), now_ms=NOW)
    assert log.epochs.entries == ()


def test_producers_of_whom_the_log_holds_nothing_are_not_kept_in_a_snapshot() -> None:
    # ProducerStateManager.onLogStartOffsetIncremented: without a snapshot the log start counts as the last one.
    log = opened()
    appended(log, batch(2, producer_id=9, producer_epoch=0, base_sequence=0))
    log.increment_log_start_offset(Offset(2))
    log.take_producer_snapshot()
    assert not [name for name in log.storage.list(log.directory) if name.endswith(".snapshot")]
    appended(log, batch(producer_id=9, producer_epoch=0, base_sequence=2))
    log.take_producer_snapshot()
    assert [name for name in log.storage.list(log.directory) if name.endswith(".snapshot")] == [f"{3:020d}.snapshot"]


def test_the_flush_after_a_roll_makes_the_snapshot_of_the_producers_durable() -> None:
    faulty = FaultyStorage(memory(), Fault("*.snapshot", FaultKind.FAILED_SYNC, passed_count=0))
    log = opened(faulty)
    appended(log, batch(producer_id=9, producer_epoch=0, base_sequence=0))
    log.roll(now_ms=NOW)
    with pytest.raises(StorageError):
        log.run_scheduled(NOW)
    assert faulty.has_struck


def test_an_empty_active_segment_is_made_durable_only_if_that_is_asked_for() -> None:
    faulty = FaultyStorage(memory(), Fault("*00000001.log", FaultKind.FAILED_SYNC, passed_count=0))
    log = opened(faulty)
    appended(log, batch())
    log.roll(now_ms=NOW)
    log.run_scheduled(NOW)
    log.flush(now_ms=NOW)
    assert not faulty.has_struck
    with pytest.raises(StorageError):
        log.flush(now_ms=NOW, include_active_end=True)


def test_a_truncation_at_the_end_takes_back_an_epoch_that_has_no_records() -> None:
    log = opened()
    appended(log, batch())
    log.assign_epoch_start(LeaderEpoch(7), Offset(1))
    assert log.epochs is not None
    assert log.epochs.latest_epoch == 7
    assert not log.truncate_to(Offset(1), now_ms=NOW)
    assert log.epochs.latest_epoch == EPOCH


def test_a_truncation_above_the_high_watermark_keeps_the_last_stable_offset_until_the_next_append() -> None:
    log = opened()
    log.append_as_leader(transactional(0), leader_epoch=EPOCH, now_ms=NOW)
    end(log, ControlType.COMMIT)
    log.roll(now_ms=NOW)
    log.append_as_leader(batch(), leader_epoch=EPOCH, now_ms=NOW)
    log.append_as_leader(batch(), leader_epoch=EPOCH, now_ms=NOW)
    log.update_high_watermark(Offset(1))
    assert log.last_stable_offset == 0
    assert log.truncate_to(Offset(3), now_ms=NOW)
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    log.append_as_leader(batch(), leader_epoch=EPOCH, now_ms=NOW)
    assert log.last_stable_offset == 1


def test_a_retention_of_no_bytes_at_all_keeps_no_record() -> None:
    log = opened(settings=config(retention_bytes=0, retention_ms=-1))
    appended(log, batch(), batch())
    assert log.delete_old_segments(now_ms=NOW) == 1
    assert (log.log_start_offset, log.size_bytes) == (2, 0)


def test_producers_expire_at_every_check_and_not_at_the_first_alone() -> None:
    log = opened()
    interval_ms, day_ms = PRODUCER_CHECK_INTERVAL_MS, 24 * 3_600_000
    log.run_scheduled(TimeMs(NOW + interval_ms))
    appended(log, batch(producer_id=9, producer_epoch=0, base_sequence=0))
    log.run_scheduled(TimeMs(NOW + day_ms - 1))
    assert len(log.state().producers) == 1
    log.run_scheduled(TimeMs(NOW + day_ms + interval_ms))
    assert log.state().producers == ()


def test_what_lies_below_the_log_start_counts_as_flushed_when_a_log_is_opened() -> None:
    log = opened(last_shutdown=LastShutdown(recovery_point=Offset(1), log_start_offset=Offset(100)))
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (100, 100, 100)


def test_the_invariants_of_a_log_see_a_segment_that_reaches_beyond_its_end() -> None:
    log = opened()
    log.append_as_leader(batch(3), leader_epoch=EPOCH, now_ms=NOW)
    log.local.end_offset = Offset(1)
    with pytest.raises(AssertionError):
        log.check_invariants()


def test_a_batch_that_is_larger_than_a_chunk_is_copied_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "CHUNK_SIZE_BYTES", 10)
    source, target = segment(), segment(base_offset=0)
    put(source, batch(), batch(base_offset=1))
    assert splitting.append_from(target, source, 0) == source.size_bytes == target.size_bytes
