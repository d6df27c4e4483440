"""Write and read result tables: Parquet folders that look the same to Spark, pyarrow and DuckDB.

Decides how a table of `schemas.py` lies on disk. Goals, most important first: a table is
whole or not there; its columns are those of the schema, names, types, order and nulls; equal
rows give equal bytes; whoever opens a file finds what each column means and in which unit.

Constraints: a folder that this module did not write is never replaced.

How: the rows are spread over `files` partitions by the first column and sorted by all columns
from left to right. On the executors each task writes its partition with pyarrow into a hidden
folder beside the table's place, under a name of its own attempt; the driver then gives the
files of the attempts that counted their final names and renames the folder. What a lost or
repeated task has left behind goes with the hidden folder. Comments and units are in the file
three times: as Arrow field metadata, as Spark column metadata under `comment` and `unit`, and,
for other readers, as the JSON in the file's key `brokerside.columns`.

Example: `write_table(frame, RACKS, Path("out"))` → out/tables/racks/part-00000.parquet; in DuckDB
    select decode(value) from parquet_kv_metadata('out/tables/racks/*.parquet') where decode(key) = 'brokerside.columns'

Left out: other filesystems than mounted ones. With executors on several machines `out` must be
a folder that all of them see.

Source: Spark 4.3.0 ParquetReadSupport for the key of Spark's own schema; the Parquet format's
key_value_metadata.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from broker.errors import InputError, UsageError
from spark_analysis.schemas import Table

TABLES_FOLDER: Final = "tables"
ROW_GROUP_ROWS: Final = 1 << 18  # Some 10 MB of these tables: bounds the writer's memory, long enough to compress.

_PART: Final = re.compile(r"part-\d{5}\.parquet")
_MARK: Final = b"brokerside.table"
_COLUMNS: Final = b"brokerside.columns"
_SPARK: Final = b"org.apache.spark.sql.parquet.row.metadata"
_WRITTEN: Final = "file string, row_count long, fault string"


def table_path(out: Path, table: Table) -> Path:
    """Return the folder of `table` under the run's folder `out`."""
    return out / TABLES_FOLDER / table.name


def spark_schema(table: Table) -> StructType:
    """Return Spark's schema of `table`: types and nulls from Arrow's, comment and unit as column metadata."""
    plain = from_arrow_schema(table.arrow_schema())
    fields = zip(plain.fields, table.columns, strict=True)
    return StructType(
        [
            StructField(field.name, field.dataType, column.nullable, _meaning(column.comment, column.unit))
            for field, column in fields
        ]
    )


def write_table(frame: DataFrame, table: Table, out: Path, *, overwrite: bool = False, files: int = 1) -> int:
    """Write `frame` as `table` under `out`; return the number of rows.

    Raises `UsageError` when columns differ from the schema, when a null stands where none may,
    or when the place is taken: by something else, or by an earlier run without `overwrite`.
    Costs one shuffle and one sort; `files` tasks write.
    """
    _check_columns(frame.schema, table)
    rows = frame.repartition(files, frame.columns[0]).sortWithinPartitions(*frame.columns)

    def fill(folder: Path) -> int:
        write = _partition_writer(str(folder), table)
        written = rows.mapInArrow(write, _WRITTEN).toArrow().sort_by("file").to_pylist()
        faults = sorted(one["fault"] for one in written if one["fault"])
        if faults:
            raise UsageError(faults[0])
        kept = [one for one in written if one["row_count"]]
        for index, one in enumerate(kept):
            (folder / one["file"]).rename(folder / _part_name(index))
        if not kept:
            _write_file(folder / _part_name(0), table, [])
        return sum(one["row_count"] for one in kept)

    return _replace(table, out, overwrite, fill)


def arrow_to_table(rows: pa.Table, table: Table, out: Path, *, overwrite: bool = False) -> int:
    """Write `rows`, made on the driver, as `table` under `out`, in their order; return the number of rows.

    Raises as `write_table` does.
    """

    _check_columns(from_arrow_schema(rows.schema), table)
    batches = _without_nulls(rows.to_batches(), table)
    return _replace(table, out, overwrite, lambda folder: _write_file(folder / _part_name(0), table, batches))


def read_table(out: Path, table: Table, *, columns: Sequence[str] | None = None, where: Any = None) -> pa.Table:
    """Read `table` back: only `columns`, if given, and only the rows that the pyarrow expression `where` keeps.

    Raises `InputError` when there is no such table under `out`, or not one of these columns.
    """
    folder = table_path(out, table)
    parts = _parts(folder)
    if not parts:
        raise InputError(f"there is no table {table.name}", source=str(folder))
    schema = table.arrow_schema()
    for part in parts:
        if not pq.read_schema(part).equals(schema):
            raise InputError(f"its columns are not those of table {table.name}", source=str(part))
    names = list(table.column_names if columns is None else columns)
    read = pq.read_table(parts, columns=names, filters=where, partitioning=None)
    wanted = pa.schema([schema.field(name) for name in names])
    return read.select(names).replace_schema_metadata(None).cast(wanted)


def _meaning(comment: str, unit: str) -> dict[str, str]:
    return {"comment": comment} | ({"unit": unit} if unit else {})


def _check_columns(schema: StructType, table: Table) -> None:
    found, wanted = _shown(schema), _shown(spark_schema(table))
    if found != wanted:
        raise UsageError(f"table {table.name} has the columns {wanted}; not {found}")


def _shown(schema: StructType) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)


def _partition_writer(folder: str, table: Table) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the kernel that writes one partition to a file and tells the file's name and rows."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None, "the kernel runs on executors only"
        name = f"{context.partitionId():05d}-{context.taskAttemptId()}"
        fault, row_count = "", 0
        try:
            row_count = _write_file(Path(folder) / name, table, _without_nulls(batches, table))
        except UsageError as error:
            fault = str(error)
        yield pa.RecordBatch.from_pydict({"file": [name], "row_count": [row_count], "fault": [fault]})

    return write


def _without_nulls(batches: Iterable[pa.RecordBatch], table: Table) -> Iterator[pa.RecordBatch]:
    """Pass the batches on; raise `UsageError` at a null where none may stand."""
    for batch in batches:
        for column, values in zip(table.columns, batch.columns, strict=True):
            if values.null_count and not column.nullable:
                raise UsageError(f"table {table.name}: column {column.name} may not be null")
        yield batch


def _write_file(path: Path, table: Table, batches: Iterable[pa.RecordBatch]) -> int:
    """Write one Parquet file, `ROW_GROUP_ROWS` rows in memory at a time; return the number of rows."""
    schema = table.arrow_schema()
    meanings = {column.name: _meaning(column.comment, column.unit) for column in table.columns}
    marked = schema.with_metadata(
        {_MARK: table.name, _COLUMNS: json.dumps(meanings, ensure_ascii=False), _SPARK: spark_schema(table).json()}
    )
    row_count = 0
    with pq.ParquetWriter(path, marked, compression="zstd") as writer:
        for group in _groups(batches):
            writer.write_table(pa.Table.from_batches(group).cast(schema).replace_schema_metadata(marked.metadata))
            row_count += sum(batch.num_rows for batch in group)
    return row_count


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if sum(one.num_rows for one in group) >= ROW_GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group


def _part_name(index: int) -> str:
    return f"part-{index:05d}.parquet"


def _parts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("part-*.parquet") if _PART.fullmatch(path.name))


def _replace(table: Table, out: Path, overwrite: bool, fill: Callable[[Path], int]) -> int:
    """Let `fill` write the table's files into a hidden folder, then put it where the table belongs."""
    place = table_path(out, table).absolute()
    if place.exists() and not _is_ours(place, table):
        raise UsageError(f"{place} holds something else than table {table.name}; it is left as it is")
    if place.exists() and not overwrite:
        raise UsageError(f"{place} exists already; choose another folder, or allow to overwrite it")
    fresh, stale = (place.with_name(f".{place.name}.{state}") for state in ("new", "old"))
    place.parent.mkdir(parents=True, exist_ok=True)
    # What an interrupted run left behind under these names, which only this module uses.
    for folder in (fresh, stale):
        shutil.rmtree(folder, ignore_errors=True)
    fresh.mkdir()
    try:
        row_count = fill(fresh)
        for path in fresh.iterdir():
            if not _PART.fullmatch(path.name):
                path.unlink()
        if place.exists():
            place.rename(stale)
        fresh.rename(place)
    finally:
        for folder in (fresh, stale):
            shutil.rmtree(folder, ignore_errors=True)
    return row_count


def _is_ours(place: Path, table: Table) -> bool:
    """Whether `place` is a folder of nothing but this table's files."""
    if place.is_symlink() or not place.is_dir() or not all(_PART.fullmatch(path.name) for path in place.iterdir()):
        return False
    try:
        return all((pq.read_schema(path).metadata or {}).get(_MARK) == table.name.encode() for path in _parts(place))
    except (OSError, pa.ArrowInvalid):
        return False
