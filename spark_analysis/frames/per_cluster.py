"""Answer a question about each cluster of a DataFrame, many clusters a task, with the code that the commands call.

Rows of one cluster meet in one task, spread by their keys and sorted by them, so that Python is called once a batch of
Arrow. Rows of brokers meet them by the keys that both DataFrames have; a key that tells moments apart may be missing
from the brokers, which are then those of every moment. A task holds the rows of one cluster and a batch besides.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructField, StructType

from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.frames.answering import Kernel, Many, Work, answer_table
from spark_analysis.frames.inputs import (
    CLUSTER,
    chosen,
    cluster_keys,
    quoted,
    refuse_missing,
    refuse_other,
    refuse_unlike,
)
from spark_analysis.frames.listed_brokers import BROKER_PREFIX, OF_BROKER
from spark_analysis.frames.views import BROKER_NEEDED, BROKER_OPTIONAL, PARTITION_NEEDED, PARTITION_OPTIONAL, TOTALS
from spark_analysis.tables.columns import Table


@attrs.frozen
class Rows:
    """Hold the rows of partitions, those of brokers if there are any, and the columns that tell clusters apart.

    `totals` asks for loads by the brokers' own counts, where partitions are only a part of what they hold.
    """

    partitions: DataFrame
    brokers: DataFrame | None = None
    by: Sequence[str] | None = None
    totals: bool = False


def per_cluster(
    rows: Rows,
    table: Table,
    kernel: Kernel | None = None,
    *,
    many: Many | None = None,
    reads: Sequence[str] = PARTITION_OPTIONAL,
) -> DataFrame:
    """Return the rows of each cluster, as rows of `table`; raise UsageError for columns that do not fit.

    They are those of `many`, which answers about all clusters of a batch, or of `kernel`, which answers about one.
    `reads` are the optional columns of partitions that the answer depends on; no other is shuffled.
    """
    keys = cluster_keys(rows.partitions, rows.by)
    optional = tuple(dict.fromkeys((*reads, "fault")))
    partitions = chosen(rows.partitions, "partitions", PARTITION_NEEDED, optional, keys)
    types = {field.name: field for field in partitions.schema.fields}
    answer = answer_table(table, keys)
    schema = StructType(
        [StructField(key, types[key].dataType, True, types[key].metadata) for key in keys]
        + spark_schema_of(answer).fields
    )
    shared = keys if rows.brokers is None else _shared(keys, rows.brokers)
    listed = partitions if rows.brokers is None else _with_brokers(partitions, rows.brokers, shared, rows.totals)
    work = Work(keys, shared, answer, kernel, many)
    sent = without_null_lists(spread_by(listed, shared))
    return sent.mapInArrow(named(lambda batches: work.answers(map(with_null_lists, batches)), table.name), schema)


def spread_by(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows spread by these columns over as many tasks as spark.sql.shuffle.partitions says, and sorted.

    Adaptive execution would join small tasks by their bytes, which say nothing of what an answer costs. Rows that
    `repartition(count, *keys)` has spread by some of the keys stay in its tasks.
    """
    by = [F.col(quoted(key)) for key in keys]
    if not is_spread(rows, keys):
        count = rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or ""
        rows = rows.repartition(int(count), *by) if count.isdecimal() else rows.repartition(*by)
    return rows.sortWithinPartitions(*by)


NULL_LIST: Final = "__is_null_"


def without_null_lists(rows: DataFrame) -> DataFrame:
    """Return the rows with empty lists in the place of null ones, which columns of their own tell apart.

    Spark measures the batch at each row that it hands to Python, unless spark.sql.execution.arrow.maxBytesPerBatch has
    no bound, as in sessions of ours; of null lists it then writes the offset of each row before it again.
    """
    lists = [field for field in rows.schema.fields if isinstance(field.dataType, ArrayType)]
    columns = {field.name: F.col(quoted(field.name)) for field in lists}
    empty = {field.name: F.coalesce(columns[field.name], F.array().cast(field.dataType)) for field in lists}
    return rows.withColumns({f"{NULL_LIST}{name}": each.isNull() for name, each in columns.items()} | empty)


def with_null_lists(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of `without_null_lists` with the null lists."""
    columns = {name: batch.column(name) for name in batch.schema.names if not name.startswith(NULL_LIST)}
    for name, column in columns.items():
        if f"{NULL_LIST}{name}" in batch.schema.names:
            none: Any = pa.scalar(None, column.type)
            columns[name] = pc.if_else(batch.column(f"{NULL_LIST}{name}"), none, column)
    return pa.RecordBatch.from_pydict(columns)


_KEPT_BY: Final = ("Project", "Filter", "SubqueryAlias")


def is_spread(rows: DataFrame, keys: Sequence[str]) -> bool:
    """Return whether the last shuffle of the rows was a `repartition` by some of the keys, so that clusters are whole.

    Spark Connect does not show a client the plan: there it is False.
    """
    plan = getattr(rows, "_jdf", None)
    if plan is None:
        return False
    node = plan.queryExecution().analyzed()
    ids = {one.exprId().toString() for one in _listed(node.output()) if one.name() in keys}
    while node.getClass().getSimpleName() in _KEPT_BY:
        node = node.child()
    if node.getClass().getSimpleName() != "RepartitionByExpression":
        return False
    by = _listed(node.partitionExpressions())
    return bool(by) and all(
        one.getClass().getSimpleName() == "AttributeReference" and one.exprId().toString() in ids for one in by
    )


def _listed(found: Any) -> list[Any]:
    """Return a sequence of Scala's as a list."""
    return [found.apply(place) for place in range(found.size())]


def named(kernel: Callable[..., Iterator[pa.RecordBatch]], name: str) -> Callable[..., Iterator[pa.RecordBatch]]:
    """Return the kernel under the name that Spark's plans and pages show.

    It has no annotations, from which Spark would read another kind of function: batches go in, and batches come out.
    """

    def run(batches):  # type: ignore[no-untyped-def]  # See the docstring.
        yield from kernel(batches)
        _keep_imports()

    run.__name__ = run.__qualname__ = name
    return run


@functools.cache
def _keep_imports() -> None:
    """Leave what this worker has imported by now out of later searches for garbage.

    Spark's Python searches after each task, and through our modules and theirs that takes 0.09 CPU s.
    """
    gc.collect()
    gc.freeze()


def _shared(keys: tuple[str, ...], brokers: DataFrame) -> tuple[str, ...]:
    """Return the keys that the rows of brokers have; `cluster` is one of them, or is refused as missing later."""
    refuse_other("brokers", brokers)
    has = brokers.columns
    return tuple(key for key in keys if key in has or key == CLUSTER)


def _with_brokers(partitions: DataFrame, brokers: DataFrame, shared: Sequence[str], totals: bool) -> DataFrame:
    """Return rows of both, marked which they are; those of brokers have names of their own beside the shared keys."""
    if totals:
        refuse_missing("brokers", TOTALS[:1], brokers.columns)
    optional = [name for name in BROKER_OPTIONAL if totals or name not in TOTALS]
    listed = chosen(brokers, "brokers", BROKER_NEEDED, optional, shared)
    refuse_unlike(partitions, listed, shared)
    others = [name for name in listed.columns if name not in shared]
    renamed = listed.select(
        *(F.col(quoted(key)) for key in shared),
        *(F.col(quoted(name)).alias(BROKER_PREFIX + name) for name in others),
        F.lit(True).alias(OF_BROKER),
    )
    return partitions.withColumn(OF_BROKER, F.lit(False)).unionByName(renamed, allowMissingColumns=True)


def columns_of(batch: pa.RecordBatch | pa.Table, *left_out: str) -> pa.Table:
    """Return a table of the batch without the columns left out."""
    kept = [name for name in batch.schema.names if name not in left_out]
    columns: list[Any] = [batch.column(name) for name in kept]
    return pa.table(dict(zip(kept, columns, strict=True)))
