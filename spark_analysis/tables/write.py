"""Write and read result tables: Parquet folders that Spark, pyarrow and DuckDB read alike.

A table is whole or not read: its folder holds `_SUCCESS`, which Spark's writer and this module write last. A folder
that neither wrote is never replaced. What is made without Spark is written by pyarrow, into a hidden folder beside the
table's place, which is then renamed. Comments and units are in the files as Spark column metadata under `comment` and
`unit`; the first column has the name of the table, too, by which a later run knows that the folder is ours. Files of
pyarrow have them also as Arrow field metadata, and as the JSON in the file's key `brokerside.columns`.

Source: Spark 4.3.0 ParquetReadSupport and DataType.json for the key of Spark's own schema.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from broker.errors import InputError, UsageError
from spark_analysis.tables.batching import refuse_nulls
from spark_analysis.tables.columns import Table
from spark_analysis.tables.place import TABLES_FOLDER, table_path
from spark_analysis.tables.scan import WHOLE_NAME, parquet_files, scan_table

ROW_GROUP_ROWS: Final = 1 << 18  # Some 10 MB of these tables: bounds the writer's memory, long enough to compress.

_PART: Final = re.compile(r"part-\d{5}[-.].*parquet")
_OURS: Final = re.compile(rf"{_PART.pattern}|{WHOLE_NAME}|_temporary|\..*\.crc")  # Hadoop keeps checksums in .crc.
_COLUMNS: Final = b"brokerside.columns"
_TABLE: Final = "table"
_SPARK: Final = b"org.apache.spark.sql.parquet.row.metadata"
_SPARK_TYPES: Final[dict[str, Any]] = {
    "int": "integer",
    "ints": {"containsNull": True, "elementType": "integer", "type": "array"},
    "strings": {"containsNull": True, "elementType": "string", "type": "array"},
}


class TableFile:
    """Write rows of a table to a Parquet file, in row groups that do not depend on the batches."""

    def __init__(self, folder: Path, table: Table) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._table = folder, table
        self._held: list[pa.RecordBatch] = []
        self._writer: Any = pq.ParquetWriter(folder / "part-00000.parquet", file_schema(table), compression="zstd")

    def append(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._held.append(batch)
        while sum(each.num_rows for each in self._held) >= ROW_GROUP_ROWS:
            rows = pa.Table.from_batches(self._held)
            self._write_group(rows.slice(0, ROW_GROUP_ROWS))
            self._held = rows.slice(ROW_GROUP_ROWS).to_batches()

    def close(self) -> None:
        """Write the rows that are still in memory, close the file and mark the folder as whole."""
        if self._held:
            self._write_group(pa.Table.from_batches(self._held))
        self._writer.close()
        (self._folder / WHOLE_NAME).touch()

    def _write_group(self, rows: pa.Table) -> None:
        whole = rows.combine_chunks().cast(self._table.arrow_schema())
        metadata = file_schema(self._table).metadata
        self._writer.write_table(whole.replace_schema_metadata(metadata), row_group_size=rows.num_rows)


@contextlib.contextmanager
def hidden_folder(out: Path, name: str) -> Iterator[Path]:
    """Make a hidden folder of this name beside the tables under `out`, and remove it with all that is left in it."""
    root = (out / TABLES_FOLDER / f".{name}").absolute()
    made = [folder for folder in (out, out / TABLES_FOLDER) if not folder.exists()]
    if root.is_symlink():
        root.unlink()
    shutil.rmtree(root, ignore_errors=True)  # What an interrupted run left behind under a name that only we use.
    try:
        root.mkdir(parents=True)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # It holds tables, as it should.
                folder.rmdir()


def publish(fresh: Path, place: Path) -> None:
    """Move a whole table from the hidden folder to its place, instead of the one that is there."""
    stale = fresh.with_name(f"{fresh.name}.old")
    if place.exists():
        place.rename(stale)
    fresh.rename(place)
    shutil.rmtree(stale, ignore_errors=True)


def check_places(tables: Sequence[Table], out: Path, *, overwrite: bool) -> None:
    """Raise UsageError if the place of a table is taken: by something else, or by one of ours without `overwrite`."""
    for table in tables:
        place = table_path(out, table)
        if place.exists() and not _is_ours(place, table.name):
            raise UsageError(f"{place} holds something else than table {table.name}; it is left as it is")
        if place.exists() and not overwrite:
            raise UsageError(f"{place} exists already; choose another folder, or allow to overwrite it")


def arrow_to_table(rows: pa.Table, table: Table, out: Path, *, overwrite: bool = False) -> int:
    """Write `rows`, made in this process, as `table` under `out`, in their order; return the number of rows.

    Raises `UsageError` when columns differ from the schema, when a null stands in a column that may not be null, or
    when the place is taken: by something else, or by an earlier run without `overwrite`.
    """
    found, wanted = _shown(rows.schema), _shown(table.arrow_schema())
    if found != wanted:
        raise UsageError(f"table {table.name} has the columns {wanted}; not {found}")
    refuse_nulls(table, rows)
    check_places((table,), out, overwrite=overwrite)
    with hidden_folder(out, table.name) as root:
        file = TableFile(root / table.name, table)
        for batch in rows.to_batches():
            file.append(batch)
        file.close()
        publish(root / table.name, table_path(out, table))
    return rows.num_rows


def remove_table(out: Path, name: str) -> None:
    """Remove the table of this name that an earlier run left under `out`; leave what this module did not write."""
    place = table_path(out, Table(name, "", ()))
    if _is_ours(place, name):
        shutil.rmtree(place, ignore_errors=True)


def read_table(out: Path, table: Table, *, columns: Sequence[str] | None = None, where: Any = None) -> pa.Table:
    """Return `table` as it was written: only `columns`, if given, and only the rows for which `where` is true.

    Raises `InputError` when `out` has no such table, or the table lacks one of these columns.
    """
    folder = table_path(out, table)
    parts = parquet_files(folder)
    if not parts:
        raise InputError(f"there is no table {table.name}", source=str(folder))
    schema = table.arrow_schema()
    for part in parts:
        if [(field.name, field.type) for field in pq.read_schema(part)] != [(one.name, one.type) for one in schema]:
            raise InputError(f"its columns are not those of table {table.name}", source=str(part))
    if where is None:
        return scan_table(folder, table, columns=columns)
    names = list(table.column_names if columns is None else columns)
    read = pq.read_table(parts, columns=names, filters=where, partitioning=None)
    wanted = pa.schema([schema.field(name) for name in names])
    return read.select(names).replace_schema_metadata(None).cast(wanted)


def _meaning(comment: str, unit: str) -> dict[str, str]:
    return {"comment": comment} | ({"unit": unit} if unit else {})


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def spark_schema_json(table: Table) -> str:
    """Return Spark's schema of `table` in Spark's JSON: types and nulls, comment and unit as column metadata.

    The metadata of the first column name the table, too.
    """
    fields = [
        {
            "metadata": _meaning(column.comment, column.unit) | ({} if place else {_TABLE: table.name}),
            "name": column.name,
            "nullable": column.nullable,
            "type": _SPARK_TYPES.get(column.type, column.type),
        }
        for place, column in enumerate(table.columns)
    ]
    return json.dumps({"fields": fields, "type": "struct"}, separators=(",", ":"), sort_keys=True)


@functools.cache
def file_schema(table: Table) -> pa.Schema:
    """Return the schema of `table`'s files: Arrow's, with the meanings that Spark and others read."""
    meanings = {column.name: _meaning(column.comment, column.unit) for column in table.columns}
    return table.arrow_schema().with_metadata(
        {_COLUMNS: json.dumps(meanings, ensure_ascii=False), _SPARK: spark_schema_json(table)}
    )


def _is_ours(place: Path, name: str) -> bool:
    """Whether `place` is a folder of nothing but this table's files."""
    if place.is_symlink() or not place.is_dir() or not all(_OURS.fullmatch(path.name) for path in place.iterdir()):
        return False
    try:
        return all(_table_of(path) == name for path in place.iterdir() if _PART.fullmatch(path.name))
    except (OSError, pa.ArrowInvalid):
        return False


def _table_of(path: Path) -> str | None:
    """Return the name of the table that a Parquet file belongs to; None if it is not ours."""
    schema = json.loads((pq.read_schema(path).metadata or {}).get(_SPARK, b'{"fields":[{}]}'))
    found: str | None = schema["fields"][0].get("metadata", {}).get(_TABLE)
    return found
