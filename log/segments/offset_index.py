"""Map offsets of a segment to positions in its log file, one entry every index.interval.bytes.

`lookup` gives the largest indexed offset that is at most the target, and the position of the append that ends with it;
from there batches are scanned. An entry has 8 bytes: the offset relative to the segment's base, and the position, both
signed 32-bit numbers. Offsets only grow; one that does not is refused with InvalidOffsetError.

Source: Kafka storage/org.apache.kafka.storage.internals.log.OffsetIndex, 4.0.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

import attrs
import numpy as np

from broker.values import value
from log.errors import CorruptIndexError, IllegalArgumentError, InvalidOffsetError
from log.segments.index_file import IndexFile, Int64Array, check_index_size, decoded_entries, slot_at_most
from log.storage.protocol import Buffer, Storage

_PACKED: Final = struct.Struct(">ii")
OFFSET_ENTRY: Final = np.dtype([("key", ">i4"), ("value", ">i4")])
assert OFFSET_ENTRY.itemsize == _PACKED.size == 8


@value
class OffsetPosition:
    """Hold the last offset of an append, and the byte position at which that append begins."""

    offset: int
    position: int


@attrs.frozen(eq=False)
class OffsetPositions:
    """Hold N offset index entries as int64[N] columns."""

    offsets: Int64Array
    positions: Int64Array


class OffsetIndex(IndexFile):
    """Read and write the `.index` file of one segment."""

    ENTRY: ClassVar[np.dtype[np.void]] = OFFSET_ENTRY

    def __init__(self, storage: Storage, path: str, base_offset: int, size_bytes_max: int) -> None:
        super().__init__(storage, path, base_offset, size_bytes_max)
        self.last_offset = self._last_offset()

    @classmethod
    def open(cls, storage: Storage, path: str, base_offset: int, *, size_bytes_max: int) -> OffsetIndex:
        """Open an index, or make one of `size_bytes_max` bytes.

        Raises IllegalArgumentError if a new one has no room for a single entry.
        """
        return cls(storage, path, base_offset, size_bytes_max)

    def append(self, offset: int, position: int) -> None:
        """Add an entry of 8 bytes.

        Raises IllegalArgumentError when full, InvalidOffsetError unless `offset` is above the last one's, and
        IndexOffsetOverflowError if it is too far from the base offset.
        """
        assert 0 <= position < 2**31, position
        if self.entry_count >= self.entry_count_max:
            raise IllegalArgumentError(f"{self.path} is full: it has {self.entry_count} entries")
        if self.entry_count and offset <= self.last_offset:
            raise InvalidOffsetError(f"{self.path}: offset {offset} is not above the last one, {self.last_offset}")
        relative_offset = self.relative(offset)
        self._add(_PACKED.pack(relative_offset, position), relative_offset, position)
        self.last_offset = offset

    def extend(self, offsets: Int64Array, positions: Int64Array) -> None:
        """Add entries at once, equal to many calls of `append`; offsets must ascend and fit in 31 bits.

        Raises IllegalArgumentError if there are too many, InvalidOffsetError unless the first is above the last one's.
        """
        if not len(offsets):
            return
        if self.entry_count + len(offsets) > self.entry_count_max:
            raise IllegalArgumentError(f"{self.path} is full: it has no room for {len(offsets)} entries")
        if self.entry_count and offsets[0] <= self.last_offset:
            raise InvalidOffsetError(f"{self.path}: offset {offsets[0]} is not above the last one, {self.last_offset}")
        self._extend(offsets - self.base_offset, positions)
        self.last_offset = int(offsets[-1])

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the entry of the largest offset at or below `offset`; (base offset, 0) if there is none."""
        slot = self._search(offset - self.base_offset)
        return OffsetPosition(self.base_offset, 0) if slot < 0 else self._at(slot)

    def upper_bound(self, start: OffsetPosition, size_bytes: int) -> OffsetPosition | None:
        """Return the first entry at or above the end of a read of `size_bytes` from `start`; None if there is none."""
        positions = self._decoded().values
        slot = slot_at_most(positions, start.position + size_bytes, self._warm_entry_count)
        # A position that is met exactly is its own bound, the first one excepted: Kafka's search never compares that.
        is_met = slot > 0 and positions[slot] == start.position + size_bytes
        bound = slot if is_met else slot + 1
        return self._at(bound) if bound < self.entry_count else None

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or above `offset`."""
        columns = self._decoded()
        slot = slot_at_most(columns.keys, offset - self.base_offset, self._warm_entry_count)
        is_met = slot >= 0 and columns.keys[slot] == offset - self.base_offset
        self._keep(slot if is_met else slot + 1)
        self.last_offset = self._last_offset()

    def reset(self) -> None:
        """Drop all entries and make room for the largest size again; the file grows as entries come."""
        super().reset()
        self.last_offset = self._last_offset()

    def entries(self) -> OffsetPositions:
        """Return all valid entries."""
        keys, values = self._decoded_arrays()
        return OffsetPositions(keys.astype(np.int64) + self.base_offset, values.astype(np.int64))

    def _at(self, slot: int) -> OffsetPosition:
        columns = self._decoded()
        return OffsetPosition(self.base_offset + columns.keys[slot], columns.values[slot])

    def _last_offset(self) -> int:
        return self.base_offset + (self._entry(self.entry_count - 1)[0] if self.entry_count else 0)


def offset_index_entries(data: Buffer, base_offset: int) -> OffsetPositions:
    """Return the entries in the bytes of an `.index` file, including its reserved rest."""
    keys, values = decoded_entries(data, OFFSET_ENTRY)
    return OffsetPositions(keys.astype(np.int64) + base_offset, values.astype(np.int64))


def check_offset_index(entries: OffsetPositions, base_offset: int, size_bytes: int, *, source: str = "") -> None:
    """Raise CorruptIndexError if the last offset is below the base offset or the size no multiple of an entry's."""
    last_offset = int(entries.offsets[-1]) if len(entries.offsets) else base_offset
    if last_offset < base_offset:
        raise CorruptIndexError(
            f"has entries, but the last offset {last_offset} is below the base offset {base_offset}", source=source
        )
    check_index_size(size_bytes, OFFSET_ENTRY.itemsize, source=source)
