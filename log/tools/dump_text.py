"""Print a segment's files in the format of kafka-dump-log.

Source: the DumpLogSegments of kafka-tools, 4.0.1, 4.1.2 and 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from broker.errors import InputError
from log.batches.allowance import ReadingAllowance
from log.batches.batch import RecordBatch, RecordSlice
from log.batches.legacy import LegacyBatch
from log.metadata.json_text import control_json, metadata_payload
from log.metadata.reading import SNAPSHOT, snapshot_id
from log.metadata.records import CONTROL_SCHEMAS, decode_control
from log.record import ControlType, Record, control_type, int64, marker_of
from log.segments.file_names import LOG, OFFSET_INDEX, PRODUCER_SNAPSHOT, TIME_INDEX, TXN_INDEX
from log.tools.dump_index import (
    log_of,
    offset_index_lines,
    optional_long,
    snapshot_lines,
    time_index_lines,
    txn_index_lines,
)
from log.tools.dump_options import HEADERS_SHOWN_MAX, DumpOptions, shown, wanted_batches
from log.tools.dump_rows import small_file_lines
from log.tools.dump_topics import decoded
from log.tools.findings import ProblemKind, Problems
from log.tools.sources import SMALL_FILES, SourceFile

V2: Final = 2
NO_OFFSET: Final = -1
RECORD_START: Final = "| "


def file_lines(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[str]:
    """Yield the lines for a file; raise InputError for an unknown kind of file, CorruptDataError at damage."""
    yield f"Dumping {file.shown}"
    if file.kind in (LOG, SNAPSHOT):
        yield from log_lines(file, options, problems)
    elif file.kind == OFFSET_INDEX:
        yield from offset_index_lines(file, options, problems)
    elif file.kind == TIME_INDEX:
        yield from time_index_lines(file, options, problems)
    elif file.kind == TXN_INDEX:
        yield from txn_index_lines(file)
    elif file.kind == PRODUCER_SNAPSHOT:
        yield from snapshot_lines(file, problems)
    elif file.kind in SMALL_FILES:
        yield from small_file_lines(file)
    else:
        raise InputError("is not a file of a log that can be dumped", source=file.shown)


def check_dumpable(file: SourceFile, *, is_compared: bool) -> None:
    """Raise InputError if a file cannot be dumped, as dumping it would.

    `is_compared` says whether indexes are compared with their log, as text is, which must then be beside them.
    """
    if file.kind in (LOG, OFFSET_INDEX, TIME_INDEX):
        assert file.base_offset >= 0, file.base_offset  # Asked for, as a name without an offset is refused.
    if is_compared and file.kind in (OFFSET_INDEX, TIME_INDEX):
        log_of(file)
    file.view().release()


def log_lines(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[str]:
    """Yield a line per batch of a segment and, with `deep`, per record; raise CorruptDataError at damage."""
    yield _heading(file)
    allowance, absolute, data = options.allowance(file), file.absolute, file.view()
    end_position = 0
    last_offset = NO_OFFSET
    for batch in wanted_batches(file, options, problems):
        end_position = batch.end_position
        yield batch_line(batch)
        with problems.within_limits(file.shown, data):
            for record, line in record_lines(batch, options, allowance) if options.deep else ():
                # Kafka's tool takes the offset before a file's first one for -1.
                has_before = last_offset != NO_OFFSET or options.start_offset == 0
                if has_before and record.offset != int64(last_offset + 1):
                    problems.add(ProblemKind.NON_CONSECUTIVE, absolute, last_offset, record.offset)
                last_offset = record.offset
                yield line
    trailing_bytes = file.size_bytes - end_position
    if trailing_bytes > 0 and options.is_whole and options.start_offset == 0:
        yield f"Found {trailing_bytes} invalid bytes at the end of {file.name}"


def _heading(file: SourceFile) -> str:
    if file.kind == LOG:
        return f"Log starting offset: {file.base_offset}"
    found = snapshot_id(file.name.removesuffix(file.stage))
    if found is None:
        return "KRaft bootstrap snapshot"
    return f"Snapshot end offset: {found.end_offset}, epoch: {found.epoch}"


def batch_line(batch: RecordBatch) -> str:
    """Return a batch's header as one line; raise UnknownCodecError or, for a negative magic, CorruptBatchError."""
    if batch.magic < 0:
        raise batch.corrupt(f"Invalid magic used in LegacyRecord: {batch.magic}")
    start = f"offset: {batch.last_offset}"
    if batch.magic >= V2:
        horizon = optional_long(batch.delete_horizon_ms)
        start = (
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.record_count}"
            f" baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence}"
            f" producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
            f" partitionLeaderEpoch: {batch.partition_leader_epoch} isTransactional: {_bool(batch.is_transactional)}"
            f" isControl: {_bool(batch.is_control)} deleteHorizonMs: {horizon}"
        )
    return (
        f"{start} position: {batch.position} {batch.timestamp_type.value}: {batch.max_timestamp}"
        f" size: {batch.size_bytes} magic: {batch.magic} compresscodec: {batch.codec.name.lower()}"
        f" crc: {batch.crc} isvalid: {_bool(batch.is_valid())}"
    )


def record_lines(batch: RecordBatch, options: DumpOptions, allowance: ReadingAllowance) -> Iterator[tuple[Record, str]]:
    """Yield the records in the range of offsets, each with its line; raise CorruptDataError at damage."""
    wants_all = options.wants_all_of(batch)
    for found, metadata in _slices(batch, options, allowance):
        for record, line in zip(found.records, metadata, strict=True):
            if wants_all or options.wants_record(record):
                has_data = options.print_data and not batch.is_control
                yield record, line + _data(record, options, line) if has_data else line


def _slices(
    batch: RecordBatch, options: DumpOptions, allowance: ReadingAllowance
) -> Iterator[tuple[RecordSlice, Sequence[str]]]:
    """Yield the records in slices, with what of each is not data.

    Of a plain message without its data Kafka's tool reads no more than its sizes.
    """
    is_message = isinstance(batch, LegacyBatch) and not batch.is_wrapper and not options.print_data
    slices = batch.record_slices(headers_max=HEADERS_SHOWN_MAX, allowance=allowance)
    if is_message:
        record = Record(batch.last_offset, batch.max_timestamp, None, None)
        slices = iter([RecordSlice((record,), messages=(bytes(batch.data),))])
    for found in slices:
        if options.skip_record_metadata:
            yield found, [""] * len(found.records)
        elif isinstance(batch, LegacyBatch):
            yield found, list(_legacy_metadata(batch, found))
        else:
            yield found, _metadata(batch, found)


def _data(record: Record, options: DumpOptions, line: str) -> str:
    """Return what follows `line`, which may be empty."""
    key, payload = _decoded(record, options)
    start = " " if line else RECORD_START
    data = "" if key is None else f"{start}key: {key}"
    if payload is not None:
        data += f"{start if key is None else ' '}payload: {payload}"
    return data


def _decoded(record: Record, options: DumpOptions) -> tuple[str | None, str | None]:
    """Return the texts of a record's key and value, None where nothing is printed."""
    if options.metadata:
        return None, metadata_payload(record, hides_secrets=options.hides_secrets)
    if options.topic_decoder is not None:
        return decoded(record, options.topic_decoder)
    key = None if record.key is None else shown(record.key, options.key_decoder)
    return key, None if record.value is None else shown(record.value, options.value_decoder)


def _metadata(batch: RecordBatch, found: RecordSlice) -> list[str]:
    """Return of each record what is not data."""
    name = batch.timestamp_type.value  # Asked once: an enumeration's attribute costs as much as half the line.
    records = found.records
    lines = [
        f"{RECORD_START}offset: {record.offset} {name}: {record.timestamp}"
        f" keySize: {-1 if record.key is None else len(record.key)}"
        f" valueSize: {-1 if record.value is None else len(record.value)}"
        f" sequence: {record.sequence} headerKeys: [{','.join([header.name for header in record.headers])}]"
        for record in records
    ]
    for row, hidden in found.hidden_headers.items():
        lines[row] = f"{lines[row][:-1]},... {hidden:,} more are not shown]"
    if batch.is_control:
        return [f"{line} {_control(record)}" for line, record in zip(lines, records, strict=True)]
    return lines


def _legacy_metadata(batch: LegacyBatch, found: RecordSlice) -> Iterator[str]:
    """Yield what is printed of each message, its own checksum included."""
    name = batch.timestamp_type.value
    for record, data in zip(found.records, found.messages, strict=True):
        message = LegacyBatch(memoryview(data))
        key_size, value_size = message.stored_sizes()
        yield (
            f"{RECORD_START}offset: {record.offset} {name}: {record.timestamp} keySize: {key_size}"
            f" valueSize: {value_size} isValid: {_bool(message.is_valid())} crc: {message.crc}"
        )


def _control(record: Record) -> str:
    marker = marker_of(record)
    if marker is not None:
        return f"endTxnMarker: {marker.control_type.name} coordinatorEpoch: {marker.coordinator_epoch}"
    assert record.key is not None
    control = decode_control(record)
    if control.type is ControlType.LEADER_CHANGE:
        return f"LeaderChange: {control_json(control)}"
    if control.type in CONTROL_SCHEMAS:
        return f"{CONTROL_SCHEMAS[control.type].name} {control_json(control)}"
    return f"controlType: {control_type(record.key).name}({int.from_bytes(record.key[2:4], 'big', signed=True)})"


def _bool(value: bool) -> str:
    return str(value).lower()
