"""A broker's whole log directory, and that one process at a time uses it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs
import pytest

from broker.cli import EXIT_REFUSED
from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.errors import UsageError
from broker.ids import LeaderEpoch, Offset, PartitionId, TopicPartition
from broker.units import DurationMs, SizeBytes, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.errors import InconsistentTopicIdError, LockedError
from log.log_config import LogConfig
from log.log_dir import LOCK_FILE, DirectoryLock, DuplicateLogError, LogDir, LogDirOptions
from log.partition.partition_log import PartitionLog
from log.record import Record
from log.storage import FileStorage, MemoryStorage, Storage
from log.storage.checkpoints import (
    CLEANER_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    REPLICATION_FILE,
    read_offset_checkpoint,
    write_offset_checkpoint,
)
from log.storage.metadata_files import CLEAN_SHUTDOWN_FILE
from tests.log.cli.test_commands import COMPACTED, answer, contents
from tests.log.samples import DIRECTORY, write_sample

NOW_MS: Final = TimeMs(1_700_000_000_000)
EVENTS: Final = TopicPartition("events", PartitionId(0))
ORDERS: Final = TopicPartition("orders", PartitionId(3))
TOPIC_ID: Final = "sa3vHKw3BqcXw44lqEWlVQ"
CONFIG: Final = LogConfig(segment_size_bytes=SizeBytes(300), retention_ms=DurationMs(-1))


def opened(storage: MemoryStorage, options: LogDirOptions | None = None) -> LogDir:
    log_dir = LogDir.open(storage, options or LogDirOptions(config=CONFIG), now_ms=NOW_MS, entropy=SplitMix64(1))
    log_dir.check_invariants()
    return log_dir


def empty() -> LogDir:
    return opened(MemoryStorage(ManualClock(NOW_MS)))


def append(log: PartitionLog, count: int) -> None:
    for _ in range(count):
        batch = build_batch(BatchSpec(), [Record(Offset(0), NOW_MS, b"key", b"value" * 8)])
        log.append_as_leader(batch, leader_epoch=LeaderEpoch(0), now_ms=NOW_MS)
        log.update_high_watermark(log.log_end_offset)


def with_two_logs() -> tuple[MemoryStorage, LogDir]:
    storage = MemoryStorage(ManualClock(NOW_MS))
    log_dir = opened(storage)
    append(log_dir.create_log(EVENTS, now_ms=NOW_MS, topic_id=TOPIC_ID), 9)
    append(log_dir.create_log(ORDERS, now_ms=NOW_MS), 2)
    return storage, log_dir


def test_a_checkpoint_that_cannot_be_read_counts_as_empty_and_is_reported() -> None:
    storage, log_dir = with_two_logs()
    log_dir.shut_down(now_ms=NOW_MS)
    storage.replace(RECOVERY_POINT_FILE, b"1\n0\n")
    storage.remove(CLEAN_SHUTDOWN_FILE)
    again = opened(storage)
    assert again.unreadable == {RECOVERY_POINT_FILE: "recovery-point-offset-checkpoint: version 1; 0 is known"}
    assert again.logs[EVENTS].recovery_point == 0


def test_high_watermarks_are_kept_for_whoever_replicates() -> None:
    storage, log_dir = with_two_logs()
    log_dir.checkpoint_high_watermarks()
    assert read_offset_checkpoint(storage, REPLICATION_FILE) == {EVENTS: 9, ORDERS: 2}
    assert log_dir.checkpointed_high_watermark(ORDERS) == 2
    assert log_dir.checkpointed_high_watermark(TopicPartition("other", PartitionId(0))) == 0


def test_a_deleted_log_leaves_the_checkpoints_at_once_and_its_files_after_the_delay() -> None:
    storage, log_dir = with_two_logs()
    write_offset_checkpoint(storage, CLEANER_FILE, {EVENTS: Offset(4), ORDERS: Offset(1)})
    name = log_dir.delete_log(EVENTS, now_ms=NOW_MS)
    assert name is not None
    assert name in storage.list()
    assert EVENTS not in log_dir.logs
    assert read_offset_checkpoint(storage, RECOVERY_POINT_FILE) == {ORDERS: 0}
    assert read_offset_checkpoint(storage, CLEANER_FILE) == {ORDERS: 1}
    log_dir.run_scheduled(TimeMs(NOW_MS + CONFIG.file_delete_delay_ms - 1))
    assert name in storage.list()
    log_dir.run_scheduled(TimeMs(NOW_MS + CONFIG.file_delete_delay_ms))
    assert name not in storage.list()
    assert log_dir.delete_log(EVENTS, now_ms=NOW_MS) is None


def test_a_crash_before_a_deleted_log_is_gone_ends_with_it_gone() -> None:
    storage, log_dir = with_two_logs()
    name = log_dir.delete_log(EVENTS, now_ms=NOW_MS)
    again = opened(storage)
    assert [each.log.directory for each in again.logs_to_delete] == [name]
    assert list(again.logs) == [ORDERS]
    again.run_scheduled(TimeMs(NOW_MS + CONFIG.file_delete_delay_ms))
    assert storage.list() == (LOCK_FILE, LOG_START_FILE, "orders-3", RECOVERY_POINT_FILE)


def test_a_stray_log_is_put_aside_and_never_deleted() -> None:
    storage, log_dir = with_two_logs()
    log_dir.shut_down(now_ms=NOW_MS)
    options = LogDirOptions(config=CONFIG, is_stray=lambda log: log.topic_id is None)
    again = opened(storage, options)
    assert list(again.logs) == [EVENTS]
    assert again.stray_logs[ORDERS].directory.endswith("-stray")
    again.run_scheduled(TimeMs(NOW_MS + 10 * CONFIG.file_delete_delay_ms))
    assert again.stray_logs[ORDERS].directory in storage.list()
    assert ORDERS in opened(storage).stray_logs


def test_a_future_log_takes_the_name_when_it_is_promoted() -> None:
    log_dir = empty()
    append(log_dir.create_log(EVENTS, now_ms=NOW_MS, future=True), 3)
    assert list(log_dir.future_logs) == [EVENTS]
    log = log_dir.promote_future(EVENTS, high_watermark=Offset(2))
    assert (log.directory, log.high_watermark) == ("events-0", 2)
    assert (list(log_dir.logs), list(log_dir.future_logs)) == ([EVENTS], [])
    log_dir.check_invariants()
    with pytest.raises(UsageError, match="needs a future log"):
        log_dir.promote_future(EVENTS)


def test_a_log_is_made_once_and_never_for_another_topic_of_the_name() -> None:
    log_dir = empty()
    log = log_dir.create_log(EVENTS, now_ms=NOW_MS, topic_id=TOPIC_ID)
    assert log_dir.create_log(EVENTS, now_ms=NOW_MS) is log
    with pytest.raises(InconsistentTopicIdError):
        log_dir.create_log(EVENTS, now_ms=NOW_MS, topic_id="AAAAAAAAHvoAAAAAAAGZJg")


def test_retention_passes_over_compacted_logs() -> None:
    storage = MemoryStorage(ManualClock(NOW_MS))
    small = attrs.evolve(CONFIG, retention_bytes=SizeBytes(100))
    options = LogDirOptions(config=small, topic_configs={"orders": attrs.evolve(small, compacts=True)})
    log_dir = opened(storage, options)
    append(log_dir.create_log(EVENTS, now_ms=NOW_MS), 9)
    append(log_dir.create_log(ORDERS, now_ms=NOW_MS), 9)
    before = {key: len(log.segments) for key, log in log_dir.logs.items()}
    deleted = log_dir.delete_old_segments(now_ms=NOW_MS)
    assert deleted > 0
    assert len(log_dir.logs[EVENTS].segments) == before[EVENTS] - deleted
    assert len(log_dir.logs[ORDERS].segments) == before[ORDERS]


def test_truncating_writes_the_recovery_points_at_once() -> None:
    storage, log_dir = with_two_logs()
    for log in log_dir.logs.values():
        log.flush(now_ms=NOW_MS, include_active_end=True)
    log_dir.checkpoint_recovery_points()
    log_dir.truncate_to({EVENTS: Offset(4), TopicPartition("other", PartitionId(0)): Offset(0)}, now_ms=NOW_MS)
    assert read_offset_checkpoint(storage, RECOVERY_POINT_FILE) == {EVENTS: 4, ORDERS: 2}


def test_two_directories_of_one_partition_are_refused() -> None:
    storage, log_dir = with_two_logs()
    log_dir.shut_down(now_ms=NOW_MS)
    storage.make_directory("events-00")
    with pytest.raises(DuplicateLogError, match="directories events-0 and events-00 both hold events-0"):
        opened(storage)


def test_kafkas_own_directories_are_passed_over() -> None:
    storage = MemoryStorage(ManualClock(NOW_MS))
    storage.make_directory("remote-log-index-cache")
    storage.make_directory("__cluster_metadata-0")
    assert dict(opened(storage).logs) == {}


ROOT: Final = Path(__file__).parents[2]
HOLDER: Final = """
import sys
from pathlib import Path
from log.log_dir import DirectoryLock
from log.errors import LockedError
from log.storage import FileStorage
try:
    lock = DirectoryLock(FileStorage(Path(sys.argv[1])))
except LockedError as refusal:
    sys.exit(str(refusal))
print("held", flush=True)
sys.stdin.read()
lock.release()
"""


def other_process(directory: Path) -> subprocess.Popen[str]:
    """Another process that takes the lock of a directory and keeps it until its input ends."""
    pipe, command = subprocess.PIPE, [sys.executable, "-c", HOLDER, str(directory)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


@contextmanager
def held_elsewhere(directory: Path) -> Iterator[subprocess.Popen[str]]:
    with other_process(directory) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def in_use(storage: Storage) -> LogDir:
    return LogDir.open(storage, now_ms=NOW_MS, entropy=SplitMix64(1))


@pytest.mark.deep
def test_a_directory_that_another_process_uses_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / CLEAN_SHUTDOWN_FILE).write_text('{"version":0,"brokerEpoch":1}')
    with held_elsewhere(tmp_path):
        with pytest.raises(LockedError) as refusal:
            in_use(FileStorage(tmp_path))
        reason = "another process, a broker maybe, uses this directory"
        assert str(refusal.value) == f"cannot lock {tmp_path / LOCK_FILE}: {reason}"
        assert (tmp_path / CLEAN_SHUTDOWN_FILE).exists()


@pytest.mark.deep
def test_another_process_is_refused_while_a_directory_is_open_and_let_in_after_its_shutdown(tmp_path: Path) -> None:
    log_dir = in_use(FileStorage(tmp_path))
    _, error = other_process(tmp_path).communicate("")
    assert error.startswith(f"cannot lock {tmp_path / LOCK_FILE}: another process")
    log_dir.shut_down(now_ms=NOW_MS)
    assert not (tmp_path / LOCK_FILE).exists()
    assert other_process(tmp_path).communicate("") == ("held\n", "")


def test_a_directory_that_cannot_be_loaded_is_given_back(tmp_path: Path) -> None:
    (tmp_path / "not-a-partition").mkdir()
    with pytest.raises(UsageError):
        in_use(FileStorage(tmp_path))
    assert other_process(tmp_path).communicate("") == ("held\n", "")


def test_a_second_user_in_the_same_process_is_refused_and_does_not_cost_the_first_its_lock(tmp_path: Path) -> None:
    first = DirectoryLock(FileStorage(tmp_path))
    with pytest.raises(LockedError) as refusal:
        DirectoryLock(FileStorage(tmp_path))
    assert str(refusal.value) == f"cannot lock {tmp_path / LOCK_FILE}: this process uses this directory already"
    _, error = other_process(tmp_path).communicate("")
    assert error.startswith(f"cannot lock {tmp_path / LOCK_FILE}: another process")
    first.release()
    DirectoryLock(FileStorage(tmp_path)).abandon()
    DirectoryLock(FileStorage(tmp_path))  # Nobody keeps it: it is garbage at once.
    DirectoryLock(FileStorage(tmp_path)).release()


def test_who_only_reads_takes_no_lock(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).touch()
    with pytest.raises(UsageError, match="opened to be read only"):
        DirectoryLock(FileStorage(tmp_path, read_only=True))


@pytest.mark.deep
@pytest.mark.parametrize("command", ["compact", "recover"])
def test_files_are_not_changed_in_place_while_a_broker_runs(tmp_path: Path, command: str) -> None:
    write_sample("none", tmp_path)
    how = COMPACTED if command == "compact" else ()
    with held_elsewhere(tmp_path):
        before = contents(tmp_path)
        found = answer(command, tmp_path / DIRECTORY, "--in-place", "--yes", *how)
        assert (found.status, found.out) == (EXIT_REFUSED, "")
        reason = "another process, a broker maybe, uses this directory"
        assert found.err == f"brokerside log: cannot lock {tmp_path / LOCK_FILE}: {reason}\n"
        assert contents(tmp_path) == before
        assert answer(command, tmp_path / DIRECTORY, "--out", tmp_path / "out", *how).status == 0
    assert answer(command, tmp_path / DIRECTORY, "--in-place", "--yes", *how).status == 0
    assert not (tmp_path / LOCK_FILE).exists()
