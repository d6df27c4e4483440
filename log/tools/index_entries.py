"""Read the entries of a segment's offset or time index, for whoever prints or checks them."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from broker.cluster import Int64Array
from log.errors import CorruptIndexError
from log.segments.file_names import TIME_INDEX
from log.segments.offset_index import OFFSET_ENTRY, OffsetPositions, check_offset_index, offset_index_entries
from log.segments.time_index import TIME_ENTRY, TimestampOffsets, check_time_index, time_index_entries
from log.tools.sources import SourceFile


class UntrimmedIndexError(CorruptIndexError):
    """A sound index ends in the zeros that a running broker reserves, and Kafka's check takes them for entries."""


@attrs.frozen(eq=False)
class IndexEntries:
    """Hold N entries as int64[N] columns: offsets and positions of an `.index`, timestamps and offsets of the other."""

    file: SourceFile
    keys: Int64Array
    values: Int64Array

    @classmethod
    def of(cls, file: SourceFile) -> IndexEntries:
        """Return the entries of an `.index` or `.timeindex`, with the preallocated zeros at its end."""
        if file.kind == TIME_INDEX:
            times = time_index_entries(file.view(), file.base_offset)
            return cls(file, times.timestamps, times.offsets)
        offsets = offset_index_entries(file.view(), file.base_offset)
        return cls(file, offsets.offsets, offsets.positions)

    @property
    def is_of_times(self) -> bool:
        """Return whether this is a time index."""
        return self.file.kind == TIME_INDEX

    @property
    def offsets(self) -> Int64Array:
        """Return the column of offsets."""
        return self.values if self.is_of_times else self.keys

    @property
    def entry_size_bytes(self) -> int:
        """Return the size of an entry in bytes."""
        return TIME_ENTRY.itemsize if self.is_of_times else OFFSET_ENTRY.itemsize

    def check(self) -> None:
        """Raise CorruptIndexError as Kafka's check of an index does; UntrimmedIndexError for reserved zeros alone."""
        in_use = self.in_use()
        if len(in_use.keys) == len(self.keys):
            self._check_all()
            return
        in_use.check()
        try:
            self._check_all()
        except CorruptIndexError as zeros:
            raise UntrimmedIndexError(zeros.what, source=zeros.source) from None

    def _check_all(self) -> None:
        file = self.file
        if self.is_of_times:
            check_time_index(
                TimestampOffsets(self.keys, self.values), file.base_offset, file.size_bytes, source=file.shown
            )
        else:
            check_offset_index(
                OffsetPositions(self.keys, self.values), file.base_offset, file.size_bytes, source=file.shown
            )

    def listed(self) -> Iterator[tuple[int, int]]:
        """Yield the entries that kafka-dump-log prints: up to a later one with the segment's base offset."""
        ends = np.flatnonzero(self.offsets[1:] == self.file.base_offset)
        count = int(ends[0]) + 1 if len(ends) else len(self.keys)
        yield from zip(self.keys[:count].tolist(), self.values[:count].tolist(), strict=True)

    def in_use(self) -> IndexEntries:
        """Return the entries that a broker reads: without the zeros that it reserves behind those of the last segment.

        Zeros of a rolled segment's time index are read as its last entries (KAFKA-10207); those of an offset index
        make look-ups begin at the segment's start, where they find the same.
        """
        entries = self._without_zeros()
        is_read_whole = self.is_of_times and len(entries.keys) < len(self.keys) and self.file.is_rolled()
        return self if is_read_whole else entries

    def _without_zeros(self) -> IndexEntries:
        others = self.keys if self.is_of_times else self.values
        zeros = np.flatnonzero((self.offsets == self.file.base_offset) & (others == 0))
        count = int(zeros[0]) if len(zeros) else len(self.keys)
        return attrs.evolve(self, keys=self.keys[:count], values=self.values[:count])
