"""Print a segment's indexes and producer snapshots in the format of kafka-dump-log.

What it decides: the lines for `.index`, `.timeindex`, `.txnindex` and `.snapshot`, and what of them does not fit the
log.

Constraints: the log is read only where an entry points. Nothing is made that is missing: Kafka's tool leaves an empty
`.index` beside a time index that has none, and fails.

How: an offset entry fits if the batch at its position ends with its offset; a time entry if the batch that ends with
its offset has its timestamp as the largest. The zeros at the end of an index that was not trimmed end it.

Example: timestamp: 1700001000091 offset: 14

Source: kafka.tools.DumpLogSegments, trunk 1eb7644 (2024-10) and 4.0.1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import numpy as np

from broker.errors import CorruptDataError, InputError
from broker.units import MIB
from log.batches.batch import RecordBatch
from log.batches.in_buffer import batch_at, batches_in
from log.errors import CorruptIndexError
from log.indexes.offset_index import OFFSET_ENTRY, OffsetPositions, offset_index_entries
from log.indexes.time_index import TIME_ENTRY, TimestampOffsets, time_index_entries
from log.indexes.txn_index import aborted_transactions
from log.producers.snapshot import parse_snapshot
from log.segments.file_names import LOG, OFFSET_INDEX
from log.tools.dump_options import DumpOptions
from log.tools.problems import ProblemKind, Problems
from log.tools.sources import SourceFile

MESSAGE_SIZE_BYTES_MAX: Final = 5 * MIB  # The tool's default for --max-message-size.
NO_TIMESTAMP: Final = -1
NOT_FOUND: Final = -1


def offset_index_lines(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[str]:
    """Yield the entries of an `.index`, compared with the log; raise InputError without a log file."""
    entries = offset_index_entries(file.view(), file.base_offset)
    data = _log_of(file).view()
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
        last_offset = _last_offset_at(data, position)
        if last_offset != offset:
            problems.add(ProblemKind.INDEX_MISMATCH, file.shown, offset, last_offset)
        if not options.verify_index_only:
            yield f"offset: {offset} position: {position}"


def time_index_lines(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[str]:
    """Yield the entries of a `.timeindex`, compared with the log; raise InputError without a log file."""
    entries = time_index_entries(file.view(), file.base_offset)
    data = _log_of(file).view()
    if options.index_sanity_check:
        check_time_index(file, entries)
        yield f"{file.shown} passed sanity check."
        return
    offset_index = _entries_beside(file)
    before = NO_TIMESTAMP
    for row, (timestamp, offset) in enumerate(zip(entries.timestamps.tolist(), entries.offsets.tolist(), strict=True)):
        if row > 0 and offset == file.base_offset:
            return
        found = _batch_ending_at(data, _position_below(offset_index, offset), offset)
        if found is None or found.last_offset != offset:
            last_offset = NOT_FOUND if found is None else found.last_offset
            problems.add(ProblemKind.OFFSET_NOT_FOUND, file.shown, offset, last_offset)
        else:
            largest = max((record.timestamp for record in found.records()), default=NO_TIMESTAMP)
            largest = max(largest, NO_TIMESTAMP)
            if largest != timestamp:
                problems.add(ProblemKind.TIMESTAMP_MISMATCH, file.shown, timestamp, largest)
            if before >= timestamp:
                problems.add(ProblemKind.TIMESTAMP_ORDER, file.shown, timestamp, before)
        if not options.verify_index_only:
            yield f"timestamp: {timestamp} offset: {offset}"
        before = timestamp


def txn_index_lines(file: SourceFile) -> Iterator[str]:
    """Yield the aborted transactions of a `.txnindex`; raises CorruptTransactionIndexError."""
    for aborted in aborted_transactions(file.view(), source=file.shown):
        yield (
            f"version: 0 producerId: {aborted.producer_id} firstOffset: {aborted.first_offset}"
            f" lastOffset: {aborted.last_offset} lastStableOffset: {aborted.last_stable_offset}"
        )


def snapshot_lines(file: SourceFile) -> Iterator[str]:
    """Yield the producers of a `.snapshot`; raises CorruptSnapshotError."""
    for entry in parse_snapshot(file.view(), source=file.shown):
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch}"
            f" coordinatorEpoch: {entry.coordinator_epoch}"
            f" currentTxnFirstOffset: {optional_long(entry.current_txn_first_offset)}"
            f" lastTimestamp: {entry.last_timestamp} "
        )
        if entry.batches:
            batch = entry.batches[0]
            line += (
                f"firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence}"
                f" lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} timestamp: {batch.timestamp}"
            )
        yield line


def optional_long(value: int | None) -> str:
    """Return the text that Java prints for an OptionalLong."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def check_offset_index(file: SourceFile, entries: OffsetPositions) -> None:
    """Raise CorruptIndexError if Kafka's broker would rebuild the index at its start."""
    last_offset = int(entries.offsets[-1]) if len(entries.offsets) else file.base_offset
    if last_offset < file.base_offset:
        raise CorruptIndexError(
            f"has entries, but the last offset {last_offset} is below the base offset {file.base_offset}",
            source=file.shown,
        )
    _check_size(file, OFFSET_ENTRY.itemsize)


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
    _check_size(file, TIME_ENTRY.itemsize)


def _check_size(file: SourceFile, entry_size_bytes: int) -> None:
    if file.size_bytes % entry_size_bytes:
        raise CorruptIndexError(
            f"has {file.size_bytes} bytes, which is no multiple of {entry_size_bytes}", source=file.shown
        )


def _log_of(file: SourceFile) -> SourceFile:
    log = file.sibling(LOG)
    if not log.exists():
        raise InputError(f"cannot be compared, as {log.name} is not beside it", source=file.shown)
    return log


def _entries_beside(file: SourceFile) -> OffsetPositions:
    index = file.sibling(OFFSET_INDEX)
    return offset_index_entries(index.view() if index.exists() else b"", file.base_offset)


def _position_below(entries: OffsetPositions, offset: int) -> int:
    """Return the position of the largest entry that is not above `offset`, 0 where there is none."""
    row = int(np.searchsorted(entries.offsets, offset, side="right")) - 1
    return int(entries.positions[row]) if row >= 0 else 0


def _last_offset_at(data: memoryview, position: int) -> int:
    batch = None
    if 0 <= position <= len(data):
        with contextlib.suppress(CorruptDataError):
            batch = batch_at(data, position, end_position=min(len(data), position + MESSAGE_SIZE_BYTES_MAX))
    return NOT_FOUND if batch is None else batch.last_offset


def _batch_ending_at(data: memoryview, position: int, offset: int) -> RecordBatch | None:
    """Return the first batch from `position` on whose last offset is not below `offset`."""
    if not 0 <= position <= len(data):
        return None
    return next((batch for batch in batches_in(data, start_position=position) if batch.last_offset >= offset), None)
