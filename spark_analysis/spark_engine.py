"""Run a kernel on the executors of a Spark session, and let Spark's own writer write the tables that it finds.

How: a DataFrame of packed rows holds a batch of a kernel (kernels.py) a row: the name of its table, the number and size
of its rows, and the batch in Arrow's format. It is compressed, as most columns repeat few values, and the JVM copies
each byte several times. That DataFrame is kept in memory or on the executors' disks, so that a dump is parsed and a
cluster is placed once; what is lost with an executor is made again, equal. Each table is a DataFrame of what belongs to
it, which Spark writes as Parquet wherever it can write, and which `--into` appends to a catalog. Tables that are
small, together, come to the driver, which writes them into a folder of this machine: Spark's writer takes a
tenth of a CPU second for a table without rows, and four microseconds a row, twenty times as much as pyarrow.

Example:
    with spark_session(app_name="fleet") as spark:
        analyse_fleet(SparkEngine(spark), load_recipe("demo"), Path("out"))
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from broker.cluster import Int64Array
from spark_analysis.engines import Found
from spark_analysis.frames.per_cluster import named
from spark_analysis.kernels import Kernel
from spark_analysis.session.progress import task_share
from spark_analysis.tables.columns import Table
from spark_analysis.tables.place import Place, table_uri
from spark_analysis.tables.schemas import WORK
from spark_analysis.tables.write import arrow_to_table, remove_table, spark_schema_json
from spark_analysis.uri_folder import remove_folder

ROWS_PER_TASK: Final = 1 << 16  # A quarter of a second of Spark's writer; a task costs a tenth of that.
COLLECTED_BYTES_MAX: Final = 96 << 20  # Of all tables that the driver writes: it stays below half a gigabyte.
PACKED: Final = "table string, row_count long, size_bytes long, rows binary"
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="lz4")


@attrs.define
class SparkEngine:
    """Run kernels on the executors of a session: a row and a partition of a DataFrame for each part of the work.

    `append`, if given, takes all tables of a run by name, to append them to a catalog.
    """

    session: SparkSession
    append: Callable[[Mapping[str, DataFrame]], None] | None = None
    _frames: dict[str, DataFrame] = attrs.field(factory=dict, init=False)

    @contextlib.contextmanager
    def found(self, kernel: Kernel, parts: Sequence[range], out: Place) -> Iterator[Found]:
        """Return what the kernel finds on each part of the work, as packed rows that the executors keep."""
        numbers = self.session.range(0, max(1, len(parts)), 1, max(1, len(parts)))
        packed = numbers.mapInArrow(_packing(kernel, parts), PACKED).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield SparkFound(self, packed, len(parts), COLLECTED_BYTES_MAX if isinstance(out, Path) else 0)
        finally:
            packed.unpersist()

    def done_share(self) -> float:
        """Return the share of the running stages' tasks that are done, 0 to 1; another thread may ask."""
        return task_share(self.session)

    def write(self, rows: pa.Table, table: Table, out: Place) -> None:
        """Write rows that were made in this process as `table` under `out`, instead of what is there."""
        self.save(table, out, partial(self.session.createDataFrame, rows, spark_schema(table)), rows)

    def save(self, table: Table, out: Place, frame: Callable[[], DataFrame], rows: pa.Table | None) -> None:
        """Write `table` under `out`, instead of what is there: `rows` into a folder, if known, else by Spark."""
        if rows is not None and isinstance(out, Path):
            arrow_to_table(rows, table, out, overwrite=True)
        else:
            frame().write.mode("overwrite").parquet(table_uri(out, table))
        if self.append is not None:
            self._frames[table.name] = frame()

    def remove(self, table: Table, out: Place) -> None:
        """Remove a table of an earlier run."""
        if isinstance(out, Path):
            remove_table(out, table.name)
        else:
            remove_folder(self.session, table_uri(out, table))

    def finish(self) -> None:
        """Append all tables that were written to the catalog."""
        if self.append is not None:
            self.append(self._frames)


@attrs.define
class SparkFound:
    """Hold what a kernel has found as a DataFrame of packed rows."""

    _engine: SparkEngine
    _packed: DataFrame
    _part_count: int
    _collected_bytes_max: int
    _row_counts: dict[str, int] = attrs.field(factory=dict)
    _collected: dict[str, list[Any]] = attrs.field(factory=dict)
    """The packed rows of `WORK` and of small tables, by table."""

    def compute(self) -> None:
        """Run the kernel on all parts of the work, and collect the rows of `WORK` and of small tables."""
        if not self._part_count:
            return
        index = self._packed.drop("rows").toArrow()
        sums = index.group_by("table").aggregate([("row_count", "sum"), ("size_bytes", "sum")])
        by_size: Any = sums.sort_by("size_bytes_sum").to_pylist()
        self._row_counts = {one["table"]: one["row_count_sum"] for one in by_size}
        together = accumulate(one["size_bytes_sum"] for one in by_size)
        small = [
            name for name, size in zip(self._row_counts, together, strict=True) if size <= self._collected_bytes_max
        ]
        wanted = {*small, *(table.name for table in WORK)} & self._row_counts.keys()
        if wanted:
            packed = self._packed.where(F.col("table").isin(sorted(wanted))).select("table", "rows").toArrow()
            for name, rows in zip(packed["table"], packed["rows"], strict=True):
                self._collected.setdefault(str(name), []).append(rows)

    def rows(self, table: Table) -> pa.Table:
        """Return the rows of a table of `WORK`, or of a small one, in the order of the work."""
        return pa.Table.from_batches(_unpacked(self._collected.get(table.name, []), table), table.arrow_schema())

    def write(self, table: Table, out: Place, *, clusters: Int64Array | None = None) -> None:
        """Write the rows of a table under `out`, those of `clusters` alone if given, instead of what is there."""
        rows = self.rows(table) if table.name in self._collected or table.name not in self._row_counts else None
        if rows is not None and clusters is not None:
            rows = rows.filter(pc.is_in(rows["cluster_id"], pa.array(clusters)))
        self._engine.save(table, out, partial(self._frame, table, clusters), rows)

    def _frame(self, table: Table, clusters: Int64Array | None) -> DataFrame:
        """Return the rows of a table, those of `clusters` alone if given, as a DataFrame."""
        row_count = self._row_counts.get(table.name, 0)
        if not row_count:
            return self._engine.session.createDataFrame([], spark_schema(table))
        task_count = max(1, min(self._part_count, row_count // ROWS_PER_TASK))
        packed = self._packed.where(F.col("table") == table.name).select("rows").coalesce(task_count)
        kernel = named(
            lambda batches: (rows for each in batches for rows in _unpacked(each["rows"], table)), table.name
        )
        rows = packed.mapInArrow(kernel, spark_schema(table))
        return rows if clusters is None else rows.where(F.col("cluster_id").isin(clusters.tolist()))


def spark_schema(table: Table) -> StructType:
    """Return Spark's schema of a table, with its meanings as column metadata."""
    return StructType.fromJson(json.loads(spark_schema_json(table)))


def _packing(kernel: Kernel, parts: Sequence[range]) -> Callable[..., Iterator[pa.RecordBatch]]:
    """Return the function that runs the kernel on the parts whose numbers it is given, and packs what it yields."""

    def packed(given: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        numbers = (number for batch in given for number in batch.column("id").to_pylist() if number < len(parts))
        for number in numbers:
            for table, rows in kernel(parts[number]):
                row = {"table": table.name, "row_count": rows.num_rows, "size_bytes": rows.nbytes, "rows": _bytes(rows)}
                yield pa.RecordBatch.from_pylist([row])

    return named(lambda batches: packed(batches), "clusters")


def _bytes(rows: pa.RecordBatch) -> bytes:
    """Serialize a batch as an Arrow IPC stream, compressed with LZ4."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema.remove_metadata(), options=_COMPRESSED) as stream:
        stream.write_batch(rows)
    return sink.getvalue().to_pybytes()


def _unpacked(packed: Iterable[Any], table: Table) -> Iterator[pa.RecordBatch]:
    """Yield the batches in packed rows of one table."""
    for value in packed:
        for batch in pa.ipc.open_stream(value.as_buffer()):
            yield batch.cast(table.arrow_schema())
