"""Print a log's files as JSON, one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from broker.errors import InputError
from log.batches.batch import RecordBatch
from log.metadata.json_text import control_json, payload_row
from log.metadata.reading import SNAPSHOT
from log.metadata.records import decode_control
from log.partition.producer_entry import parse_snapshot
from log.record import Record, control_type, marker_of
from log.segments.file_names import LOG, OFFSET_INDEX, PRODUCER_SNAPSHOT, TIME_INDEX, TXN_INDEX
from log.segments.txn_index import aborted_transactions
from log.storage.checkpoints import LEADER_EPOCH_FILE, read_epoch_checkpoint, read_offset_checkpoint
from log.storage.metadata_files import (
    META_PROPERTIES_FILE,
    PARTITION_METADATA_FILE,
    read_clean_shutdown,
    read_meta_properties,
    read_partition_metadata,
)
from log.tools.dump_options import HEADERS_SHOWN_MAX, DumpOptions, shown, wanted_batches
from log.tools.dump_topics import decoded
from log.tools.findings import Problems
from log.tools.index_entries import IndexEntries
from log.tools.sources import OFFSET_CHECKPOINTS, SMALL_FILES, SourceFile

_INDEX_FIELDS: Final = {
    OFFSET_INDEX: ("offset-index-entry", "offset", "position"),
    TIME_INDEX: ("time-index-entry", "timestamp", "offset"),
}
"""The type and the two fields of an index's rows."""


def file_rows(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file; raise InputError for an unknown kind of file, CorruptDataError at damage."""
    if file.kind in (LOG, SNAPSHOT):
        rows = _log_rows(file, options, problems)
    elif file.kind in _INDEX_FIELDS:
        rows = _index_rows(file)
    elif file.kind == TXN_INDEX:
        rows = _txn_index_rows(file)
    elif file.kind == PRODUCER_SNAPSHOT:
        rows = _snapshot_rows(file)
    elif file.kind in SMALL_FILES:
        rows = ({"type": file.kind.lstrip("."), **row} for row in small_file_rows(file))
    else:
        raise InputError("is not a file of a log that can be dumped", source=file.shown)
    for row in rows:
        yield {"file": file.shown, **row}


def _log_rows(file: SourceFile, options: DumpOptions, problems: Problems) -> Iterator[dict[str, Any]]:
    allowance, data = options.allowance(file), file.view()
    for batch in wanted_batches(file, options, problems):
        with problems.within_limits(file.shown, data):
            yield _batch_row(batch)
            slices = batch.record_slices(headers_max=HEADERS_SHOWN_MAX, allowance=allowance)
            for found in slices if options.deep else ():
                for row, each in enumerate(found.records):
                    if options.wants_record(each):
                        hidden = found.hidden_headers.get(row)
                        yield _record_row(batch, each, options) | ({"headersNotShown": hidden} if hidden else {})


def _batch_row(batch: RecordBatch) -> dict[str, Any]:
    return {
        "type": "batch",
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.record_count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": batch.delete_horizon_ms,
        "position": batch.position,
        "timestampType": batch.timestamp_type.value,
        "maxTimestamp": batch.max_timestamp,
        "size": batch.size_bytes,
        "magic": batch.magic,
        "compresscodec": batch.codec.name.lower(),
        "crc": batch.crc,
        "isvalid": batch.is_valid(),
    }


def _record_row(batch: RecordBatch, record: Record, options: DumpOptions) -> dict[str, Any]:
    row: dict[str, Any] = {
        "type": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
        "sequence": record.sequence,
        "keySize": _size(record.key),
        "valueSize": _size(record.value),
        "headerKeys": [header.name for header in record.headers],
    }
    if batch.is_control:
        marker = marker_of(record)
        row["controlType"] = control_type(record.key).name
        row["coordinatorEpoch"] = None if marker is None else marker.coordinator_epoch
        control = decode_control(record)
        if control.data:
            row["data"] = json.loads(control_json(control))
    elif options.metadata:
        row["payload"] = payload_row(record, hides_secrets=options.hides_secrets)
    elif options.topic_decoder is not None:
        row["key"], row["payload"] = decoded(record, options.topic_decoder)
    elif options.print_data:
        row["key"] = _shown(record.key, options.key_decoder)
        row["value"] = _shown(record.value, options.value_decoder)
        row["headers"] = [
            {"key": each.name, "value": _shown(each.value, options.value_decoder)} for each in record.headers
        ]
    return row


def _index_rows(file: SourceFile) -> Iterator[dict[str, Any]]:
    kind, key_name, value_name = _INDEX_FIELDS[file.kind]
    for key, value in IndexEntries.of(file).listed():
        yield {"type": kind, key_name: key, value_name: value}


def _txn_index_rows(file: SourceFile) -> Iterator[dict[str, Any]]:
    for aborted in aborted_transactions(file.view(), source=file.shown):
        yield {
            "type": "aborted-transaction",
            "producerId": aborted.producer_id,
            "firstOffset": aborted.first_offset,
            "lastOffset": aborted.last_offset,
            "lastStableOffset": aborted.last_stable_offset,
        }


def _snapshot_rows(file: SourceFile) -> Iterator[dict[str, Any]]:
    for entry in parse_snapshot(file.view(), source=file.shown):
        yield {
            "type": "producer",
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.current_txn_first_offset,
            "lastTimestamp": entry.last_timestamp,
            "lastSequence": entry.last_sequence,
            "lastOffset": entry.last_data_offset,
            "offsetDelta": entry.last_offset_delta,
        }


def _shown(data: bytes | None, decoder: str) -> str | None:
    return None if data is None else shown(data, decoder)


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def small_file_rows(file: SourceFile) -> Iterator[dict[str, Any]]:
    """Yield the entries of a checkpoint, properties or marker file as JSON rows; raise CheckpointError."""
    storage, path = file.storage, file.path
    if file.name in OFFSET_CHECKPOINTS:
        for key, offset in read_offset_checkpoint(storage, path).items():
            yield {"topic": key.topic, "partition": key.partition, "offset": offset}
    elif file.name == LEADER_EPOCH_FILE:
        for entry in read_epoch_checkpoint(storage, path):
            yield {"epoch": entry.epoch, "startOffset": entry.start_offset}
    elif file.name == PARTITION_METADATA_FILE:
        metadata = read_partition_metadata(storage, path)
        if metadata is not None:
            yield {"version": metadata.version, "topicId": metadata.topic_id}
    elif file.name == META_PROPERTIES_FILE:
        properties = read_meta_properties(storage, path)
        if properties is not None:
            yield {
                "version": properties.version,
                "clusterId": properties.cluster_id,
                "nodeId": properties.node_id,
                "directoryId": properties.directory_id,
            }
    else:
        yield {"brokerEpoch": read_clean_shutdown(storage, path)}


def small_file_lines(file: SourceFile) -> Iterator[str]:
    """Yield one line per entry of the file; raise CheckpointError."""
    for row in small_file_rows(file):
        yield " ".join(f"{name}: {value}" for name, value in row.items() if value is not None)
