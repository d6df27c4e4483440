"""Map timestamps of a segment to offsets, one entry every index.interval.bytes.

An entry (timestamp, offset) says that no record up to `offset` has a later timestamp; `lookup` gives the latest entry
whose timestamp is at most the target. The last entry of a closed segment has the segment's largest timestamp. An entry
has 12 bytes: the timestamp, a signed 64-bit number, and the offset relative to the segment's base, a signed 32-bit
number. Timestamps only grow: one that does not exceed the last is passed over. The last place is kept for the entry
that is added when the segment is rolled.

Source: Kafka storage/org.apache.kafka.storage.internals.log.TimeIndex, 4.0.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

import attrs
import numpy as np

from log.errors import CorruptIndexError, IllegalArgumentError, IllegalStateError, InvalidOffsetError
from log.record import NO_TIMESTAMP, TimestampOffset
from log.segments.index_file import IndexFile, Int64Array, check_index_size, decoded_entries, slot_at_most
from log.storage.protocol import Buffer, Storage

_PACKED: Final = struct.Struct(">qi")
TIME_ENTRY: Final = np.dtype([("key", ">i8"), ("value", ">i4")])
assert TIME_ENTRY.itemsize == _PACKED.size == 12


@attrs.frozen(eq=False)
class TimestampOffsets:
    """Hold N time index entries as int64[N] columns."""

    timestamps: Int64Array
    offsets: Int64Array


class TimeIndex(IndexFile):
    """Read and write the `.timeindex` file of one segment."""

    ENTRY: ClassVar[np.dtype[np.void]] = TIME_ENTRY

    def __init__(self, storage: Storage, path: str, base_offset: int, size_bytes_max: int) -> None:
        super().__init__(storage, path, base_offset, size_bytes_max)
        self.last_entry = self._last_entry()

    @classmethod
    def open(cls, storage: Storage, path: str, base_offset: int, *, size_bytes_max: int) -> TimeIndex:
        """Open an index, or make one of `size_bytes_max` bytes.

        Raises IllegalArgumentError if a new one has no room for a single entry.
        """
        return cls(storage, path, base_offset, size_bytes_max)

    @property
    def is_full(self) -> bool:
        """Return whether the index has at most one free entry, which is reserved for the roll."""
        return self.entry_count >= self.entry_count_max - 1

    def maybe_append(self, timestamp: int, offset: int, *, skip_full_check: bool = False) -> None:
        """Add an entry of 12 bytes, unless `timestamp` equals the last entry's.

        Raises IllegalArgumentError when full, unless `skip_full_check`; InvalidOffsetError if `offset` is below the
        last entry's, IllegalStateError if `timestamp` is; IndexOffsetOverflowError if `offset` is too far from the
        base.
        """
        if not skip_full_check and self.entry_count >= self.entry_count_max - 1:
            raise IllegalArgumentError(f"{self.path} is full: it has {self.entry_count} entries")
        last = self.last_entry
        if self.entry_count and offset < last.offset:
            raise InvalidOffsetError(f"{self.path}: offset {offset} is below the last entry's, {last.offset}")
        if self.entry_count and timestamp < last.timestamp:
            raise IllegalStateError(f"{self.path}: timestamp {timestamp} is below the last entry's, {last.timestamp}")
        if timestamp <= last.timestamp:
            return
        relative_offset = self.relative(offset)
        self._add(_PACKED.pack(timestamp, relative_offset), timestamp, relative_offset)
        self.last_entry = TimestampOffset(timestamp, offset)

    def extend(self, timestamps: Int64Array, offsets: Int64Array) -> None:
        """Add entries at once, equal to many calls of `maybe_append`; both columns must ascend from the last entry.

        Raises IllegalArgumentError if there are too many, InvalidOffsetError if the first is below the last one's.
        """
        if not len(timestamps):
            return
        last = self.last_entry
        if self.entry_count + len(timestamps) > self.entry_count_max - 1:
            raise IllegalArgumentError(f"{self.path} is full: it has no room for {len(timestamps)} entries")
        if self.entry_count and offsets[0] < last.offset:
            raise InvalidOffsetError(f"{self.path}: offset {offsets[0]} is below the last entry's, {last.offset}")
        assert timestamps[0] > last.timestamp, (timestamps[0], last)
        self._extend(timestamps, offsets - self.base_offset)
        self.last_entry = TimestampOffset(int(timestamps[-1]), int(offsets[-1]))

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the last entry at or before `timestamp` (milliseconds); (-1, base offset) if there is none."""
        slot = self._search(timestamp)
        if slot < 0:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        columns = self._decoded()
        return TimestampOffset(columns.keys[slot], self.base_offset + columns.values[slot])

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`."""
        offsets = self._decoded().values
        slot = slot_at_most(offsets, offset - self.base_offset, self._warm_entry_count)
        is_met = slot >= 0 and offsets[slot] == offset - self.base_offset
        self._keep(slot if is_met else slot + 1)
        self.last_entry = self._last_entry()

    def reset(self) -> None:
        """Drop all entries and make room for the largest size again; the file grows as entries come."""
        super().reset()
        self.last_entry = self._last_entry()

    def entries(self) -> TimestampOffsets:
        """Return all valid entries."""
        keys, values = self._decoded_arrays()
        return TimestampOffsets(keys.astype(np.int64), values.astype(np.int64) + self.base_offset)

    def _last_entry(self) -> TimestampOffset:
        if not self.entry_count:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        timestamp, relative_offset = self._entry(self.entry_count - 1)
        return TimestampOffset(timestamp, self.base_offset + relative_offset)


def time_index_entries(data: Buffer, base_offset: int) -> TimestampOffsets:
    """Return the entries in the bytes of a `.timeindex` file, including its reserved rest."""
    keys, values = decoded_entries(data, TIME_ENTRY)
    return TimestampOffsets(keys.astype(np.int64), values.astype(np.int64) + base_offset)


def check_time_index(entries: TimestampOffsets, base_offset: int, size_bytes: int, *, source: str = "") -> None:
    """Raise CorruptIndexError if the last entry is below the first or the base, or the size no multiple of an entry's.

    This is where `log verify`, `log dump --index-sanity-check` and whoever opens a log ask whether an index is sound.
    """
    if len(entries.timestamps):
        first, last, last_offset = (int(each) for each in (*entries.timestamps[[0, -1]], entries.offsets[-1]))
        if last < first:
            raise CorruptIndexError(
                f"has entries, but the last timestamp {last} is below the first, {first}", source=source
            )
        if last_offset < base_offset:
            raise CorruptIndexError(
                f"has entries, but the last offset {last_offset} is below the base offset {base_offset}", source=source
            )
    check_index_size(size_bytes, TIME_ENTRY.itemsize, source=source)
