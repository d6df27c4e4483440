"""Write and read result tables: Parquet folders that Spark, pyarrow and DuckDB read alike.

A table is whole or not there; equal rows give equal bytes; a folder that this module did not write is never replaced.
Tasks write with pyarrow, into a hidden folder beside the table's place, under names of their own attempt; the driver
gives the files of the attempts that counted their final names, in the order of tasks, and renames the folder. Comments
and units are in the file three times: as Arrow field metadata, as Spark column metadata under `comment` and `unit`,
and, for other readers, as the JSON in the file's key `brokerside.columns`.

Source: Spark 4.3.0 ParquetReadSupport and DataType.json for the key of Spark's own schema.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from broker.errors import InputError, UsageError
from spark_analysis.tables.columns import Table
from spark_analysis.tables.scan import scan_table

TABLES_FOLDER: Final = "tables"
ROW_GROUP_ROWS: Final = 1 << 18  # Some 10 MB of these tables: bounds the writer's memory, long enough to compress.
RUN_FOLDER: Final = ".run"
COUNT_FOLDER: Final = "done"

_PART: Final = re.compile(r"part-\d{5}\.parquet")
_MARK: Final = b"brokerside.table"
_COLUMNS: Final = b"brokerside.columns"
_SPARK: Final = b"org.apache.spark.sql.parquet.row.metadata"
_SPARK_TYPES: Final[dict[str, Any]] = {
    "int": "integer",
    "ints": {"containsNull": True, "elementType": "integer", "type": "array"},
    "strings": {"containsNull": True, "elementType": "string", "type": "array"},
}


@attrs.frozen
class Written:
    """Name a file that a task has written for the table of this name; `file` is its name in the hidden folder."""

    table: str
    file: str
    row_count: int


class PartFile:
    """Write a task's file of one table, in the table's folder under `root`; rows are appended in batches."""

    def __init__(self, root: Path, table: Table, name: str) -> None:
        self._table = table
        self._name = name
        self._row_count = 0
        self._group: list[pa.RecordBatch] = []
        self._group_row_count = 0
        self._schema = file_schema(table)
        self._writer: Any = pq.ParquetWriter(root / table.name / name, self._schema, compression="zstd")

    @property
    def waiting_row_count(self) -> int:
        """Return how many rows are appended and not yet written as a row group."""
        return self._group_row_count

    def append(self, batch: pa.RecordBatch) -> None:
        """Append rows; raise `UsageError` for a null in a column that may not be null."""
        for column, values in zip(self._table.columns, batch.columns, strict=True):
            if values.null_count and not column.nullable:
                raise UsageError(f"table {self._table.name}: column {column.name} may not be null")
        self._group.append(batch)
        self._group_row_count += batch.num_rows
        if self._group_row_count >= ROW_GROUP_ROWS:
            self._write_group()

    def close(self) -> Written:
        """Write the rows that are still in memory and close the file."""
        if self._group:
            self._write_group()
        self._writer.close()
        return Written(self._table.name, self._name, self._row_count)

    def _write_group(self) -> None:
        rows = pa.Table.from_batches(self._group).cast(self._table.arrow_schema())
        # One row group a call, however many rows.
        self._writer.write_table(rows.replace_schema_metadata(self._schema.metadata), row_group_size=rows.num_rows)
        self._row_count += self._group_row_count
        self._group, self._group_row_count = [], 0


def write_part(root: Path, table: Table, name: str, batches: Iterable[pa.RecordBatch]) -> Written:
    """Write the only file of `table` under `root`; equal rows give equal bytes, in batches of any size.

    Raises `UsageError` for a null in a column that may not be null.
    """
    file = PartFile(root, table, name)
    try:
        for group in _row_groups(batches):
            file.append(group)
    finally:
        written = file.close()
    return written


@attrs.frozen
class StagedRun:
    """Write the tables of a run in the hidden folder `root`, and move them to `out` one by one."""

    root: Path
    out: Path

    def done_count(self) -> int:
        """Return the number of clusters or dumps that tasks have finished; a repeated task counts again."""
        return sum(path.stat().st_size for path in (self.root / COUNT_FOLDER).iterdir())

    def keep(self, table: Table, written: Iterable[Written]) -> int:
        """Give the files of `table` their final names, in the order of tasks; return the number of rows."""
        kept = sorted((one for one in written if one.table == table.name), key=lambda one: one.file)
        folder = self.root / table.name
        for index, one in enumerate(kept or [write_part(self.root, table, "none", ())]):
            (folder / one.file).rename(folder / f"part-{index:05d}.parquet")
        for path in folder.iterdir():
            if not _PART.fullmatch(path.name):
                path.unlink()
        return sum(one.row_count for one in kept)

    def kept_rows(self, table: Table) -> pa.Table:
        """Return the rows of a kept table, without the metadata of files."""
        return scan_table(self.root / table.name, table)

    def publish(self, table: Table) -> None:
        """Move a kept table from the hidden folder to its place."""
        fresh, stale = self.root / table.name, self.root / f"{table.name}.old"
        place = table_path(self.out, table)
        if place.exists():
            place.rename(stale)
        fresh.rename(place)
        shutil.rmtree(stale, ignore_errors=True)


@contextlib.contextmanager
def staged_run(
    tables: Sequence[Table], work: Sequence[Table], out: Path, *, overwrite: bool, name: str = RUN_FOLDER
) -> Iterator[StagedRun]:
    """Open a run of `tables` in the hidden folder `name`; the tables of `work` are gone when the block ends.

    Raises `UsageError` at once when the place of one of `tables` is taken, as `arrow_to_table` does.
    """
    for table in tables:
        _check_place(table, out, overwrite)
    root = (out / TABLES_FOLDER / name).absolute()
    made = [folder for folder in (out, out / TABLES_FOLDER) if not folder.exists()]
    if root.is_symlink():
        root.unlink()
    shutil.rmtree(root, ignore_errors=True)  # What an interrupted run left behind under a name that only we use.
    try:
        for table in (*tables, *work):
            (root / table.name).mkdir(parents=True)
        (root / COUNT_FOLDER).mkdir()
        yield StagedRun(root, out)
    finally:
        shutil.rmtree(root, ignore_errors=True)
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # It holds tables, as it should.
                folder.rmdir()


def table_path(out: Path, table: Table) -> Path:
    """Return the folder of `table` under the run's folder `out`."""
    return (out / TABLES_FOLDER / table.name).absolute()


def arrow_to_table(rows: pa.Table, table: Table, out: Path, *, overwrite: bool = False) -> int:
    """Write `rows`, made in this process, as `table` under `out`, in their order; return the number of rows.

    Raises `UsageError` when columns differ from the schema, when a null stands in a column that may not be null, or
    when the place is taken: by something else, or by an earlier run without `overwrite`.
    """
    found, wanted = _shown(rows.schema), _shown(table.arrow_schema())
    if found != wanted:
        raise UsageError(f"table {table.name} has the columns {wanted}; not {found}")
    with staged_run((table,), (), out, overwrite=overwrite, name=f".{table.name}") as run:
        row_count = run.keep(table, [write_part(run.root, table, "00000", rows.to_batches())])
        run.publish(table)
    return row_count


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
    parts = _parts(folder)
    if not parts:
        raise InputError(f"there is no table {table.name}", source=str(folder))
    schema = table.arrow_schema()
    for part in parts:
        if not pq.read_schema(part).equals(schema):
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


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the rows in batches of exactly `ROW_GROUP_ROWS`, the last of what is left."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        while sum(each.num_rows for each in held) >= ROW_GROUP_ROWS:
            rows = pa.Table.from_batches(held)
            yield from rows.slice(0, ROW_GROUP_ROWS).combine_chunks().to_batches()
            held = rows.slice(ROW_GROUP_ROWS).to_batches()
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def spark_schema_json(table: Table) -> str:
    """Return Spark's schema of `table` in Spark's JSON: types and nulls, comment and unit as column metadata."""
    fields = [
        {
            "metadata": _meaning(column.comment, column.unit),
            "name": column.name,
            "nullable": column.nullable,
            "type": _SPARK_TYPES.get(column.type, column.type),
        }
        for column in table.columns
    ]
    return json.dumps({"fields": fields, "type": "struct"}, separators=(",", ":"), sort_keys=True)


@functools.cache
def file_schema(table: Table) -> pa.Schema:
    """Return the schema of `table`'s files: Arrow's, with the meanings that Spark and others read."""
    meanings = {column.name: _meaning(column.comment, column.unit) for column in table.columns}
    return table.arrow_schema().with_metadata(
        {_MARK: table.name, _COLUMNS: json.dumps(meanings, ensure_ascii=False), _SPARK: spark_schema_json(table)}
    )


def _parts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("part-*.parquet") if _PART.fullmatch(path.name))


def _check_place(table: Table, out: Path, overwrite: bool) -> None:
    place = table_path(out, table)
    if place.exists() and not _is_ours(place, table.name):
        raise UsageError(f"{place} holds something else than table {table.name}; it is left as it is")
    if place.exists() and not overwrite:
        raise UsageError(f"{place} exists already; choose another folder, or allow to overwrite it")


def _is_ours(place: Path, name: str) -> bool:
    """Whether `place` is a folder of nothing but this table's files."""
    if place.is_symlink() or not place.is_dir() or not all(_PART.fullmatch(path.name) for path in place.iterdir()):
        return False
    try:
        return all((pq.read_schema(path).metadata or {}).get(_MARK) == name.encode() for path in _parts(place))
    except (OSError, pa.ArrowInvalid):
        return False
