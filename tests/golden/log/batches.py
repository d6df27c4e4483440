"""Golden cases of kind `batches` and `bitflips`: batches from records, records from batches, and damage.

The file of a case is read, by the careful reader and as columns; its batches are built from the case's input as well,
to be the same bytes where nothing is compressed and the same content where the compressor decides.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from broker.errors import CorruptDataError
from log.batches.batch import RecordBatch
from log.batches.in_buffer import BatchReader, batches_in
from log.batches.scan import scan
from log.record import NO_SEQUENCE, ControlType, Record, control_type, marker_of
from tests.golden.log.cases import Json
from tests.golden.log.states import batch_bytes

DECIDED_BY_THE_COMPRESSOR: Final = frozenset({"position", "sizeInBytes", "crc"})


def run(case: Mapping[str, Json], folder: Path) -> str | None:
    """Return the first difference, or None."""
    if case["kind"] == "bitflips":
        return _run_bitflips(case, (folder / case["file"]).read_bytes())
    expected = case["expected"]
    data = (folder / expected["file"]).read_bytes()
    difference = _first_difference(expected["batches"], [batch_json(batch) for batch in batches_in(data)])
    if difference is None:
        difference = _columns_difference(data)
    if difference is None and "input" in case:
        difference = _built_difference(case["input"]["batches"], expected, data)
    return difference


def batch_json(batch: RecordBatch) -> Json:
    """Return a batch as cases write a decoded one."""
    answer: dict[str, Json] = {
        "position": batch.position,
        "sizeInBytes": batch.size_bytes,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "nextOffset": batch.next_offset,
        "magic": batch.magic,
        "attributes": batch.attributes,
        "crc": batch.crc,
        "valid": batch.is_valid(),
        "compression": batch.codec.label,
        "timestampType": batch.timestamp_type.value,
        "maxTimestamp": batch.max_timestamp,
    }
    if batch.magic >= 2:
        answer |= {
            "lastOffsetDelta": batch.last_offset_delta,
            "baseTimestamp": batch.base_timestamp,
            "count": batch.record_count,
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "baseSequence": batch.base_sequence,
            "lastSequence": batch.last_sequence,
            "partitionLeaderEpoch": batch.partition_leader_epoch,
            "transactional": batch.is_transactional,
            "control": batch.is_control,
            "deleteHorizonMs": batch.delete_horizon_ms,
        }
    answer["records"] = [_record_json(record, is_control=batch.is_control) for record in batch.records()]
    return answer


def _record_json(record: Record, *, is_control: bool) -> Json:
    answer: dict[str, Json] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _encoded(record.key),
        "value": _encoded(record.value),
    }
    if record.sequence != NO_SEQUENCE:
        answer["sequence"] = record.sequence
    if record.headers:
        answer["headers"] = [[header.name, _encoded(header.value)] for header in record.headers]
    if is_control:
        answer["controlType"] = control_type(record.key).name
        marker = marker_of(record)
        if marker is not None and marker.control_type is not ControlType.UNKNOWN:
            answer["coordinatorEpoch"] = marker.coordinator_epoch
    return answer


def _encoded(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _first_difference(expected: list[Json], found: list[Json]) -> str | None:
    for index, (wanted, got) in enumerate(zip(expected, found, strict=False)):
        for name in sorted(wanted.keys() | got.keys()):
            if wanted.get(name) != got.get(name):
                return f"batch {index}: {name} is {got.get(name)!r:.200}; expected {wanted.get(name)!r:.200}"
    if len(expected) != len(found):
        return f"{len(found)} batches; expected {len(expected)}"
    return None


def _columns_difference(data: bytes) -> str | None:
    """Compare the fast reader with the careful one."""
    careful = [record for batch in batches_in(data) for record in batch.records()]
    fast = [columns.record(row) for columns in scan(data) for row in range(len(columns))]
    for index, (wanted, got) in enumerate(zip(careful, fast, strict=False)):
        if wanted != got:
            return f"record {index}: the columns hold {got!r:.200}; expected {wanted!r:.200}"
    return None if len(careful) == len(fast) else f"{len(fast)} records in columns; expected {len(careful)}"


def _built_difference(given: list[Json], expected: Json, data: bytes) -> str | None:
    built = [batch_bytes(each) for each in given]
    whole = b"".join(built)
    if all(each["compression"] == "none" for each in given):
        digest = hashlib.sha256(whole).hexdigest()
        return None if digest == expected["sha256"] else f"built bytes have sha256 {digest}"
    found = [_content(batch_json(batch)) for batch in batches_in(whole)]
    difference = _first_difference([_content(each) for each in expected["batches"]], found)
    if difference is not None:
        return f"built: {difference}"
    first = 0
    for index, (each, piece) in enumerate(zip(given, built, strict=True)):
        position = expected["batches"][first]["position"]
        if each["compression"] == "none" and data[position : position + len(piece)] != piece:
            return f"built: input {index}, which is not compressed, has other bytes"
        first += sum(1 for _ in batches_in(piece))
    return None


def _content(batch: Json) -> Json:
    return {name: value for name, value in batch.items() if name not in DECIDED_BY_THE_COMPRESSOR}


def _run_bitflips(case: Mapping[str, Json], data: bytes) -> str | None:
    for row in case["outcomes"]:
        for bit, expected in enumerate(row[1:]):
            damaged = bytearray(data)
            damaged[row[0]] ^= 1 << bit
            found = _outcome(damaged)
            if found != expected:
                return f"byte {row[0]}, bit {bit}: {found}; expected {expected}"
    return None if len(case["outcomes"]) == len(data) else f"{len(case['outcomes'])} rows for {len(data)} bytes"


def _outcome(data: bytearray) -> str:
    try:
        count = 0
        for batch in batches_in(data, reader=BatchReader.MEMORY):
            batch.ensure_valid()
            batch.records()
            count += 1
    except CorruptDataError as error:
        return str(getattr(error, "kafka_class", "")).rpartition(".")[2]
    return "ok" if count else "none"
