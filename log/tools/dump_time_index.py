"""Print a time index in the format of kafka-dump-log.

What it decides: the lines for `.timeindex`, and which of its entries do not fit the log.

Constraints: nothing is made that is missing: Kafka's tool leaves an empty `.index` beside a time index that has none,
and fails.

How: an entry fits if the batch that ends with its offset has its timestamp as the largest. The batch is sought from
where the offset index says. The tool of 4.3 first reads the headers of all batches from there on, so that damage
anywhere behind ends its dump; older ones stop at the batch. The zeros at the end of an index that was not trimmed end
it.

Example: timestamp: 1700001000091 offset: 14

Source: kafka.tools.DumpLogSegments, 4.0.1; org.apache.kafka.tools.DumpLogSegments, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from log.batches.batch import RecordBatch
from log.batches.in_buffer import batches_in
from log.errors import CorruptIndexError
from log.indexes.index_file import WARM_SIZE_BYTES, slot_at_most
from log.indexes.offset_index import OFFSET_ENTRY, offset_index_entries
from log.indexes.time_index import TIME_ENTRY, TimestampOffsets, time_index_entries
from log.segments.file_names import OFFSET_INDEX
from log.tools.dump_index import check_size, log_of
from log.tools.dump_options import DumpOptions
from log.tools.problems import IN_JAVA, ProblemKind, Problems
from log.tools.sources import SourceFile

NO_TIMESTAMP: Final = -1
NOT_FOUND: Final = -1


def time_index_lines(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[str]:
    """Yield the entries of a `.timeindex`, compared with the log; raise InputError without a log file."""
    entries = time_index_entries(file.view(), file.base_offset)
    log = _Log.beside(file, reads_ahead=options.release >= IN_JAVA)
    if options.index_sanity_check:
        check_time_index(file, entries)
        yield f"{file.shown} passed sanity check."
        return
    before = NO_TIMESTAMP
    for row, (timestamp, offset) in enumerate(zip(entries.timestamps.tolist(), entries.offsets.tolist(), strict=True)):
        if row > 0 and offset == file.base_offset:
            return
        found = log.batch_ending_at(offset)
        if found is None or found.last_offset != offset:
            last_offset = NOT_FOUND if found is None else found.last_offset
            problems.add(ProblemKind.OFFSET_NOT_FOUND, file.absolute, offset, last_offset)
        else:
            largest = max((record.timestamp for record in found.records()), default=NO_TIMESTAMP)
            largest = max(largest, NO_TIMESTAMP)
            if largest != timestamp:
                problems.add(ProblemKind.TIMESTAMP_MISMATCH, file.absolute, timestamp, largest)
            if before >= timestamp:
                problems.add(ProblemKind.TIMESTAMP_ORDER, file.absolute, timestamp, before)
        if not options.verify_index_only:
            yield f"timestamp: {timestamp} offset: {offset}"
        before = timestamp


def check_time_index(file: SourceFile, entries: TimestampOffsets) -> None:
    """Raise CorruptIndexError if Kafka's broker would rebuild the index at its start."""
    if len(entries.timestamps):
        first, last = int(entries.timestamps[0]), int(entries.timestamps[-1])
        if last < first:
            raise CorruptIndexError(
                f"has entries, but the last timestamp {last} is below the first, {first}", source=file.shown
            )
        if int(entries.offsets[-1]) < file.base_offset:
            raise CorruptIndexError(
                f"has entries, but the last offset {entries.offsets[-1]} is below the base offset {file.base_offset}",
                source=file.shown,
            )
    check_size(file, TIME_ENTRY.itemsize)


@attrs.define
class _Log:
    """Find batches of the log beside a time index, by the offset index beside it."""

    file: SourceFile
    data: memoryview
    offsets: list[int]
    """The offset index: offsets relative to the base offset, and a position for each."""
    positions: list[int]
    reads_ahead: bool
    """Whether damage behind the batch that is sought ends the dump."""
    read_positions: set[int] = attrs.field(factory=set)
    """Where batches begin from which the log was read to its end."""

    @classmethod
    def beside(cls, file: SourceFile, *, reads_ahead: bool) -> _Log:
        """Return the log of a time index; raise InputError if there is none."""
        index = file.sibling(OFFSET_INDEX)
        entries = offset_index_entries(index.view() if index.exists() else b"", file.base_offset)
        offsets = (entries.offsets - file.base_offset).tolist()
        log = log_of(file)
        return cls(log, log.view(), offsets, entries.positions.tolist(), reads_ahead)

    def batch_ending_at(self, offset: int) -> RecordBatch | None:
        """Return the first batch from where the index says whose last offset is not below `offset`.

        Raises CorruptIndexError where that is not in the log, CorruptBatchError at an impossible size.
        """
        slot = slot_at_most(self.offsets, offset - self.file.base_offset, WARM_SIZE_BYTES // OFFSET_ENTRY.itemsize)
        position = self.positions[slot] if slot >= 0 else 0
        if not 0 <= position <= len(self.data):
            raise CorruptIndexError(
                f"is shorter than {position} bytes, where its index says that offset {offset} is found",
                source=self.file.shown,
            )
        if self.reads_ahead:
            self._read_ahead(position)
        batches = batches_in(self.data, start_position=position, source=self.file.shown)
        return next((batch for batch in batches if batch.last_offset >= offset), None)

    def _read_ahead(self, position: int) -> None:
        """Read the headers of all batches from a position on; raise CorruptBatchError at an impossible size."""
        read = set[int]()
        for batch in batches_in(self.data, start_position=position, source=self.file.shown):
            if batch.position in self.read_positions:
                break
            read.add(batch.position)
        self.read_positions |= read
