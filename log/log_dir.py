"""Load, run and shut down a broker's log directory as Kafka's LogManager does.

The marker `.kafka_cleanshutdown` goes before logs are loaded, and is written last, after every log is closed and every
checkpoint whole. A checkpoint that cannot be read counts as empty (recovery from the start); `unreadable` says why.

Left out: several log directories in one broker (each is a LogDir; whoever has several picks one for a new log).

Source: kafka.log.LogManager and kafka.server.ReplicaManager (high watermarks), 4.3.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

import attrs

from broker.entropy import RandomSource
from broker.errors import CorruptDataError, UsageError
from broker.ids import BrokerEpoch, Offset, TopicPartition
from broker.units import TimeMs
from log.errors import InconsistentTopicIdError, StorageError
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.storage.checkpoints import (
    CLEANER_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    REPLICATION_FILE,
    read_offset_checkpoint,
    write_offset_checkpoint,
)
from log.storage.directory_names import (
    METADATA_TOPIC,
    DirectoryRole,
    PartitionDirectory,
    directory_name,
    parse_directory_name,
)
from log.storage.metadata_files import CLEAN_SHUTDOWN_FILE, write_clean_shutdown
from log.storage.protocol import Storage

LOCK_FILE: Final = ".lock"


class DirectoryLock:
    """Lock a storage's root directory; the constructor takes the lock."""

    def __init__(self, storage: Storage) -> None:
        """Take the lock; raises LockedError if another process has it, StorageError if the file cannot be made."""
        self._storage = storage
        self._file = storage.open(LOCK_FILE, create=True)
        try:
            self._file.lock()
        except BaseException:
            self._file.close()
            raise

    def release(self) -> None:
        """Remove the file `.lock` and release the lock."""
        self._storage.remove(LOCK_FILE)
        self._file.close()

    def abandon(self) -> None:
        """Release the lock and leave the file, as a broker that fails does."""
        self._file.close()


REMOTE_INDEX_CACHE: Final = "remote-log-index-cache"
ROOT: Final = ""
NO_BROKER_EPOCH: Final = BrokerEpoch(-1)


class DuplicateLogError(UsageError):
    """Two directories contain the same partition in the same role."""

    kafka_class: ClassVar[str] = "java.lang.IllegalStateException"


@attrs.frozen(kw_only=True)
class LogDirOptions:
    """Set how to load a log directory: topic settings, and the test for stray logs."""

    config: LogConfig = attrs.field(factory=LogConfig)
    topic_configs: Mapping[str, LogConfig] = attrs.field(factory=dict)
    is_stray: Callable[[PartitionLog], bool] = lambda _log: False

    def config_of(self, topic: str) -> LogConfig:
        """Return the settings of a topic's logs."""
        return self.topic_configs.get(topic, self.config)


@attrs.frozen
class LogToDelete:
    """Hold a log whose directory has been renamed for deletion, and the time of the renaming."""

    log: PartitionLog
    since_ms: TimeMs


class LastShutdowns:
    """Read from a log directory's files how each of its logs was last shut down.

    A checkpoint that cannot be read counts as empty, and `unreadable` has the reason by its name, as Kafka's
    LogManager.loadLogs logs a warning and goes on.
    """

    def __init__(self, storage: Storage) -> None:
        self.unreadable: dict[str, str] = {}
        self._is_clean = storage.exists(CLEAN_SHUTDOWN_FILE)
        self._recovery_points = _checkpoint(storage, RECOVERY_POINT_FILE, self.unreadable)
        self._log_starts = _checkpoint(storage, LOG_START_FILE, self.unreadable)

    def of(self, partition: TopicPartition) -> LastShutdown:
        """Return the last shutdown of a partition's log."""
        return LastShutdown(
            clean=self._is_clean,
            recovery_point=self._recovery_points.get(partition, Offset(0)),
            log_start_offset=self._log_starts.get(partition, Offset(0)),
        )


def _checkpoint(storage: Storage, name: str, unreadable: dict[str, str]) -> Mapping[TopicPartition, Offset]:
    try:
        return read_offset_checkpoint(storage, name)
    except (CorruptDataError, StorageError) as damage:
        unreadable[name] = str(damage)
        return {}


class LogDir:
    """Manage one log directory: every partition's log in it, the four checkpoints and the clean-shutdown marker."""

    def __init__(self, storage: Storage, options: LogDirOptions, entropy: RandomSource) -> None:
        self.storage = storage
        self.options = options
        self.had_clean_shutdown = storage.exists(CLEAN_SHUTDOWN_FILE)
        self.unreadable: dict[str, str] = {}
        self._lock = DirectoryLock(storage)
        self._entropy = entropy
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._future_logs: dict[TopicPartition, PartitionLog] = {}
        self._stray_logs: dict[TopicPartition, PartitionLog] = {}
        self._to_delete: deque[LogToDelete] = deque()

    @classmethod
    def open(
        cls, storage: Storage, options: LogDirOptions | None = None, *, now_ms: TimeMs, entropy: RandomSource
    ) -> LogDir:
        """Load every partition below the storage's root; recover the logs if the clean-shutdown marker is missing.

        Raises LockedError while another process uses the directory, UnexpectedDirectoryError, DuplicateLogError,
        StorageError, or CorruptDataError where Kafka's broker would not start either.
        """
        loaded = cls(storage, options or LogDirOptions(), entropy)
        try:
            loaded._load_all(now_ms)
        except BaseException:
            loaded._lock.abandon()
            raise
        return loaded

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """Return the current logs, by partition."""
        return MappingProxyType(self._logs)

    @property
    def future_logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """Return the future logs: replicas that are being copied into this directory."""
        return MappingProxyType(self._future_logs)

    @property
    def stray_logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """Return the logs of replicas that this broker no longer hosts; nothing deletes them."""
        return MappingProxyType(self._stray_logs)

    @property
    def logs_to_delete(self) -> tuple[LogToDelete, ...]:
        """Return the logs whose directories `run_scheduled` will remove, in order of removal."""
        return tuple(self._to_delete)

    def create_log(
        self, partition: TopicPartition, *, now_ms: TimeMs, topic_id: str | None = None, future: bool = False
    ) -> PartitionLog:
        """Return the partition's log, created if missing; raise InconsistentTopicIdError for a different topic id."""
        kept = self._future_logs if future else self._logs
        log = kept.get(partition)
        if log is None:
            role = DirectoryRole.FUTURE if future else DirectoryRole.CURRENT
            log = self._open_log(
                directory_name(partition, role, self._entropy), partition, LastShutdown(), now_ms, topic_id
            )
            kept[partition] = log
        if topic_id is not None and log.topic_id not in (None, topic_id):
            raise InconsistentTopicIdError(f"topic id {topic_id} is not that of the log of {partition}, {log.topic_id}")
        return log

    def promote_future(self, partition: TopicPartition, *, high_watermark: Offset | None = None) -> PartitionLog:
        """Make the future log the current log of its partition in this directory.

        A current log in another directory is left to that directory's LogDir. Raises UsageError if this directory has
        no future log of the partition, or has a current one.
        """
        if partition not in self._future_logs or partition in self._logs:
            raise UsageError(f"{partition} needs a future log, and no other, in this directory")
        log = self._future_logs.pop(partition)
        log.rename_directory(directory_name(partition, DirectoryRole.CURRENT))
        if high_watermark is not None:
            log.update_high_watermark(high_watermark)
        self._logs[partition] = log
        return log

    def delete_log(
        self, partition: TopicPartition, *, now_ms: TimeMs, future: bool = False, stray: bool = False
    ) -> str | None:
        """Rename a log's directory for deletion and return the new name; None if there is no such log.

        `run_scheduled` deletes the directory file.delete.delay.ms later; that of a stray log stays.
        """
        log = (self._future_logs if future else self._logs).pop(partition, None)
        if log is None:
            return None
        if not future:
            self._forget_cleaned(partition)
        role = DirectoryRole.STRAY if stray else DirectoryRole.DELETE
        log.rename_directory(directory_name(partition, role, self._entropy))
        if stray:
            self._stray_logs[partition] = log
        else:
            self._to_delete.append(LogToDelete(log, now_ms))
        self.checkpoint_recovery_points()
        self.checkpoint_log_start_offsets()
        return log.directory

    def truncate_to(self, offsets: Mapping[TopicPartition, Offset], *, now_ms: TimeMs) -> None:
        """Truncate the named logs to their offsets; write the recovery points if any log became shorter."""
        was_cut = False
        for partition in sorted(offsets):
            if partition in self._logs:
                was_cut |= self._logs[partition].truncate_to(offsets[partition], now_ms=now_ms)
        if was_cut:
            self.checkpoint_recovery_points()

    def delete_old_segments(self, *, now_ms: TimeMs) -> int:
        """Apply retention once to the logs that are not compacted; return the count of deleted segments."""
        count = 0
        for partition, log in sorted(self._logs.items()):
            if not log.config.compacts:
                count += log.delete_old_segments(now_ms=now_ms)
                if partition in self._future_logs:
                    count += self._future_logs[partition].delete_old_segments(now_ms=now_ms)
        return count

    def run_scheduled(self, now_ms: TimeMs) -> None:
        """Run the due tasks of each log, and remove the directories of deleted logs that are due."""
        for log in self._checkpointed().values():
            log.run_scheduled(now_ms)
        delay_ms = self.options.config.file_delete_delay_ms
        while self._to_delete and self._to_delete[0].since_ms + delay_ms <= now_ms:
            self._to_delete.popleft().log.delete(now_ms=now_ms)

    def checkpointed_high_watermark(self, partition: TopicPartition) -> Offset:
        """Return the partition's offset in replication-offset-checkpoint, 0 if it has none."""
        return _checkpoint(self.storage, REPLICATION_FILE, self.unreadable).get(partition, Offset(0))

    def checkpoint_recovery_points(self) -> None:
        """Write recovery-point-offset-checkpoint."""
        self._write(RECOVERY_POINT_FILE, {key: log.recovery_point for key, log in self._checkpointed().items()})

    def checkpoint_log_start_offsets(self) -> None:
        """Write log-start-offset-checkpoint, with the logs that start above their first segment's base."""
        self._write(LOG_START_FILE, self._raised_starts())

    def checkpoint_high_watermarks(self) -> None:
        """Write replication-offset-checkpoint."""
        self._write(REPLICATION_FILE, {key: log.high_watermark for key, log in self._checkpointed().items()})

    def shut_down(self, *, now_ms: TimeMs, broker_epoch: BrokerEpoch = NO_BROKER_EPOCH) -> None:
        """Flush and close every log, write recovery points and start offsets, then the clean-shutdown marker.

        High watermarks are checkpointed before by whoever replicates: see `checkpoint_high_watermarks`.
        """
        open_logs = self._checkpointed()
        for log in open_logs.values():
            log.flush(now_ms=now_ms, include_active_end=True)
        recovery_points = {key: log.recovery_point for key, log in open_logs.items()}
        starts = self._raised_starts()
        for log in [*self._logs.values(), *self._future_logs.values()]:
            log.close(now_ms=now_ms)
        self._write(RECOVERY_POINT_FILE, recovery_points)
        self._write(LOG_START_FILE, starts)
        write_clean_shutdown(self.storage, CLEAN_SHUTDOWN_FILE, broker_epoch)
        self._lock.release()

    def check_invariants(self) -> None:
        """Raise AssertionError unless every log is filed under its own partition and the marker is absent."""
        for kept, role in ((self._logs, DirectoryRole.CURRENT), (self._future_logs, DirectoryRole.FUTURE)):
            for partition, log in kept.items():
                held = parse_directory_name(log.directory)
                assert (held.partition, held.role) == (partition, role), (partition, log.directory)
                log.check_invariants()
        assert not self.storage.exists(CLEAN_SHUTDOWN_FILE)

    def _load_all(self, now_ms: TimeMs) -> None:
        last_shutdowns = LastShutdowns(self.storage)
        self.unreadable = last_shutdowns.unreadable
        if self.had_clean_shutdown:
            self.storage.remove(CLEAN_SHUTDOWN_FILE)
            self.storage.sync_directory(ROOT)
        for directory in partition_directories(self.storage):
            self._load(directory, last_shutdowns.of(directory.partition), now_ms)

    def _load(self, directory: PartitionDirectory, last_shutdown: LastShutdown, now_ms: TimeMs) -> None:
        log = self._open_log(directory.name, directory.partition, last_shutdown, now_ms, None)
        if directory.role is DirectoryRole.DELETE:
            self._to_delete.append(LogToDelete(log, now_ms))
        elif directory.role is DirectoryRole.STRAY:
            self._stray_logs[directory.partition] = log
        elif self.options.is_stray(log):
            log.rename_directory(directory_name(directory.partition, DirectoryRole.STRAY, self._entropy))
            self._stray_logs[directory.partition] = log
        else:
            kept = self._future_logs if directory.role is DirectoryRole.FUTURE else self._logs
            other = kept.setdefault(directory.partition, log)
            if other is not log:
                raise DuplicateLogError(
                    f"directories {other.directory} and {log.directory} both hold {directory.partition}"
                )

    def _open_log(
        self, name: str, partition: TopicPartition, last: LastShutdown, now_ms: TimeMs, topic_id: str | None
    ) -> PartitionLog:
        config = self.options.config_of(partition.topic)
        return PartitionLog.open(
            self.storage, name, config, last, now_ms=now_ms, topic_id=topic_id, entropy=self._entropy
        )

    def _checkpointed(self) -> dict[TopicPartition, PartitionLog]:
        """Return the logs that checkpoints name, sorted; as in Kafka a future log stands for its partition."""
        return dict(sorted({**self._logs, **self._future_logs}.items()))

    def _raised_starts(self) -> dict[TopicPartition, Offset]:
        return {
            partition: log.log_start_offset
            for partition, log in self._checkpointed().items()
            if log.log_start_offset > log.segments[0].base_offset
        }

    def _write(self, name: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        write_offset_checkpoint(self.storage, name, offsets)

    def _forget_cleaned(self, partition: TopicPartition) -> None:
        if self.storage.exists(CLEANER_FILE):
            cleaned = _checkpoint(self.storage, CLEANER_FILE, self.unreadable)
            self._write(CLEANER_FILE, {key: cleaned[key] for key in sorted(cleaned) if key != partition})


def partition_directories(storage: Storage) -> tuple[PartitionDirectory, ...]:
    """Return the partition directories, sorted by name; raise UnexpectedDirectoryError for any other directory."""
    names = [name for name in storage.list(ROOT) if name != REMOTE_INDEX_CACHE and storage.is_directory(name)]
    found = (parse_directory_name(name) for name in names)
    return tuple(each for each in found if each.partition.topic != METADATA_TOPIC)
