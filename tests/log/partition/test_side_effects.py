"""What an append, a flush, a truncation, retention and opening change besides what they are called for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.entropy import SplitMix64
from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from log.errors import StorageError
from log.partition.local_log import Schedule
from log.partition.partition_log import PartitionLog
from log.partition.recovery import PRODUCER_CHECK_INTERVAL_MS, LastShutdown
from log.record import ControlType
from log.storage import FaultyStorage
from log.storage.checkpoints import LEADER_EPOCH_FILE, EpochEntry
from log.storage.faults import Fault, FaultKind, FileAround
from log.storage.protocol import Storage, StoredFile
from tests.log.made import DIRECTORY, EPOCH, NOW, appended, batch, config, memory, opened
from tests.log.partition.test_partition_log import end, transactional
from tests.support.disk_image import image_of


def test_a_retry_has_the_time_of_what_it_repeats_and_not_that_of_its_own_arrival() -> None:
    log = opened()
    sent = batch(2, producer_id=9, producer_epoch=0, base_sequence=0)
    appended(log, sent)
    again = log.append_as_leader(sent, leader_epoch=EPOCH, now_ms=TimeMs(NOW + 50))
    assert (again.is_duplicate, again.log_append_time_ms) == (True, NOW + 1)


def test_messages_without_epochs_make_a_follower_forget_the_epochs_it_knows() -> None:
    log = opened()
    appended(log, batch())
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


def test_the_invariants_of_a_log_see_offsets_beyond_its_end() -> None:
    for field, count in (("end_offset", 3), ("recovery_point", 0)):
        log = opened()
        if count:
            log.append_as_leader(batch(count), leader_epoch=EPOCH, now_ms=NOW)
        setattr(log.local, field, Offset(1))
        with pytest.raises(AssertionError):
            log.check_invariants()


@pytest.mark.parametrize("starts", [[(2, 0), (2, 1)], [(2, 0), (1, 1)], [(1, 1), (2, 1)], [(1, 0), (2, 4)]])
def test_the_invariants_of_a_log_see_leader_epochs_that_do_not_ascend_or_begin_beyond_its_end(
    starts: list[tuple[int, int]],
) -> None:
    log = opened()
    log.append_as_leader(batch(3), leader_epoch=EPOCH, now_ms=NOW)
    log.epochs._entries = [EpochEntry(LeaderEpoch(epoch), Offset(start)) for epoch, start in starts]
    log.epochs._shown = None
    with pytest.raises(AssertionError):
        log.check_invariants()


def test_a_log_flushes_after_flush_ms_since_it_was_flushed_last() -> None:
    log = opened(settings=config(flush_ms=1_000))
    appended(log, batch())
    log.flush(now_ms=TimeMs(NOW + 900))
    log.flush(now_ms=TimeMs(NOW + 950), include_active_end=True)
    assert log.recovery_point == 1, "there was nothing to be flushed"
    appended(log, batch())
    log.run_scheduled(TimeMs(NOW + 1_899))
    assert log.recovery_point == 1
    log.run_scheduled(TimeMs(NOW + 1_900))
    assert log.recovery_point == 2


@pytest.mark.parametrize(
    ("drawn", "jitter_ms"), [(0, 0), (-5, 5), (2**31 - 1, 647), (-(2**31) + 1, 647), (-(2**31), 0), (1_000, 0)]
)
def test_the_jitter_of_a_segment_is_the_rest_of_what_is_drawn_without_its_sign(drawn: int, jitter_ms: int) -> None:
    """LogConfig.randomSegmentJitter: Utils.abs takes the least int for 0."""

    class Drawn(SplitMix64):
        def next_int(self) -> int:
            return drawn

    log = opened(settings=config(segment_jitter_ms=1_000), entropy=Drawn(0))
    assert log.active_segment.jitter_ms == jitter_ms


def test_epochs_are_written_where_a_renamed_log_is() -> None:
    log = opened()
    appended(log, batch())
    log.rename_directory("topic-0.renamed")
    log.append_as_leader(batch(), leader_epoch=LeaderEpoch(EPOCH + 1), now_ms=NOW)
    written = image_of(log.storage).files
    assert written[f"topic-0.renamed/{LEADER_EPOCH_FILE}"].split()[2:] == [b"3", b"0", b"4", b"1"]


@pytest.mark.parametrize("log_start_offset", [None, 5])
@pytest.mark.parametrize("anew_at", [4, 20])
def test_a_log_that_begins_anew_knows_no_producer(log_start_offset: int | None, anew_at: int) -> None:
    """UnifiedLog.truncateFullyAndStartAt: also at its own end, and where an old snapshot lies above the log start."""
    log = opened()
    for sequence in (0, 2):
        appended(log, batch(2, producer_id=9, producer_epoch=0, base_sequence=sequence))
        log.take_producer_snapshot()
    assert log.log_end_offset == 4
    start = None if log_start_offset is None else Offset(min(log_start_offset, anew_at - 1))
    log.truncate_fully_and_start_at(Offset(anew_at), now_ms=NOW, log_start_offset=start)
    assert log.state().producers == ()
    snapshots = [int(name[:20]) for name in log.storage.list(DIRECTORY) if name.endswith(".snapshot")]
    # The state without producers is news only above the log start: ProducerStateManager.takeSnapshot.
    assert snapshots == ([] if start is None else [anew_at])
    log.take_producer_snapshot()
    assert [name for name in log.storage.list(DIRECTORY) if name.endswith(".snapshot")] == [
        f"{each:020d}.snapshot" for each in snapshots
    ]


def test_a_producer_that_has_expired_does_not_come_back_by_a_truncation() -> None:
    """UnifiedLog.rebuildProducerState reads nothing again where no producer was known: a cut adds none."""
    log = opened()
    appended(log, batch(producer_id=9, producer_epoch=0, base_sequence=0), batch(), batch())
    log.run_scheduled(TimeMs(NOW + 24 * 3_600_000 + PRODUCER_CHECK_INTERVAL_MS))
    assert log.state().producers == ()
    log.truncate_to(Offset(2), now_ms=NOW)
    assert log.state().producers == ()


class OpenFile(FileAround):
    """A file that notes that it is closed."""

    def __init__(self, file: StoredFile, path: str, opened_paths: list[str]) -> None:
        super().__init__(file)
        self._path, self._opened_paths = path, opened_paths

    def close(self) -> None:
        super().close()
        if self._path in self._opened_paths:
            self._opened_paths.remove(self._path)


class OpenFiles(FaultyStorage):
    """A storage without faults that knows which files are open."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage, Fault("none", FaultKind.FAILED_SYNC, passed_count=0))
        self.open_paths: list[str] = []

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        self.open_paths.append(path)
        return OpenFile(super().open(path, create=create), path, self.open_paths)


def test_a_deleted_log_leaves_no_file_open() -> None:
    storage = OpenFiles(memory())
    log = opened(storage, config(segment_bytes=100, retention_ms=1_000))
    appended(log, *[batch(timestamp=NOW + each) for each in range(4)])
    assert log.delete_old_segments(now_ms=TimeMs(NOW + 60_000)) > 0
    assert storage.open_paths
    log.delete(now_ms=TimeMs(NOW + 60_000 + log.config.file_delete_delay_ms))
    assert not storage.open_paths


@pytest.mark.parametrize("written_by", [lambda log: log.close(now_ms=NOW), lambda log: log.run_scheduled(NOW)])
def test_the_epochs_that_a_truncation_left_are_written_at_close_and_by_due_tasks(
    written_by: Callable[[PartitionLog], None],
) -> None:
    log = opened()
    appended(log, batch())
    log.append_as_leader(batch(), leader_epoch=LeaderEpoch(EPOCH + 1), now_ms=NOW)
    log.truncate_to(Offset(1), now_ms=NOW)
    written_by(log)
    assert image_of(log.storage).files[f"{DIRECTORY}/{LEADER_EPOCH_FILE}"].split() == [b"0", b"1", b"3", b"0"]


@pytest.mark.parametrize("is_closed", [True, False])
def test_deleted_files_stay_for_the_delay(is_closed: bool) -> None:
    log = opened(settings=config(retention_ms=1, file_delete_delay_ms=50, segment_bytes=80))
    appended(log, batch(), batch())
    assert log.delete_old_segments(now_ms=TimeMs(NOW + 100)) == 2
    log.run_scheduled(TimeMs(NOW + 149))
    assert [name for name in log.storage.list(log.directory) if name.endswith(".deleted")]
    (log.close if is_closed else log.run_scheduled)(now_ms=TimeMs(NOW + 150))
    assert not [name for name in log.storage.list(log.directory) if name.endswith(".deleted")]


def test_due_work_runs_in_order_and_after_a_failure_the_rest_waits_for_the_next_run() -> None:
    schedule, ran = Schedule(), list[tuple[str, TimeMs]]()

    def fail(now_ms: TimeMs) -> None:
        raise ValueError(now_ms)

    for due_ms, name in ((30, "c"), (10, "a"), (20, "b1"), (20, "b2"), (31, "d")):
        schedule.add(TimeMs(due_ms), lambda now_ms, name=name: ran.append((name, now_ms)))
    schedule.add(TimeMs(15), fail)
    schedule.add(TimeMs(5), lambda _: schedule.add(TimeMs(1), lambda now_ms: ran.append(("added", now_ms))))
    with pytest.raises(ValueError, match="30"):
        schedule.run(TimeMs(30))
    assert ran == [("added", 30), ("a", 30)]
    schedule.run(TimeMs(30))
    assert ([name for name, _ in ran[2:]], len(schedule)) == (["b1", "b2", "c"], 1)
