"""Write log files as Parquet tables, for `brokerside log dump --out`.

What it decides: the columns of three tables: batches, records, and bytes that could not be read.

Goals, most important first: (1) columns all the way: the arrays of a scan go to Parquet without a Python object a
record; (2) bounded memory: a row group is one chunk of the scan or several small ones; (3) a file explains its columns:
the comments are field metadata.

Constraints: the folder must be empty or new, and is so again if the tables cannot be finished. Damage is stepped over
and stands in the table `damages`, which may be empty. A name that is not UTF-8 has its other bytes escaped.

How: keys, values and headers are gathered by a compiled loop (log/batches/arrow_columns.py); values are bytes, nulls
null. Headers of records are a list of name and value. Values are most of the bytes: Snappy takes half of Zstandard's
CPU time for them, and they get no dictionary, which none of them would fill; offsets and timestamps are differences.

Example: in DuckDB, select decode(key), count(*) from 'tables/records.parquet' group by 1 order by 2 desc

Left out: Spark's own column metadata; Spark reads the files all the same.

Source: Kafka's record batch, for the fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from broker.errors import InputError
from broker.wording import counted
from broker.workers import Advance
from log.batches.arrow_columns import bytes_column, headers_column
from log.batches.record_columns import HeaderColumns, RecordColumns
from log.batches.scan import ScanOptions, scan
from log.codecs.compression import CODEC_MASK, Codec
from log.errors import StorageError
from log.record import CONTROL_BIT, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from log.segments.file_names import LOG
from log.tools.problems import Problems
from log.tools.sources import SourceFile, SourceFolder
from spark_analysis.tables.repeated import repeated

ROW_GROUP_ROWS: Final = 1 << 17
_HEADER_NAMES: Final = ("name", "value")
_HEADERS: Final = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
_CODECS: Final = np.array([Codec(code).name.lower() if code < len(Codec) else None for code in range(CODEC_MASK + 1)])


def _field(name: str, kind: pa.DataType, comment: str, *, nullable: bool = False) -> pa.Field[Any]:
    return pa.field(name, kind, nullable=nullable, metadata={"comment": comment})


_FILE: Final = _field("file", pa.string(), "Name of the file, as it was given")
BATCHES: Final = pa.schema(
    [
        _FILE,
        _field("position", pa.int64(), "Where the batch begins in its file, in bytes"),
        _field("size_bytes", pa.int32(), "Bytes of the batch, header and all"),
        _field("base_offset", pa.int64(), "First offset; of a message before magic 2 its own, of a wrapper the last"),
        _field("last_offset", pa.int64(), "Last offset"),
        _field("magic", pa.int8(), "Format: 0, 1 or 2"),
        _field("codec", pa.string(), "Compression; null where the code is unknown", nullable=True),
        _field("is_log_append_time", pa.bool_(), "Whether the leader, not the producer, set the timestamps"),
        _field("is_transactional", pa.bool_(), "Whether the batch is part of a transaction"),
        _field("is_control", pa.bool_(), "Whether its record is a control record"),
        _field("crc", pa.uint32(), "Checksum as stored"),
        _field("partition_leader_epoch", pa.int32(), "Leader epoch; -1 for none"),
        _field("max_timestamp", pa.int64(), "Largest timestamp, ms since 1970; -1 for none"),
        _field("producer_id", pa.int64(), "Producer; -1 for none"),
        _field("producer_epoch", pa.int16(), "Epoch of the producer; -1 for none"),
        _field("base_sequence", pa.int32(), "Sequence of the first record; -1 for none"),
        _field("record_count", pa.int32(), "Records; 1 for a message before magic 2"),
    ]
)
RECORDS: Final = pa.schema(
    [
        _FILE,
        _field("batch_position", pa.int64(), "Where the record's batch begins in its file"),
        _field("offset", pa.int64(), "Offset"),
        _field("timestamp", pa.int64(), "ms since 1970; -1 for none"),
        _field("is_control", pa.bool_(), "Whether this is a control record"),
        _field("key", pa.binary(), "Key, null for none", nullable=True),
        _field("value", pa.binary(), "Value, null for none", nullable=True),
        _field("headers", _HEADERS, "Headers, in order"),
    ]
)
DAMAGES: Final = pa.schema(
    [
        _FILE,
        _field("position", pa.int64(), "Where reading stopped"),
        _field("size_bytes", pa.int64(), "Bytes that were passed over"),
        _field("base_offset", pa.int64(), "Offset that the damaged batch claims", nullable=True),
        _field("what", pa.string(), "What is wrong"),
    ]
)


_LEAVES: Final = (*(name for name in RECORDS.names if name != "headers"), *(
    f"headers.list.element.{name}" for name in _HEADER_NAMES
))  # fmt: skip
_OF_VALUES: Final = frozenset({"value", "headers.list.element.value"})
_RISING: Final = ("offset", "timestamp")
PLAIN: Final[dict[str, Any]] = {"compression": "zstd"}
OF_RECORDS: Final[dict[str, Any]] = {
    "compression": {name: "snappy" if name in _OF_VALUES else "zstd" for name in _LEAVES},
    "use_dictionary": ["file", "batch_position", "headers.list.element.name"],
    "column_encoding": dict.fromkeys(_RISING, "DELTA_BINARY_PACKED"),
    "write_statistics": [name for name in _LEAVES if name not in _OF_VALUES],
    "write_batch_size": 1 << 16,
}
"""How the columns of records are written."""


@attrs.define(eq=False)
class _Table:
    """One Parquet file, written in row groups."""

    path: Path
    schema: pa.Schema
    options: dict[str, Any]
    row_count: int = 0
    _held: list[pa.RecordBatch] = attrs.field(factory=list)
    _held_count: int = 0
    _writer: Any = None

    def append(self, columns: dict[str, Any]) -> None:
        """Append equally long columns."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(self.path, self.schema, **self.options)
        arrays = [
            value if isinstance(value, pa.Array) else pa.array(value, field.type)
            for field, value in ((field, columns[field.name]) for field in self.schema)
        ]
        batch = pa.record_batch(arrays, schema=self.schema)
        self._held.append(batch)
        self._held_count += batch.num_rows
        self.row_count += batch.num_rows
        if self._held_count >= ROW_GROUP_ROWS:
            self._flush()

    def close(self) -> str:
        """Write what is held and return a line about the table."""
        if self._writer is None:
            self._writer = pq.ParquetWriter(self.path, self.schema, **self.options)
        self._flush()
        self._writer.close()
        return f"{self.path}: {counted(self.row_count, 'row')}"

    def discard(self) -> None:
        """Remove what was written."""
        with suppress(OSError):  # Closing writes what a full disk does not take.
            if self._writer is not None:
                self._writer.close()
        self.path.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._held:
            table = pa.Table.from_batches(self._held, self.schema)
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._held, self._held_count = [], 0


def write_log_tables(
    folders: Sequence[SourceFolder], out: Path, problems: Problems, advance: Advance
) -> tuple[str, ...]:
    """Write the segments of folders as batches.parquet, records.parquet and damages.parquet; return a line for each.

    Damage is added to `problems` too, and the bytes read to `advance`. Raises InputError if `out` is not empty,
    StorageError if it cannot be written to.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise InputError("is not empty; tables go to a new folder", source=str(out))
        names = {"batches": (BATCHES, PLAIN), "records": (RECORDS, OF_RECORDS), "damages": (DAMAGES, PLAIN)}
        tables = {name: _Table(out / f"{name}.parquet", *given) for name, given in names.items()}
        try:
            for file in (file for folder in folders for file in folder.of_kind(LOG)):
                _write_file(file, tables, problems, advance)
            return tuple(table.close() for table in tables.values())
        except BaseException:  # An interrupt too.
            for table in tables.values():
                table.discard()
            raise
    except OSError as refusal:
        raise StorageError("write to", str(out), refusal.strerror or str(refusal)) from refusal


def _write_file(file: SourceFile, tables: dict[str, _Table], problems: Problems, advance: Advance) -> None:
    name = file.shown.encode("utf-8", "backslashreplace").decode("utf-8")
    position = -1
    read_to = 0
    for chunk in scan(file.view(), options=ScanOptions(keep_going=True), source=file.shown):
        first = int(np.searchsorted(chunk.batches.position, position, side="right"))
        batches = chunk.batches.rows(first, len(chunk.batches))
        if len(batches):
            tables["batches"].append(_batch_columns(name, batches))
            position = int(batches.position[-1])
            advance(position - read_to)
            read_to = position
        if len(chunk):
            tables["records"].append(_record_columns(name, chunk))
        for damage in chunk.damages:
            problems.pass_over(file.shown, damage)
        if chunk.damages:
            tables["damages"].append(
                {
                    "file": [name] * len(chunk.damages),
                    "position": [damage.position for damage in chunk.damages],
                    "size_bytes": [damage.size_bytes for damage in chunk.damages],
                    "base_offset": [damage.base_offset for damage in chunk.damages],
                    "what": [damage.what for damage in chunk.damages],
                }
            )


def _batch_columns(name: str, batches: HeaderColumns) -> dict[str, Any]:
    plain = {field: getattr(batches, field) for field in BATCHES.names if hasattr(batches, field)}
    bits = np.where(batches.magic >= 2, batches.attributes, batches.attributes & 0x0F)
    return {
        **plain,
        "file": repeated(name, len(batches)),
        "codec": pa.array(_CODECS[bits & CODEC_MASK].tolist(), pa.string()),
        "is_log_append_time": (bits & TIMESTAMP_TYPE_BIT) != 0,
        "is_transactional": (bits & TRANSACTIONAL_BIT) != 0,
        "is_control": (bits & CONTROL_BIT) != 0,
    }


def _record_columns(name: str, chunk: RecordColumns) -> dict[str, Any]:
    is_control = (chunk.batches.magic >= 2) & (chunk.batches.attributes & CONTROL_BIT != 0)
    return {
        "file": repeated(name, len(chunk)),
        "batch_position": chunk.batches.position[chunk.batch_index],
        "offset": chunk.offset,
        "timestamp": chunk.timestamp,
        "is_control": is_control[chunk.batch_index],
        "key": bytes_column(chunk.data, chunk.key_position, chunk.key_size),
        "value": bytes_column(chunk.data, chunk.value_position, chunk.value_size),
        "headers": headers_column(chunk, _HEADER_NAMES),
    }
