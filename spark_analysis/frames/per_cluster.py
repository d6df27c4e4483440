"""Answer a question about each cluster of a DataFrame, many clusters a task, with the code that the commands call.

Rows of one cluster meet in one task, spread by their keys and sorted by them, so that Python is called once a batch of
Arrow. Rows of brokers meet them by the keys that both DataFrames have; a key that tells moments apart may be missing
from the brokers, which are then those of every moment. A task holds the rows of one cluster and a batch besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.frames.answering import Kernel, Work, answer_table
from spark_analysis.frames.inputs import CLUSTER, chosen, cluster_keys, quoted, refuse_other, refuse_unlike
from spark_analysis.frames.listed_brokers import BROKER_PREFIX, OF_BROKER
from spark_analysis.frames.many import Many
from spark_analysis.frames.views import BROKER_NEEDED, BROKER_OPTIONAL, PARTITION_NEEDED, PARTITION_OPTIONAL
from spark_analysis.tables.columns import Table


@attrs.frozen
class Rows:
    """Hold the rows of partitions, those of brokers if there are any, and the columns that tell clusters apart."""

    partitions: DataFrame
    brokers: DataFrame | None = None
    by: Sequence[str] | None = None


def per_cluster(rows: Rows, table: Table, kernel: Kernel, many: Many | None = None) -> DataFrame:
    """Return the kernel's rows of each cluster, as rows of `table`; raise UsageError for columns that do not fit.

    `many` gives the same rows of the clusters that it answers at once.
    """
    keys = cluster_keys(rows.partitions, rows.by)
    partitions = chosen(rows.partitions, "partitions", PARTITION_NEEDED, PARTITION_OPTIONAL, keys)
    types = {field.name: field for field in partitions.schema.fields}
    answer = answer_table(table, keys)
    schema = StructType(
        [StructField(key, types[key].dataType, True, types[key].metadata) for key in keys]
        + spark_schema_of(answer).fields
    )
    shared = keys if rows.brokers is None else _shared(keys, rows.brokers)
    listed = partitions if rows.brokers is None else _with_brokers(partitions, rows.brokers, shared)
    work = Work(keys, shared, answer, kernel, many)
    by = [F.col(quoted(key)) for key in shared]
    # Spark reads a function's annotations; without any, batches go in and batches come out.
    return listed.repartition(*by).sortWithinPartitions(*by).mapInArrow(lambda batches: work.answers(batches), schema)


def _shared(keys: tuple[str, ...], brokers: DataFrame) -> tuple[str, ...]:
    """Return the keys that the rows of brokers have; `cluster` is one of them, or is refused as missing later."""
    refuse_other("brokers", brokers)
    has = brokers.columns
    return tuple(key for key in keys if key in has or key == CLUSTER)


def _with_brokers(partitions: DataFrame, brokers: DataFrame, shared: Sequence[str]) -> DataFrame:
    """Return rows of both, marked which they are; those of brokers have names of their own beside the shared keys."""
    listed = chosen(brokers, "brokers", BROKER_NEEDED, BROKER_OPTIONAL, shared)
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
