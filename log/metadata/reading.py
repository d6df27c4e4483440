"""Read a segment or snapshot of the metadata log as records with offset, epoch and time.

What it decides: the records in the bytes of a file, KRaft's control records included, each with offset, epoch and time.

Goals, most important first:
1. A record that cannot be read is reported with file, offset and type, or its error collected in `RejectedRecords`.
2. Memory is bounded by a piece of the file, as `log.batches.scan` reads it.

Constraints: a file is recognised by what it holds, not by its name: a batch of magic 2 at its beginning.

Example: [entry.offset for entry in entries_of(data, source="0.log")]

Source: ours; batches are read by `log.batches.scan`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import attrs

from broker.errors import CorruptDataError
from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from broker.values import value
from log.batches.in_buffer import MAGIC_POSITION, SIZE_MIN
from log.batches.record_columns import RecordColumns
from log.batches.scan import ScanOptions, scan
from log.codecs.crc import BytesLike
from log.metadata.control import ControlRecord, decode_control
from log.metadata.records import GarbageError, MetadataRecord, RecordFieldsError, decode_record
from log.metadata.schemas import RecordType
from log.record import CONTROL_BIT, ControlType

HEAD_SIZE_BYTES: Final = 61  # Of a batch: its header, which every batch of magic 2 has whole.
REJECTED_MAX: Final = 100_000  # Some 100 MB of Python objects.
_MAGIC: Final = 2
_SIZE_AT: Final = slice(8, 12)


class UnreadableEntryError(CorruptDataError):
    """A record at `offset` of the log cannot be read, or contradicts the records before it.

    `kind` is the type of the record, None if it is not known.
    """

    def __init__(self, what: str, *, source: str, offset: Offset, kind: RecordType | None = None) -> None:
        self.offset = offset
        self.kind = kind
        super().__init__(f"offset {offset}: {what}", source=source)


@value
class MetadataEntry:
    """Hold one record with its offset, epoch and time; offsets in a snapshot count its records from 0."""

    offset: Offset
    epoch: LeaderEpoch
    time_ms: TimeMs
    record: MetadataRecord | ControlRecord


@attrs.define
class RejectedRecords:
    """Collect the errors of records and batches that a reader has skipped, in order, at most `REJECTED_MAX`."""

    errors: list[CorruptDataError] = attrs.field(factory=list)

    def add(self, error: CorruptDataError) -> None:
        """Add the error of a skipped record or batch; raise it if the list is full."""
        if len(self.errors) >= REJECTED_MAX:
            raise error
        self.errors.append(error)


def entries_of(
    data: BytesLike, *, source: str, rejected: RejectedRecords | None = None, torn_ends: list[str] | None = None
) -> Iterator[MetadataEntry]:
    """Yield the records of one file.

    Raises CorruptDataError at damage and UnreadableEntryError at a record that cannot be read; with `rejected` their
    errors are added there, and reading goes on. A torn end is no damage, as the file may still be written to; a
    sentence on it is added to `torn_ends`.
    """
    for columns in scan(data, options=ScanOptions(keep_going=rejected is not None), source=source):
        for place in _places(columns):
            try:
                yield MetadataEntry(place.offset, place.epoch, place.time_ms, _record(columns, place))
            except CorruptDataError as error:
                kind = error.kind if isinstance(error, RecordFieldsError | GarbageError) else None
                unreadable = UnreadableEntryError(error.what, source=source, offset=place.offset, kind=kind)
                if rejected is None:
                    raise unreadable from None
                rejected.add(unreadable)
        for damage in columns.damages:
            if damage.is_torn_tail:
                if torn_ends is not None:
                    torn_ends.append(_torn_end(source, damage.size_bytes))
            elif rejected is not None:
                rejected.add(damage.error)


def _torn_end(source: str, size_bytes: int) -> str:
    last = (
        "the last byte is not a whole batch and was"
        if size_bytes == 1
        else f"the last {size_bytes:,} bytes are not a whole batch and were"
    )
    return f"{source}: {last} left out: the file was copied while it was written, or is cut off"


def looks_like_metadata(head: bytes) -> bool:
    """Return whether a file that begins with `head` (61 bytes suffice) can be a segment or snapshot."""
    if len(head) < HEAD_SIZE_BYTES or head[MAGIC_POSITION] != _MAGIC or head[0] & 0x80:
        return False
    return int.from_bytes(head[_SIZE_AT], "big", signed=True) >= SIZE_MIN and b"\0" in head[:16]


def is_snapshot(data: BytesLike, *, source: str) -> bool:
    """Return whether a file is a snapshot: its first record is a SnapshotHeaderRecord."""
    try:
        first = next(entries_of(data, source=source), None)
    except CorruptDataError:  # The file is then read as a segment, which reports the damage.
        return False
    return first is not None and first.record.type is ControlType.SNAPSHOT_HEADER


@value
class _Place:
    """One row of a piece: where its record stands in the log and its value in the piece."""

    row: int
    offset: Offset
    time_ms: TimeMs
    epoch: LeaderEpoch
    is_control: bool
    value_position: int
    value_size: int


def _places(columns: RecordColumns) -> Iterator[_Place]:
    """Yield the rows of a piece; its columns become lists first, as asking an array for a number costs more."""
    batches = columns.batch_index
    of_rows = (
        range(len(columns)),
        columns.offset.tolist(),
        columns.timestamp.tolist(),
        columns.batches.partition_leader_epoch[batches].tolist(),
        (columns.batches.attributes[batches] & CONTROL_BIT != 0).tolist(),
        columns.value_position.tolist(),
        columns.value_size.tolist(),
    )
    return itertools.starmap(_Place, zip(*of_rows, strict=True))


def _record(columns: RecordColumns, place: _Place) -> MetadataRecord | ControlRecord:
    if place.is_control:
        return decode_control(columns.record(place.row))
    start = place.value_position
    return decode_record(bytes(columns.data.data[start : start + max(place.value_size, 0)]))
