"""Store the start offset of each leader epoch of a log.

An entry is on disk before its first record is. An entry that contradicts later ones drops them: the newest is believed,
as it comes from the leader. `assign` writes the file at once; a cut is written later, at `flush`, and whoever opens the
log after a crash cuts again.

Source: Kafka storage/org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache, 4.0 (KIP-101, KIP-279,
KAFKA-16541).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import attrs

from broker.ids import LeaderEpoch, Offset
from log.errors import IllegalArgumentError
from log.storage.checkpoints import EpochEntry, read_epoch_checkpoint, write_epoch_checkpoint
from log.storage.protocol import Storage, parent_of

UNDEFINED_EPOCH: Final = LeaderEpoch(-1)


@attrs.frozen
class EpochEndOffset:
    """Hold a leader epoch and the offset after its last record."""

    epoch: LeaderEpoch
    end_offset: Offset


class LeaderEpochCache:
    """Keep the content of a partition's `leader-epoch-checkpoint` file in memory."""

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._entries: list[EpochEntry] = []
        self._shown: tuple[EpochEntry, ...] | None = None
        self.path = path
        self.is_flush_due = False
        if not storage.exists(path):
            storage.open(path, create=True).close()
        for entry in read_epoch_checkpoint(storage, path):
            self._assign(entry.epoch, entry.start_offset)

    def __repr__(self) -> str:
        return f"LeaderEpochCache({self.path!r}, {len(self._entries)} entries)"

    @classmethod
    def open(cls, storage: Storage, path: str) -> LeaderEpochCache:
        """Read the file, or create an empty one.

        Raises CheckpointError if it cannot be read, IllegalArgumentError if it holds a negative epoch or offset.
        """
        return cls(storage, path)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """Return all entries, by epoch; the tuple is kept until an entry changes, as every append reads it."""
        if self._shown is None:
            self._shown = tuple(self._entries)
        return self._shown

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """Return the entry of the earliest epoch."""
        return self._entries[0] if self._entries else None

    @property
    def latest_epoch(self) -> LeaderEpoch | None:
        """Return the latest epoch in the cache, None if the cache is empty."""
        return self._entries[-1].epoch if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` starts at `start_offset`; write the file if the entry is new.

        Raises IllegalArgumentError if either is negative.
        """
        if self._assign(epoch, start_offset):
            self._write()

    def previous_epoch(self, epoch: int | None = None) -> LeaderEpoch | None:
        """Return the largest epoch below `epoch`, or below the latest one if `epoch` is None."""
        if epoch is None:
            return self._entries[-2].epoch if len(self._entries) > 1 else None
        place = bisect_right(self._entries, epoch - 1, key=_epoch_of)
        return self._entries[place - 1].epoch if place else None

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset | None:
        """Return the largest epoch up to `epoch` and its end offset; None where Kafka answers (-1, -1).

        The latest epoch ends at the log's end; an epoch below the first entry ends at that entry's start offset.
        """
        if epoch == UNDEFINED_EPOCH:
            return None
        if epoch == self.latest_epoch:
            return EpochEndOffset(LeaderEpoch(epoch), Offset(log_end_offset))
        place = bisect_right(self._entries, epoch, key=_epoch_of)
        if place == len(self._entries):
            return None
        found = self._entries[place - 1].epoch if place else LeaderEpoch(epoch)
        return EpochEndOffset(found, self._entries[place].start_offset)

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the entries that start at `end_offset` or later; a later `flush` writes the file."""
        if end_offset < 0 or not self._entries or self._entries[-1].start_offset < end_offset:
            return
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        self._shown = None
        self.is_flush_due = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs that end at or before `start_offset`, and start the next one there; `flush` writes."""
        place = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if place:
            self._entries[:place] = [EpochEntry(self._entries[place - 1].epoch, Offset(start_offset))]
            self._shown = None
            self.is_flush_due = True

    def clear(self) -> None:
        """Drop all entries and write the file."""
        self._entries.clear()
        self._shown = None
        self._write()

    def flush(self) -> None:
        """Write the file after a truncation, unless the partition's directory is gone."""
        if self.is_flush_due and self._storage.is_directory(parent_of(self.path)):
            self._write()
        self.is_flush_due = False

    def check_invariants(self) -> None:
        """Assert that epochs and start offsets ascend."""
        for before, after in zip(self._entries, self._entries[1:], strict=False):
            assert before.epoch < after.epoch, (before, after)
            assert before.start_offset < after.start_offset, (before, after)

    def _assign(self, epoch: int, start_offset: int) -> bool:
        if epoch < 0 or start_offset < 0:
            raise IllegalArgumentError(
                f"{self.path}: leader epoch {epoch} from offset {start_offset}; both must be 0 or more"
            )
        entries = self._entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return False  # As with nearly every batch.
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochEntry(LeaderEpoch(epoch), Offset(start_offset)))
        self._shown = None
        return True

    def _write(self) -> None:
        write_epoch_checkpoint(self._storage, self.path, self._entries)
        self.is_flush_due = False


def _epoch_of(entry: EpochEntry) -> int:
    return entry.epoch
