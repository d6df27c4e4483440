"""Run a kernel on the executors of a Spark session, and let Spark's own writer write the tables that it finds.

How: a DataFrame of packed rows holds a batch of a kernel (kernels.py) a row: the name of its table, the number of its
rows, and the batch in Arrow's format. That DataFrame is kept in memory or on the executors' disks, so that a dump is
parsed and a cluster is placed once; what is lost with an executor is made again, equal. Each table is a DataFrame of
what belongs to it, which Spark writes as Parquet wherever it can write, and which `--into` appends to a catalog.

Example:
    with spark_session(app_name="fleet") as spark:
        analyse_fleet(SparkEngine(spark), load_recipe("demo"), Path("out"))
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
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
from spark_analysis.tables.write import remove_table, spark_schema_json
from spark_analysis.uri_folder import remove_folder

ROWS_PER_TASK: Final = 1 << 16  # A quarter of a second of Spark's writer; a task costs a tenth of that.
PACKED: Final = "table string, row_count long, rows binary"


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
        packed = numbers.mapInArrow(_packing(kernel, parts), PACKED)
        packed = packed.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            yield SparkFound(self, packed, len(parts))
        finally:
            packed.unpersist()

    def done_share(self) -> float:
        """Return the share of the running stages' tasks that are done, 0 to 1; another thread may ask."""
        return task_share(self.session)

    def write(self, rows: pa.Table, table: Table, out: Place) -> None:
        """Write rows that were made in this process as `table` under `out`, instead of what is there."""
        self.save(self.session.createDataFrame(rows, spark_schema(table)), table, out)

    def save(self, rows: DataFrame, table: Table, out: Place) -> None:
        """Write a DataFrame as `table` under `out`, instead of what is there."""
        rows.write.mode("overwrite").parquet(table_uri(out, table))
        self._frames[table.name] = rows

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
    _index: Any = None
    """The packed rows without the batches, except those of `WORK`."""

    def compute(self) -> None:
        """Run the kernel on all parts of the work, and collect the rows of `WORK`."""
        of_work = F.col("table").isin([table.name for table in WORK])
        self._index = self._packed.select("table", "row_count", F.when(of_work, F.col("rows")).alias("rows")).toArrow()

    def rows(self, table: Table) -> pa.Table:
        """Return the rows of a table of `WORK`, in the order of the work."""
        packed = self._index.filter(pa.array([name == table.name for name in self._index["table"].to_pylist()]))
        batches = (batch for each in packed.to_batches() for batch in _unpacked(each, table))
        return pa.Table.from_batches(batches, table.arrow_schema())

    def write(self, table: Table, out: Place, *, clusters: Int64Array | None = None) -> None:
        """Write the rows of a table under `out`, those of `clusters` alone if given, instead of what is there."""
        self._engine.save(self.frame(table, clusters), table, out)

    def frame(self, table: Table, clusters: Int64Array | None = None) -> DataFrame:
        """Return the rows of a table, those of `clusters` alone if given, as a DataFrame."""
        counts = zip(self._index["table"].to_pylist(), self._index["row_count"].to_pylist(), strict=True)
        row_count = sum(count for name, count in counts if name == table.name)
        if not row_count:
            return self._engine.session.createDataFrame([], spark_schema(table))
        task_count = max(1, min(self._part_count, row_count // ROWS_PER_TASK))
        packed = self._packed.where(F.col("table") == table.name).select("rows").coalesce(task_count)
        kernel = named(lambda batches: (rows for batch in batches for rows in _unpacked(batch, table)), table.name)
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
                row = {"table": table.name, "row_count": rows.num_rows, "rows": rows.serialize().to_pybytes()}
                yield pa.RecordBatch.from_pylist([row])

    return named(lambda batches: packed(batches), "clusters")


def _unpacked(packed: Any, table: Table) -> Iterator[pa.RecordBatch]:
    """Yield the batches in packed rows of one table."""
    for value in packed.column("rows"):
        yield pa.ipc.read_record_batch(value.as_buffer(), table.arrow_schema())
