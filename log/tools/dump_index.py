"""Print an offset index in the format of kafka-dump-log.

What it decides: the lines for `.index`, and which of its entries do not fit the log.

Constraints: the log is read only where an entry points. An entry that points at no whole batch ends the dump, as in
Kafka: so does the preallocated index of an empty log, which a killed broker leaves.

How: an entry fits if the batch at its position ends with its offset. The zeros at the end of an index that was not
trimmed end it.

Example: offset: 14 position: 4096

Source: kafka.tools.DumpLogSegments, 4.0.1; org.apache.kafka.tools.DumpLogSegments, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.errors import InputError
from log.batches.in_buffer import batch_at
from log.errors import CorruptIndexError
from log.indexes.offset_index import OFFSET_ENTRY, OffsetPositions, offset_index_entries
from log.segments.file_names import LOG
from log.tools.dump_options import DumpOptions
from log.tools.problems import ProblemKind, Problems
from log.tools.sources import SourceFile


def offset_index_lines(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[str]:
    """Yield the entries of an `.index`, compared with the log; raise InputError without a log file."""
    entries = offset_index_entries(file.view(), file.base_offset)
    data = log_of(file).view()
    if len(entries.offsets) == 0:
        yield f"{file.shown} is empty."
        return
    if options.index_sanity_check:
        check_offset_index(file, entries)
        yield f"{file.shown} passed sanity check."
        return
    for row, (offset, position) in enumerate(zip(entries.offsets.tolist(), entries.positions.tolist(), strict=True)):
        if row > 0 and offset == file.base_offset:
            return
        last_offset = _last_offset_at(file, data, offset, position, options.message_size_max)
        if last_offset != offset:
            problems.add(ProblemKind.INDEX_MISMATCH, file.absolute, offset, last_offset)
        if not options.verify_index_only:
            yield f"offset: {offset} position: {position}"


def check_offset_index(file: SourceFile, entries: OffsetPositions) -> None:
    """Raise CorruptIndexError if Kafka's broker would rebuild the index at its start."""
    last_offset = int(entries.offsets[-1]) if len(entries.offsets) else file.base_offset
    if last_offset < file.base_offset:
        raise CorruptIndexError(
            f"has entries, but the last offset {last_offset} is below the base offset {file.base_offset}",
            source=file.shown,
        )
    check_size(file, OFFSET_ENTRY.itemsize)


def check_size(file: SourceFile, entry_size_bytes: int) -> None:
    """Raise CorruptIndexError unless an index holds whole entries only."""
    if file.size_bytes % entry_size_bytes:
        raise CorruptIndexError(
            f"has {file.size_bytes} bytes, which is no multiple of {entry_size_bytes}", source=file.shown
        )


def log_of(file: SourceFile) -> SourceFile:
    """Return the log that an index belongs to; raise InputError if there is none."""
    log = file.sibling(LOG)
    if not log.exists():
        raise InputError(f"cannot be compared, as {log.name} is not beside it", source=file.shown)
    return log


def _last_offset_at(file: SourceFile, data: memoryview, offset: int, position: int, size_bytes_max: int) -> int:
    """Return the last offset of the batch at an entry's position; raise CorruptIndexError if there is none."""
    batch = None
    if 0 <= position <= len(data):
        batch = batch_at(data, position, end_position=min(len(data), position + size_bytes_max), source=file.shown)
    if batch is None:
        raise CorruptIndexError(
            f"its entry for offset {offset} points to byte {position} of the log, where no whole batch is",
            source=file.shown,
        )
    return batch.last_offset
