"""Answer a question about each cluster of a DataFrame, with the code that the commands call.

What it decides: the rows of an answer are the keys of a cluster, the columns of the question's table, and `fault`. Rows
that cannot be used, and a cluster that contradicts itself, are a row with a `fault` and nulls: the job goes on.

Constraints: a task holds the rows of one cluster, of all its moments where brokers are given without their key.

How: the rows of a cluster meet in one task, which makes a ClusterView of them and asks. Rows of brokers meet them by
the keys that both DataFrames have; one that tells moments apart may be missing from the brokers, which are then those
of every moment. Nothing is collected, and nothing of the session is configured.

Example: per_cluster(Rows(partitions), MEASURES, measure_rows)

Source: Spark 4.3 GroupedData.applyInArrow and PandasCogroupedOps.applyInArrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from broker.cluster import ClusterView
from broker.errors import BrokersideError
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.frames.inputs import CLUSTER, chosen, cluster_keys
from spark_analysis.frames.matrices import whole
from spark_analysis.frames.views import (
    BROKER_NEEDED,
    BROKER_OPTIONAL,
    PARTITION_NEEDED,
    PARTITION_OPTIONAL,
    usable,
    view_of,
)
from spark_analysis.tables.columns import KEY, Column, Table
from spark_analysis.tables.source_schemas import FAULT

Kernel: TypeAlias = Callable[[ClusterView], pa.Table]
"""Return the rows of an answer on one cluster, their columns by name; columns left out are null."""
_OF_RUN: Final = tuple(column.name for column in KEY)


@attrs.frozen
class Rows:
    """Hold the rows of partitions, those of brokers if there are any, and the columns that tell clusters apart."""

    partitions: DataFrame
    brokers: DataFrame | None = None
    by: Sequence[str] | None = None


def per_cluster(rows: Rows, table: Table, kernel: Kernel) -> DataFrame:
    """Return the kernel's rows of each cluster, as rows of `table`; raise UsageError for columns that do not fit."""
    keys = cluster_keys(rows.partitions, rows.by)
    partitions = chosen(rows.partitions, "partitions", PARTITION_NEEDED, PARTITION_OPTIONAL, keys)
    types = {field.name: field for field in partitions.schema.fields}
    answer = answer_table(table, keys)
    answered = spark_schema_of(answer)
    schema = StructType(
        [StructField(key, types[key].dataType, True, types[key].metadata) for key in keys] + answered.fields
    )
    work = _Work(keys, answer, kernel)
    if rows.brokers is None:
        # Spark reads a function's annotations; without any, a table goes in and a table comes out.
        return partitions.groupBy(*keys).applyInArrow(lambda key, found: work.answered(key, found, None), schema)
    shared = [key for key in keys if key in rows.brokers.columns]
    if CLUSTER in keys and CLUSTER not in shared:
        shared.append(CLUSTER)  # Refused below.
    brokers = chosen(rows.brokers, "brokers", BROKER_NEEDED, BROKER_OPTIONAL, shared)
    meet = partitions.groupBy(*shared).cogroup(brokers.groupBy(*shared))
    if len(shared) == len(keys):
        return meet.applyInArrow(lambda key, found, listed: work.answered(key, found, listed), schema)
    return meet.applyInArrow(lambda found, listed: work.of_moments(found, listed), schema)


def answer_table(table: Table, keys: Sequence[str]) -> Table:
    """Return the columns of `table` that an answer has beside the keys, and `fault`."""
    left_out = {*_OF_RUN, *keys}
    columns: tuple[Column, ...] = tuple(column for column in table.columns if column.name not in left_out)
    return attrs.evolve(table, columns=(*columns, FAULT))


def moments(found: pa.Table, keys: Sequence[str]) -> Iterator[tuple[list[Any], pa.Table]]:
    """Yield the rows of each value of the keys, with that value."""
    if not found.num_rows:
        return
    codes = [
        whole(found[key]).dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
        for key in keys
    ]
    groups, counts = np.unique(np.column_stack(codes), axis=0, return_inverse=True, return_counts=True)[1:]
    ordered = found.take(np.argsort(groups.ravel(), kind="stable"))
    start = 0
    for count in counts.tolist():
        some = ordered.slice(start, count)
        yield [some[key][0] for key in keys], some
        start += count


@attrs.frozen
class _Work:
    """Answer the question on one cluster after another, in a task."""

    keys: tuple[str, ...]
    table: Table
    kernel: Kernel

    def answered(self, key: Sequence[Any], found: pa.Table, listed: pa.Table | None) -> pa.Table:
        """Return the answer on the cluster with this key; rows that cannot be used become one row with a fault."""
        partitions = usable(found, PARTITION_NEEDED)
        brokers = None if listed is None else usable(listed, BROKER_NEEDED)
        faults = [each.fault for each in (partitions, brokers) if each is not None and each.fault is not None]
        parts = []
        listed = None if brokers is None else brokers.rows
        if partitions.rows.num_rows or (listed is not None and listed.num_rows):
            name = "" if CLUSTER not in self.keys else key[self.keys.index(CLUSTER)].as_py()
            try:
                parts.append(self.kernel(view_of(name or "", partitions.rows, listed)))
            except BrokersideError as error:
                faults.append(str(error))
        parts += [pa.table({"fault": [fault]}) for fault in dict.fromkeys(faults)]
        types = [scalar.type for scalar in key]
        return pa.concat_tables([self._keyed(key, types, part) for part in parts] or [self._empty(types)])

    def of_moments(self, found: pa.Table, listed: pa.Table) -> pa.Table:
        """Return the answers on each moment of a cluster, the brokers being those of every moment."""
        every = [self.answered(key, some, listed) for key, some in moments(found, self.keys)]
        return pa.concat_tables(every or [self._empty([found.schema.field(key).type for key in self.keys])])

    def _keyed(self, key: Sequence[Any], types: Sequence[Any], part: pa.Table) -> pa.Table:
        count = part.num_rows
        columns: list[Any] = [pa.repeat(scalar, count) for scalar in key]
        fields = self.table.arrow_schema()
        for field in fields:
            has = field.name in part.column_names
            columns.append(part[field.name].cast(field.type) if has else pa.nulls(count, field.type))
        return pa.table(columns, schema=self._schema(types))

    def _empty(self, types: Sequence[Any]) -> pa.Table:
        return self._schema(types).empty_table()

    def _schema(self, types: Sequence[Any]) -> pa.Schema:
        keys = [pa.field(key, of) for key, of in zip(self.keys, types, strict=True)]
        return pa.schema([*keys, *(pa.field(field.name, field.type) for field in self.table.arrow_schema())])


def columns_of(batch: pa.RecordBatch | pa.Table, *left_out: str) -> pa.Table:
    """Return a table of the batch without the columns left out."""
    kept = [name for name in batch.schema.names if name not in left_out]
    columns: list[Any] = [batch.column(name) for name in kept]
    return pa.table(dict(zip(kept, columns, strict=True)))
