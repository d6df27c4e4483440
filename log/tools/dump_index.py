"""Print indexes and producer snapshots in the format of kafka-dump-log.

Source: kafka.tools.DumpLogSegments, 3.9.2 and 4.0.1; org.apache.kafka.tools.DumpLogSegments, 4.3.1;
ProducerStateManager, Schema and ArrayOf, 3.9.2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np

from broker.errors import InputError
from log.batches.allowance import ReadingAllowance
from log.batches.batch import RecordBatch
from log.batches.in_buffer import batch_at, batches_in
from log.batches.record_columns import HeaderColumns
from log.batches.scan import scan_headers
from log.errors import CorruptIndexError, CorruptSnapshotError
from log.partition.producer_entry import PRODUCER_SIZE_BYTES, SNAPSHOT_VERSION, parse_snapshot
from log.segments.file_names import LOG, OFFSET_INDEX
from log.segments.index_file import WARM_SIZE_BYTES, slot_at_most
from log.segments.offset_index import OFFSET_ENTRY, offset_index_entries
from log.segments.txn_index import ENTRY_SIZE_BYTES, aborted_transactions
from log.storage.protocol import Buffer
from log.tools.dump_options import DumpOptions
from log.tools.findings import ProblemKind, Problems, of_error
from log.tools.index_entries import IndexEntries
from log.tools.sources import SourceFile

NO_TIMESTAMP: Final = -1
NOT_FOUND: Final = -1


def time_index_lines(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[str]:
    """Yield the entries of a `.timeindex`, compared with the log; raise InputError without a log file."""
    entries = IndexEntries.of(file)
    log = _Log.beside(file)
    if options.index_sanity_check:
        yield _sanity_line(entries)
        return
    before = NO_TIMESTAMP
    for timestamp, offset in entries.listed():
        found = log.batch_ending_at(offset)
        if found is None or found.last_offset != offset:
            last_offset = NOT_FOUND if found is None else found.last_offset
            problems.add(ProblemKind.OFFSET_NOT_FOUND, file.absolute, offset, last_offset)
        else:
            with problems.within_limits(log.file.shown, log.data):
                largest = log.largest_timestamp_in(found)
                if largest != timestamp:
                    problems.add(ProblemKind.TIMESTAMP_MISMATCH, file.absolute, timestamp, largest)
            if before >= timestamp:
                problems.add(ProblemKind.TIMESTAMP_ORDER, file.absolute, timestamp, before)
        if not options.verify_index_only:
            yield f"timestamp: {timestamp} offset: {offset}"
        before = timestamp


@attrs.define
class _Log:
    """Find batches of the log beside a time index, by the offset index beside it."""

    file: SourceFile
    data: memoryview
    offsets: list[int]
    """The offset index: offsets relative to the base offset, and a position for each."""
    positions: list[int]
    headers: HeaderColumns
    """The headers of all batches up to a damage."""
    allowance: ReadingAllowance
    largest: dict[int, int] = attrs.field(factory=dict)
    """The largest timestamp in the batches at some positions."""
    read_positions: set[int] = attrs.field(factory=set)
    """Where batches begin from which the log was read to its end."""

    @classmethod
    def beside(cls, file: SourceFile) -> _Log:
        """Return the log of a time index; raise InputError if there is none."""
        index = file.sibling(OFFSET_INDEX)
        entries = offset_index_entries(index.view() if index.exists() else b"", file.base_offset)
        offsets = (entries.offsets - file.base_offset).tolist()
        log = log_of(file)
        data = log.view()
        allowance = ReadingAllowance(log.size_bytes)
        return cls(log, data, offsets, entries.positions.tolist(), scan_headers(data), allowance)

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
        self._read_ahead(position)
        headers, row = self._headers_from(position)
        reaching = np.flatnonzero(headers.last_offset[row:] >= offset)
        if len(reaching):
            return batch_at(self.data, int(headers.position[row + reaching[0]]), source=self.file.shown)
        batches = batches_in(self.data, start_position=headers.end_position, source=self.file.shown)
        return next((batch for batch in batches if batch.last_offset >= offset), None)

    def _headers_from(self, position: int) -> tuple[HeaderColumns, int]:
        """Return headers, and the row of the batch at a position, which need not be where one was written."""
        row = int(np.searchsorted(self.headers.position, position))
        if row < len(self.headers) and self.headers.position[row] == position:
            return self.headers, row
        return scan_headers(self.data, start_position=position), 0

    def largest_timestamp_in(self, batch: RecordBatch) -> int:
        """Return the largest timestamp of a batch's records, -1 for none; raise a CorruptDataError for damage."""
        if batch.position not in self.largest:
            times = (record.timestamp for record in batch.each_record(self.allowance))
            self.largest[batch.position] = max(times, default=NO_TIMESTAMP)
        return max(self.largest[batch.position], NO_TIMESTAMP)

    def _read_ahead(self, position: int) -> None:
        """Read the headers of all batches from a position on; raise CorruptBatchError at an impossible size."""
        read = set[int]()
        for batch in batches_in(self.data, start_position=position, source=self.file.shown):
            if batch.position in self.read_positions:
                break
            read.add(batch.position)
        self.read_positions |= read


def offset_index_lines(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[str]:
    """Yield the entries of an `.index`, compared with the log; raise InputError without a log file."""
    entries = IndexEntries.of(file)
    data = log_of(file).view()
    if len(entries.offsets) == 0:
        yield f"{file.shown} is empty."
        return
    if options.index_sanity_check:
        yield _sanity_line(entries)
        return
    for offset, position in entries.listed():
        last_offset = _last_offset_at(file, data, offset, position, options.message_size_max)
        if last_offset != offset:
            problems.add(ProblemKind.INDEX_MISMATCH, file.absolute, offset, last_offset)
        if not options.verify_index_only:
            yield f"offset: {offset} position: {position}"


def _sanity_line(entries: IndexEntries) -> str:
    entries.check()
    return f"{entries.file.shown} passed sanity check."


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


VERSION: Final = struct.Struct(">h")
CRC_AND_COUNT: Final = struct.Struct(">Ii")
INVALID: Final = "Snapshot failed schema validation: "


def txn_index_lines(file: SourceFile) -> Iterator[str]:
    """Yield the aborted transactions of a `.txnindex`; raises CorruptTransactionIndexError."""
    data = file.view()
    # Kafka's tool reads all of them before it prints the first.
    for row, aborted in enumerate(tuple(aborted_transactions(data, source=file.shown))):
        (version,) = VERSION.unpack_from(data, row * ENTRY_SIZE_BYTES)
        yield (
            f"version: {version} producerId: {aborted.producer_id} firstOffset: {aborted.first_offset}"
            f" lastOffset: {aborted.last_offset} lastStableOffset: {aborted.last_stable_offset}"
        )


def snapshot_lines(file: SourceFile, problems: Problems) -> Iterator[str]:
    """Yield the producers of a `.snapshot` file; report an unreadable file to `problems`."""
    data = file.view()
    try:
        entries = parse_snapshot(data, source=file.shown)
    except CorruptSnapshotError as error:
        problems.note(_refusal(data) or error.what)
        problems.damage(of_error(file.shown, error))
        return
    for entry in entries:
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch}"
            f" coordinatorEpoch: {entry.coordinator_epoch}"
            f" currentTxnFirstOffset: {optional_long(entry.current_txn_first_offset)}"
            f" lastTimestamp: {entry.last_timestamp}"
        )
        if entry.batches:
            batch = entry.batches[0]
            line += (
                f" firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence}"
                f" lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} timestamp: {batch.timestamp}"
            )
        yield line


def optional_long(value: int | None) -> str:
    """Return the text that Java prints for an OptionalLong."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _refusal(data: Buffer) -> str | None:
    """Return what Kafka says of a snapshot whose layout cannot be read; "null" stands where its bytes end."""
    if len(data) < VERSION.size:
        return f"{INVALID}null"
    (version,) = VERSION.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        return f"{INVALID}Snapshot contained an unknown file version {version}"
    if len(data) < VERSION.size + CRC_AND_COUNT.size:
        return f"{INVALID}null"
    _crc, count = CRC_AND_COUNT.unpack_from(data, VERSION.size)
    left = len(data) - VERSION.size - CRC_AND_COUNT.size
    if count < 0:
        return f"{INVALID}non-nullable field producerEntries was serialized as null"
    if count > left:
        return f"{INVALID}Tried to allocate a collection of size {count}, but there are only {left} bytes remaining."
    return None if count * PRODUCER_SIZE_BYTES <= left else f"{INVALID}null"
