"""Read a segment or snapshot of the metadata log as records with offset, epoch and time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from broker.errors import CorruptDataError, InputError
from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from broker.values import value
from log.batches.allowance import DECODED_COST
from log.batches.in_buffer import MAGIC_POSITION, SIZE_MIN, batches_in
from log.batches.record_columns import RecordColumns
from log.batches.scan import ScanOptions, scan
from log.codecs.crc import BytesLike
from log.metadata.records import (
    ControlRecord,
    GarbageError,
    MetadataRecord,
    RecordFieldsError,
    decode_control,
    decode_record,
)
from log.metadata.schemas import RecordType
from log.record import CONTROL_BIT, ControlType
from log.segments.file_names import LOG, OFFSET_DIGITS, base_offset_of, kind_of

SNAPSHOT: Final = ".checkpoint"
BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"
"""The snapshot from which a new cluster is formatted; its name says neither offset nor epoch."""
_EPOCH_DIGITS: Final = 10
_NAME: Final = re.compile(rf"(\d{{{OFFSET_DIGITS}}})-(\d{{{_EPOCH_DIGITS}}}){re.escape(SNAPSHOT)}", re.ASCII)


@attrs.frozen
class SnapshotId:
    """Identify a snapshot by its end offset (exclusive) and the epoch of the last record before it."""

    end_offset: Offset
    epoch: LeaderEpoch


def snapshot_id(name: str) -> SnapshotId | None:
    """Return the end offset and epoch in the name of a snapshot; None for any other name."""
    match = _NAME.fullmatch(name)
    return None if match is None else SnapshotId(Offset(int(match[1])), LeaderEpoch(int(match[2])))


def is_metadata_file(name: str) -> bool:
    """Return whether a file name in a metadata log's directory is that of a segment or a snapshot."""
    return snapshot_id(name) is not None or (kind_of(name) == LOG and base_offset_of(name) is not None)


@attrs.frozen(eq=False)
class MetadataFile:
    """Hold one file: its name, its name as shown to users (`source`), and its bytes."""

    name: str
    source: str
    data: BytesLike


@attrs.frozen(eq=False)
class MetadataFiles:
    """Hold files in replay order: `start`, a snapshot or None, then segments; `checks` are later snapshots."""

    start: MetadataFile | None
    segments: tuple[MetadataFile, ...]
    checks: tuple[tuple[SnapshotId, MetadataFile], ...]
    start_id: SnapshotId | None = None

    @property
    def all(self) -> tuple[MetadataFile, ...]:
        """Return every file that is read: the start, the segments and the later snapshots."""
        starts = () if self.start is None else (self.start,)
        return (*starts, *self.segments, *(file for _, file in self.checks))


def arrange(files: Sequence[MetadataFile]) -> MetadataFiles:
    """Return the replay order of the files of one directory, or of one file given alone.

    Raises InputError if there are none, or the beginning is missing.
    """
    if len(files) == 1 and is_snapshot(files[0].data, source=files[0].source):
        return MetadataFiles(files[0], (), (), snapshot_id(files[0].name))
    named = [(snapshot_id(file.name), file) for file in files]
    snapshots = sorted(
        ((found, file) for found, file in named if found is not None), key=lambda pair: pair[0].end_offset
    )
    segments = sorted((file for found, file in named if found is None), key=lambda file: file.name)
    if not files:
        raise InputError("there is no segment and no snapshot of a metadata log")
    if not segments:
        found, file = snapshots[-1]
        return MetadataFiles(file, (), (), found)
    first_offset = _first_offset(segments[0])
    if first_offset == 0:
        # The snapshot that a new log begins with holds only the quorum's own records.
        return MetadataFiles(None, tuple(segments), tuple(pair for pair in snapshots if pair[0].end_offset > 0))
    usable = [pair for pair in snapshots if pair[0].end_offset >= first_offset]
    if not usable:
        raise InputError(
            f"the log begins at offset {first_offset}, and no snapshot holds what stood before; give the directory",
            source=segments[0].source,
        )
    (start_id, start), *later = usable
    return MetadataFiles(start, tuple(segments), tuple(later), start_id)


def _first_offset(segment: MetadataFile) -> Offset:
    """Return the first offset of the log; an empty segment has it in its name."""
    try:
        first = next(batches_in(segment.data, source=segment.source), None)
    except CorruptDataError:
        first = None  # The damage is reported when the records are read.
    named = base_offset_of(segment.name)
    if first is not None:
        return first.base_offset
    return Offset(0) if named is None else named


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


class ImpossiblePartitionError(CorruptDataError):
    """The records of a partition add up to one that cannot be; that hides no broker."""


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
    for columns in scan(
        data, options=ScanOptions(keep_going=rejected is not None, record_cost=DECODED_COST), source=source
    ):
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
