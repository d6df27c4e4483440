"""Segments for the tests of kafka_log: layouts of tiered storage made from a log directory, and an oracle of rows."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from log.batches.batch import RecordBatch
from log.batches.in_buffer import batches_in
from log.record import ControlType, EndTransactionMarker, TimestampType
from spark_analysis.data_sources.log_listing import log_segments
from spark_analysis.data_sources.log_rows import LogRequest, segment_batches
from spark_analysis.data_sources.options import PERMISSIVE
from spark_analysis.tables.schemas import LOG_TABLES

TOPIC_ID: Final = "lZ6vvmajTWKDBUTV6SQAtQ"
SEGMENT_ID: Final = "adh9f8BMS4anaUnD8KWfWg"
TYPES: Final = {TimestampType.CREATE_TIME: 0, TimestampType.LOG_APPEND_TIME: 1}
ABORT: Final = EndTransactionMarker(ControlType.ABORT, 0).key()


def rows(*paths: object, table: str = "records", mode: str = PERMISSIVE, **more: Any) -> list[dict[str, Any]]:
    """Return all rows of the segments below the paths."""
    chosen = next(each for each in LOG_TABLES if each.name == table)
    request = LogRequest(chosen, chosen.column_names, mode, **more)
    segments = [one for one in log_segments([str(path) for path in paths]) if request.wanted.wants_segment(one)]
    schema = pa.schema([(field.name, field.type) for field in chosen.arrow_schema()])
    return pa.Table.from_batches(list(segment_batches(request, segments)), schema).to_pylist()


def expected(folder: Path, batches: Iterable[tuple[Path, RecordBatch]] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a log directory's folder, read record by record."""
    return [
        {
            "offset": record.offset,
            "timestamp_ms": record.timestamp,
            "timestamp_type": TYPES[batch.timestamp_type],
            "key": record.key,
            "value": record.value,
            "headers": [{"key": header.name, "value": header.value} for header in record.headers],
            "producer_id": batch.producer_id,
            "producer_epoch": batch.producer_epoch,
            "sequence": record.sequence,
            "is_transactional": batch.is_transactional,
            "is_control": batch.is_control,
            "codec": batch.codec.name.lower(),
            "leader_epoch": batch.partition_leader_epoch,
            "batch_base_offset": batch.base_offset,
            "batch_position": batch.position,
            "value_size_bytes": -1 if record.value is None else len(record.value),
            "source": str(path),
        }
        for path, batch in (batches_of(folder) if batches is None else batches)
        for record in batch.records()
    ]


def batches_of(folder: Path) -> list[tuple[Path, RecordBatch]]:
    """Return every batch of a folder's segments with its file, in order."""
    return [(path, batch) for path in sorted(folder.glob("*.log")) for batch in batches_in(path.read_bytes())]


def committed(folder: Path) -> list[tuple[Path, RecordBatch]]:
    """Return the batches that a read_committed consumer gets, found by following each transaction to its marker."""
    kept: dict[int, tuple[Path, RecordBatch]] = {}
    opened: dict[int, list[int]] = {}
    for place, (path, batch) in enumerate(batches_of(folder)):
        if batch.is_control:
            held = opened.pop(batch.producer_id, [])
            if next(iter(batch.records())).key == ABORT:
                for each in held:
                    del kept[each]
            continue
        kept[place] = path, batch
        if batch.is_transactional:
            opened.setdefault(batch.producer_id, []).append(place)
    stable = min((held[0] for held in opened.values()), default=len(kept) * 1000)
    return [found for place, found in kept.items() if place < stable]


def tier(folder: Path, root: Path, *, topic: str = "topic", compressed: bool = True, chunk_bytes: int = 1000) -> Path:
    """Copy the segments of a folder to the layout of tiered storage in chunks, with indexes and manifests."""
    out = root / f"{topic}-{TOPIC_ID}" / "0"
    out.mkdir(parents=True)
    for path in sorted(folder.glob("*.log")):
        data, codec = path.read_bytes(), pa.Codec("zstd")
        chunks = [data[start : start + chunk_bytes] for start in range(0, len(data), chunk_bytes)]
        stored = [codec.compress(chunk, asbytes=True) if compressed else chunk for chunk in chunks]
        name = out / f"{path.stem}-{SEGMENT_ID}"
        name.with_suffix(".log").write_bytes(b"".join(stored))
        index: dict[str, Any] = {"originalChunkSize": chunk_bytes, "originalFileSize": len(data)}
        if compressed:
            index |= {"type": "variable", "transformedChunks": packed([len(each) for each in stored])}
        else:
            index |= {
                "type": "fixed",
                "transformedChunkSize": chunk_bytes,
                "finalTransformedChunkSize": len(stored[-1]),
            }
        aborted = path.with_suffix(".txnindex")
        before, txn = b"offsets", aborted.read_bytes() if aborted.exists() else b""
        name.with_suffix(".indexes").write_bytes(before + txn)
        place = {"position": len(before), "size": len(txn)} if txn else None
        manifest = {"version": "1", "chunkIndex": index, "compression": compressed}
        manifest |= {"segmentIndexes": {"offset": {"position": 0, "size": len(before)}, "transaction": place}}
        name.with_suffix(".rsm-manifest").write_text(json.dumps(manifest))
    return out


def packed(sizes: list[int]) -> str:
    """Return sizes in the code of a manifest: count, base, width, differences, the last size."""
    if len(sizes) == 1:
        return base64.b64encode(struct.pack(">ii", 1, sizes[0])).decode()
    base = min(sizes[:-1])
    width = max((size - base).bit_length() + 7 for size in sizes[:-1]) // 8 or 1
    held = b"".join((size - base).to_bytes(width, "big") for size in sizes[:-1])
    return base64.b64encode(struct.pack(">iib", len(sizes), base, width) + held + struct.pack(">i", sizes[-1])).decode()
