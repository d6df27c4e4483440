"""Write log files as Parquet tables, for `brokerside log dump --out`: batches, records, and bytes that were not read.

The arrays of a scan go to Parquet without a Python object a record; a row group is one chunk of the scan, several small
ones, or a piece of a large one. The folder must be empty or new, and is so again if the tables cannot be finished.
Damage is passed over, to the table `damages`. Values are most of the bytes: Snappy takes half of Zstandard's CPU time
for them, and they get no dictionary, which none of them would fill; offsets and timestamps are differences.
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

from broker.cluster import Int32Array, Int64Array
from broker.errors import InputError
from broker.units import MIB
from broker.wording import counted
from broker.workers import Advance
from log.batches.arrow_columns import bytes_column, headers_column
from log.batches.record_columns import ByteArray, HeaderColumns, RecordColumns
from log.batches.scan import ScanOptions, scan
from log.codecs.compression import CODEC_MASK, Codec
from log.errors import StorageError
from log.record import CONTROL_BIT, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from log.segments.file_names import LOG
from log.tools.findings import Problems
from log.tools.sources import SourceFile, SourceFolder
from spark_analysis.tables.lists import repeated
from spark_analysis.tables.schemas import FILE_BATCHES, FILE_DAMAGES, FILE_RECORDS

ROW_GROUP_ROWS: Final = 1 << 17
ROW_GROUP_BYTES: Final = 32 * MIB
"""How many bytes of Arrow a table holds: of 131,072 rows, 256 bytes each; fewer rows of more make a row group too."""
_HEADER_NAMES: Final = ("name", "value")
_CODECS: Final = np.array([Codec(code).name.lower() if code < len(Codec) else None for code in range(CODEC_MASK + 1)])


BATCHES, RECORDS, DAMAGES = (table.arrow_schema() for table in (FILE_BATCHES, FILE_RECORDS, FILE_DAMAGES))
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
    _held_bytes: int = 0
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
        self._held_bytes += batch.nbytes
        self.row_count += batch.num_rows
        if self._held_count >= ROW_GROUP_ROWS or self._held_bytes >= ROW_GROUP_BYTES:
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
        self._held, self._held_count, self._held_bytes = [], 0, 0


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
        for piece in chunk.pieces(ROW_GROUP_BYTES):
            tables["records"].append(_record_columns(name, piece))
            del piece
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
        del chunk  # Before the scan decompresses the next batch.


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
        "key": _bytes(chunk.data, chunk.key_position, chunk.key_size),
        "value": _bytes(chunk.data, chunk.value_position, chunk.value_size),
        "headers": headers_column(chunk, _HEADER_NAMES),
    }


def _bytes(data: ByteArray, positions: Int64Array, sizes: Int32Array) -> Any:
    """Return keys or values as an Arrow column; a single one as large as a row group is not copied."""
    start, size = int(positions[0]), int(sizes[0])
    if size < ROW_GROUP_BYTES:
        return bytes_column(data, positions, sizes)
    assert len(sizes) == 1, len(sizes)
    ends = pa.py_buffer(np.array((0, size), np.int32).data)
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(data[start : start + size].data)])
