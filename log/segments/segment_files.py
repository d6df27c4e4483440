"""Name, open, rename and remove the files of a segment together.

Source: org.apache.kafka.storage.internals.log.{LogSegment,LazyIndex}, 4.3.1.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.ids import Offset
from broker.units import SizeBytes, TimeMs
from log.errors import IllegalArgumentError
from log.log_config import LogConfig
from log.segments.file_names import CLEANED, DELETED, LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, file_name
from log.segments.offset_index import OffsetIndex
from log.segments.time_index import TimeIndex
from log.segments.txn_index import TransactionIndex
from log.storage.protocol import Storage

SEGMENT_SIZE_BYTES_MAX: Final = 2**31 - 1
"""The greatest segment: positions are 32-bit in the offset index, and Kafka's file sizes too."""


@attrs.frozen
class SegmentPlace:
    """Hold the storage, directory, base offset and file suffix of a segment (suffix "": in use)."""

    storage: Storage
    directory: str
    base_offset: Offset
    suffix: str = ""

    def name(self, kind: str) -> str:
        """Return the name of one of the segment's files."""
        return file_name(self.base_offset, kind, self.suffix)

    def path(self, kind: str) -> str:
        """Return the path of one of the segment's files."""
        return f"{self.directory}/{self.name(kind)}"

    def remove_files(self) -> None:
        """Remove those of the four files that exist."""
        for kind in (OFFSET_INDEX, TIME_INDEX, TXN_INDEX, LOG):
            if self.storage.exists(self.path(kind)):
                self.storage.remove(self.path(kind))


class SegmentFiles:
    """Hold a segment's open files: `records` is the log file; indexes are opened or created at first use."""

    __slots__ = (
        "_index_size_bytes",
        "_offset_index",
        "_time_index",
        "base_offset",
        "place",
        "records",
        "txn_index",
    )

    def __init__(self, place: SegmentPlace, config: LogConfig) -> None:
        self.place = place
        self.base_offset = place.base_offset
        self.records = place.storage.open(place.path(LOG), create=True)
        if self.records.size_bytes > SEGMENT_SIZE_BYTES_MAX:
            raise IllegalArgumentError(f"{place.path(LOG)} has {self.records.size_bytes} bytes, too many for a segment")
        self.txn_index = TransactionIndex.open(place.storage, place.path(TXN_INDEX), self.base_offset)
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._index_size_bytes = config.index_size_bytes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place.path(LOG)}, {self.size_bytes} bytes)"

    @property
    def suffix(self) -> str:
        """Return the suffix of the file names: "" in use, else .cleaned, .swap or .deleted."""
        return self.place.suffix

    @property
    def size_bytes(self) -> SizeBytes:
        """Return the size of the log file in bytes."""
        return self.records.size_bytes

    @property
    def offset_index(self) -> OffsetIndex:
        """Return the offset index, opened at the first call and made if missing."""
        if self._offset_index is None:
            self._offset_index = OffsetIndex.open(
                self.place.storage,
                self.place.path(OFFSET_INDEX),
                self.base_offset,
                size_bytes_max=self._index_size_bytes,
            )
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """Return the time index, opened at the first call and made if missing."""
        if self._time_index is None:
            self._time_index = TimeIndex.open(
                self.place.storage, self.place.path(TIME_INDEX), self.base_offset, size_bytes_max=self._index_size_bytes
            )
        return self._time_index

    @property
    def is_index_full(self) -> bool:
        """Return whether the offset or time index is full but for the entry at the roll."""
        offsets, times = self._offset_index or self.offset_index, self._time_index or self.time_index
        return offsets.is_full or times.is_full

    @property
    def entry_room(self) -> int:
        """Return the number of entries both indexes can take before a roll's; negative if that was added."""
        offsets, times = self.offset_index, self.time_index
        return min(offsets.entry_count_max - offsets.entry_count, times.entry_count_max - 1 - times.entry_count)

    @property
    def modified_ms(self) -> TimeMs:
        """Return the modification time of the log file, in milliseconds."""
        return self.place.storage.modified_ms(self.place.path(LOG))

    def set_modified_ms(self, modified_ms: TimeMs) -> None:
        """Set the modification time of the log file and both indexes, in milliseconds."""
        for kind in (LOG, OFFSET_INDEX, TIME_INDEX):
            self.place.storage.set_modified_ms(self.place.path(kind), modified_ms)

    def grow_indexes(self) -> None:
        """Reserve the largest size for both indexes, before the segment is appended to."""
        self.offset_index.resize(self.offset_index.size_bytes_max)
        self.time_index.resize(self.time_index.size_bytes_max)

    def flush(self) -> None:
        """Make all files durable."""
        self.records.sync()
        self.offset_index.flush()
        self.time_index.flush()
        self.txn_index.flush()

    def change_suffix(self, suffix: str) -> None:
        """Rename all existing files, the log file first."""
        storage, renamed = self.place.storage, attrs.evolve(self.place, suffix=suffix)
        storage.rename(self.place.path(LOG), renamed.path(LOG))
        for kind, index in ((OFFSET_INDEX, self._offset_index), (TIME_INDEX, self._time_index)):
            if index is not None:
                index.rename(renamed.path(kind))
            elif storage.exists(self.place.path(kind)):
                storage.rename(self.place.path(kind), renamed.path(kind))
        self.txn_index.rename(renamed.path(TXN_INDEX))
        self.place = renamed

    def follow(self, directory: str) -> None:
        """Use the new path of a renamed directory; no file is touched."""
        self.place = attrs.evolve(self.place, directory=directory)
        if self._offset_index is not None:
            self._offset_index.path = self.place.path(OFFSET_INDEX)
        if self._time_index is not None:
            self._time_index.path = self.place.path(TIME_INDEX)
        self.txn_index.path = self.place.path(TXN_INDEX)

    def abandon(self) -> None:
        """Close all files as they are, with untrimmed indexes; the segment must not be used afterwards."""
        self.records.close()
        for index in (self._offset_index, self._time_index):
            if index is not None:
                index.close()
        self.txn_index.close()

    def delete_files(self) -> None:
        """Close and remove all files; the segment must not be used afterwards."""
        assert self.suffix in (DELETED, CLEANED), self
        self.records.close()
        for index in (self._offset_index, self._time_index):
            if index is not None:
                index.remove()
        self.txn_index.close()
        # Another segment of the same base may have been deleted since, under the same names, and be gone already.
        self.place.remove_files()
