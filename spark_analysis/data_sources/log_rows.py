"""Turn segments into rows of one table of kafka_log: records, batches, damage, or the segments themselves.

Columns all the way, no Python object a record; a batch of rows is bounded (`PIECE_BYTES`). A raw segment is mapped,
not read; of one in chunks about `WINDOW_BYTES` are held, more only for a batch that is larger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.errors import BrokersideError, CorruptDataError, InputError
from broker.units import MIB
from broker.wording import encodable
from log.batches.arrow_columns import record_columns
from log.batches.header_table import as_array, walk
from log.batches.record_columns import ByteArray, Damage, RecordColumns
from log.batches.scan import ScanOptions, scan
from log.tools.sources import named_file
from spark_analysis.data_sources.committed import Committed
from spark_analysis.data_sources.log_batches import BatchRows
from spark_analysis.data_sources.log_filter import LogFilter
from spark_analysis.data_sources.log_listing import LogSegment
from spark_analysis.data_sources.options import DROP, FAILFAST
from spark_analysis.data_sources.tiered import chunks_of, read_manifest
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import LOG_BATCHES, LOG_DAMAGE, LOG_RECORDS, LOG_SEGMENTS
from spark_analysis.tables.view_columns import ColumnRows, Constants

WINDOW_BYTES: Final = 32 * MIB
STEP_BYTES: Final = 8 * MIB  # Each batch of rows costs Spark, pyarrow and us half a millisecond, whatever its size.
_OPTIONS: Final = ScanOptions(keep_going=True, step_bytes=STEP_BYTES)
_OF_CONTENTS: Final = (LOG_RECORDS, LOG_BATCHES)
"""Tables in which a damage is a row among others."""
PIECE_BYTES: Final = 64 * MIB  # Of Arrow's 2 GiB a column; what the JVM copies at once.
OF_VALUES: Final = ("value", "headers")
_OF_RECORDS: Final = (
    "offset",
    "timestamp",
    "key_position",
    "key_size",
    "value_position",
    "value_size",
    "header_count",
    "record_position",
    "record_size",
    "batch_index",
)


@attrs.frozen
class LogRequest:
    """Choose what to make of segments: the table, its columns, the mode of faults, and which records are wanted."""

    table: Table
    columns: tuple[str, ...]
    mode: str
    wanted: LogFilter = attrs.field(factory=LogFilter)
    values: bool = True
    read_committed: bool = False


@attrs.frozen(eq=False)
class Window:
    """Hold bytes of a segment from `position` on."""

    data: ByteArray
    position: int


@attrs.frozen
class Fault:
    """Hold one fault: what is wrong and where, and of damaged bytes where they are."""

    text: str
    position: int | None = None
    size_bytes: int | None = None
    base_offset: int | None = None
    is_torn_tail: bool | None = None

    @classmethod
    def of(cls, segment: LogSegment, window: Window, damage: Damage) -> Fault:
        """Return the fault of damaged bytes."""
        position = window.position + damage.position
        text = str(CorruptDataError(damage.what, source=encodable(segment.path), position=position))
        return cls(text, position, damage.size_bytes, damage.base_offset, damage.is_torn_tail)


@attrs.define(eq=False)
class SegmentCounts:
    """Count what a scan finds in a segment."""

    segment: LogSegment
    end_offset: int = attrs.field(default=attrs.Factory(lambda self: self.segment.base_offset, takes_self=True))
    max_timestamp_ms: int = -1
    batch_count: int = 0
    record_count: int = 0
    read_bytes: int = 0
    _next_position: int = 0

    def add(self, window: Window, chunk: RecordColumns) -> None:
        """Count the batches of a chunk that no chunk before it had."""
        self.record_count += len(chunk)
        batches = chunk.batches
        new = batches.position + window.position >= self._next_position
        if not new.any():
            return
        self._next_position = window.position + int(batches.position[-1]) + 1
        self.batch_count += int(new.sum())
        self.read_bytes += int(batches.size_bytes[new].sum())
        self.end_offset = max(self.end_offset, int(batches.last_offset.max()) + 1)
        self.max_timestamp_ms = max(self.max_timestamp_ms, int(batches.max_timestamp.max()))

    def rows(self, faults: Sequence[Fault]) -> ColumnRows:
        """Return the row of the segment, with its first fault."""
        damaged = sum(fault.size_bytes or 0 for fault in faults)
        fields = ("end_offset", "max_timestamp_ms", "batch_count", "record_count", "read_bytes")
        values: dict[str, Any] = {name: [getattr(self, name)] for name in fields}
        values |= {"base_offset": [self.segment.base_offset], "damaged_bytes": [damaged]}
        values |= {"size_bytes": [self.read_bytes + damaged], "fault": [faults[0].text if faults else None]}
        return ColumnRows(1, values)


def segment_batches(request: LogRequest, segments: Iterable[LogSegment]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the request's table, of one segment after another; raise at the first fault with FAILFAST."""
    for segment in segments:
        known = Constants({"topic": segment.topic, "partition": segment.partition, "source": encodable(segment.path)})
        for rows in _rows(request, segment):
            yield rows.batch(request.table, known).select(list(request.columns))


def windows(segment: LogSegment) -> Iterator[Window]:
    """Yield the bytes of a segment: all at once if it is raw, else as its chunks come; raise InputError."""
    if segment.manifest is None:
        yield Window(as_array(named_file(Path(segment.path)).view()), 0)
        return
    manifest = read_manifest(segment.manifest)
    held, position, left, bytes_min = bytearray(), 0, manifest.size_bytes, WINDOW_BYTES
    for chunk in chunks_of(segment.path, manifest):
        held += chunk
        left -= len(chunk)
        if left and len(held) >= bytes_min:
            data = as_array(bytes(held))
            used = _whole_bytes(data)
            if used:
                yield Window(data[:used], position)
                del held[:used]
            position += used
            bytes_min = WINDOW_BYTES if used else 2 * bytes_min  # What one batch claims is not here yet.
    yield Window(as_array(bytes(held)), position)


def _whole_bytes(data: ByteArray) -> int:
    """Return where the last whole batch ends, or the first damage begins."""
    position = 0
    while position < len(data):  # Each turn moves on by a batch at least, or ends.
        headers = walk(data, position, len(data), False)
        if headers.damage is not None or headers.end_position == position:
            return headers.end_position
        position = headers.end_position
    return position


def _rows(request: LogRequest, segment: LogSegment) -> Iterator[ColumnRows]:
    """Yield the rows of one segment."""
    counts, batches = SegmentCounts(segment), BatchRows()
    faults: list[Fault] = []
    try:
        committed = Committed.of(segment) if request.read_committed and request.table == LOG_RECORDS else None
        for window, chunk in _chunks(request, segment):
            counts.add(window, chunk)
            if request.table == LOG_RECORDS:
                yield from _records(request, window, chunk, committed)
            elif request.table == LOG_BATCHES:
                yield from batches.add(window.position, chunk)
            found = [Fault.of(segment, window, damage) for damage in chunk.damages]
            yield from _of_faults(request, found)
            faults += found
    except BrokersideError as error:
        found = [Fault(str(error))]
        yield from _of_faults(request, found)
        faults += found
    if request.table == LOG_BATCHES:
        yield from batches.end()
    elif request.table == LOG_SEGMENTS:
        yield counts.rows(faults)


def _chunks(request: LogRequest, segment: LogSegment) -> Iterator[tuple[Window, RecordColumns]]:
    """Yield the records of a segment as the scan finds them, those of the runs that are wanted."""
    wanted = request.wanted if request.table in _OF_CONTENTS else LogFilter()
    for window in windows(segment):
        for start, end in wanted.runs(window.data):
            for chunk in scan(window.data.data, start_position=start, end_position=end, options=_OPTIONS):
                yield window, chunk


def _records(
    request: LogRequest, window: Window, chunk: RecordColumns, committed: Committed | None
) -> Iterator[ColumnRows]:
    rows = request.wanted.rows(chunk)
    if committed is not None:
        held = committed.mask(chunk.batches)[chunk.batch_index]
        if not held.all():
            rows = np.flatnonzero(held) if rows is None else rows[held[rows]]
    wanted = frozenset(request.columns) - (frozenset() if request.values else frozenset(OF_VALUES))
    for piece in (chunk if rows is None else taken(chunk, rows)).pieces(PIECE_BYTES):
        yield ColumnRows(len(piece), record_columns(piece, wanted, position=window.position))


def _of_faults(request: LogRequest, faults: Sequence[Fault]) -> Iterator[ColumnRows]:
    """Yield the rows that the table has for faults; with FAILFAST raise the first."""
    if faults and request.mode == FAILFAST:
        raise InputError(faults[0].text)
    if not faults or request.table == LOG_SEGMENTS or (request.table in _OF_CONTENTS and request.mode == DROP):
        return
    names = ("position", "size_bytes", "base_offset", "is_torn_tail") if request.table == LOG_DAMAGE else ()
    values = {name: [getattr(fault, name) for fault in faults] for name in names}
    yield ColumnRows(len(faults), {**values, "fault": [fault.text for fault in faults]})


def taken(chunk: RecordColumns, rows: NDArray[np.int64] | slice) -> RecordColumns:
    """Return some rows of a chunk."""
    return attrs.evolve(chunk, **{name: getattr(chunk, name)[rows] for name in _OF_RECORDS})
