"""Choose the log of a log directory to clean next, and store its cleaner checkpoint.

Source: kafka.log.LogCleanerManager (grabFilthiestCompactedLog, updateCheckpoints, doneCleaning) and LogCleaner, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from broker.errors import CorruptDataError, RefusedError
from broker.ids import Offset, TopicPartition
from broker.units import TimeMs
from log.compaction.cleaner import DEFAULTS, Cleaned, CleanerOptions, clean
from log.compaction.selection import LogToClean, filthiest, log_to_clean
from log.partition.partition_log import PartitionLog
from log.storage.checkpoints import CLEANER_FILE, read_offset_checkpoint, write_offset_checkpoint
from log.storage.protocol import Storage


@attrs.frozen
class CleanedLog:
    """Hold a cleaned log: the dirty range at the start of the pass, and the result of the pass."""

    partition: TopicPartition
    target: LogToClean
    cleaned: Cleaned


class CleanerManager:
    """Choose and clean logs of one log directory; `logs` may change between calls.

    `uncleanable` are the partitions that are left alone, and why.
    """

    def __init__(
        self,
        storage: Storage,
        logs: Mapping[TopicPartition, PartitionLog],
        options: CleanerOptions = DEFAULTS,
    ) -> None:
        self._storage = storage
        self._logs = logs
        self._options = options
        self.uncleanable: dict[TopicPartition, CorruptDataError | RefusedError] = {}

    def candidates(self, *, now_ms: TimeMs) -> dict[TopicPartition, LogToClean]:
        """Return the cleanable range of each compacted log; correct checkpoints outside their logs."""
        checkpoints = self.checkpoints()
        found: dict[TopicPartition, LogToClean] = {}
        for partition in sorted(self._logs):
            log = self._logs[partition]
            if log.config.compacts and partition not in self.uncleanable:
                target = log_to_clean(log, checkpoints.get(partition), now_ms=now_ms)
                if target.resets_checkpoint:
                    self._write_checkpoint(partition, target.first_dirty_offset)
                found[partition] = target
        return found

    def clean_filthiest(self, *, now_ms: TimeMs) -> CleanedLog | None:
        """Clean the log with the largest dirty share that is due; return None if no log is due.

        Raises CorruptDataError or RefusedError if that log cannot be cleaned, which is then left alone.
        """
        candidates = self.candidates(now_ms=now_ms)
        target = filthiest(candidates.values())
        if target is None:
            return None
        partition = next(partition for partition, candidate in candidates.items() if candidate is target)
        try:
            cleaned = clean(target, now_ms=now_ms, options=self._options)
        except (CorruptDataError, RefusedError) as error:
            self.uncleanable[partition] = error
            self._write_checkpoint(partition, target.first_dirty_offset)
            raise
        self._write_checkpoint(partition, cleaned.end_offset)
        return CleanedLog(partition, target, cleaned)

    def checkpoints(self) -> Mapping[TopicPartition, Offset]:
        """Return the offset at which the last pass over each log ended; logs never cleaned are absent."""
        if not self._storage.exists(CLEANER_FILE):
            return {}
        return read_offset_checkpoint(self._storage, CLEANER_FILE)

    def _write_checkpoint(self, partition: TopicPartition, offset: Offset) -> None:
        """Write where cleaning of a log has got to, and leave out the logs that are gone."""
        kept = {known: end for known, end in self.checkpoints().items() if known in self._logs}
        write_offset_checkpoint(self._storage, CLEANER_FILE, {**kept, partition: offset})
