"""Count what clusters and consumer groups send across zones, beside the least possible, and what changes save.

`groups` has a row per group and assignor: partitions and bytes fetched across zones from leaders and from the closest
replica (KIP-392), beside the least of any assignment. As groups.py. Zones are the `racks` of the partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from broker.cluster import Int64Array
from broker.errors import BrokersideError, UsageError
from placement.consumer.registry import KAFKAS
from placement.traffic.consumers import NOW
from placement.traffic.crossing import PRICE_PER_GIB, Crossing, even_shares
from placement.traffic.savings import LEAST, changes_of, no_readers
from placement.traffic.zones import ZonedPartitions
from spark_analysis.answers.group_rows import ELSEWHERE, change_rows, reader_rows, traffic_rows
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.frames.answering import REJECTED, is_named, shown_name
from spark_analysis.frames.inputs import chosen, refuse_other
from spark_analysis.frames.per_group import ZONED, per_group, shared_keys
from spark_analysis.frames.transforming import question
from spark_analysis.frames.views import PARTITION_NEEDED, usable_partitions, view_of_rows
from spark_analysis.questions.groups import groups_asked
from spark_analysis.tables.columns import Column, Table
from spark_analysis.tables.schemas import FAULT, GROUP_TRAFFIC, READERS, TRAFFIC_CHANGES

ASSIGNORS: Final = (NOW, *KAFKAS)
PRODUCED: Final = "produced_bytes"
_REJECTED: Final = attrs.evolve(
    REJECTED, comment="Rows of partitions and of members that are in no answer because of the fault; null in a good row"
)
_SUMS: Final = ("reader_count", "crossing_count", "unknown_count", "fetched_bytes", "crossing_bytes")


@question
def groups(
    members: DataFrame,
    partitions: DataFrame,
    *,
    assignors: Sequence[str] = ASSIGNORS,
    price_per_gib: float = PRICE_PER_GIB,
    release: str | None = None,
    by: Sequence[str] | None = None,
) -> DataFrame:
    """Return one row per group and assignor: what it fetches across zones, beside the least.

    Raises UsageError for an assignor, a release or a price that makes no sense, and for a column that does not fit.
    """
    asked = groups_asked(assignors, release, price_per_gib)
    return per_group(members, _produced(partitions), GROUP_TRAFFIC, traffic_rows, asked, by=by)


@question
def clusters(
    members: DataFrame,
    partitions: DataFrame,
    *,
    assignors: Sequence[str] = ASSIGNORS,
    price_per_gib: float = PRICE_PER_GIB,
    release: str | None = None,
    by: Sequence[str] | None = None,
) -> DataFrame:
    """Return one row per cluster and change: what crosses zones, what that costs, and what is saved.

    `now` is asked about always. Raises UsageError as `groups` does.
    """
    asked = groups_asked((NOW, *assignors), release, price_per_gib)
    sized = _produced(partitions)
    keys = shared_keys(members, sized, by)
    read = per_group(members, sized, READERS, reader_rows, asked, by=keys)
    places = (*keys, "assignor", "topic", "partition", "zone")
    sums = read.groupBy(*places, "fault").agg(*(F.sum(name).alias(name) for name in (*_SUMS, REJECTED.name)))
    listed = chosen(sized, "partitions", PARTITION_NEEDED, ZONED, keys)
    documented = attrs.evolve(TRAFFIC_CHANGES, columns=(*_beside(keys), _REJECTED, FAULT))
    types = {field.name: field for field in listed.schema.fields}
    fields = [StructField(key, types[key].dataType, True, types[key].metadata) for key in keys]
    schema = StructType(fields + list(spark_schema_of(documented).fields))
    price = asked.price_per_gib

    def kernel(key: Any, found: Any, readers: Any) -> Any:
        return changes_table(keys, key, found, readers, documented, price)

    meet = listed.groupBy(*keys).cogroup(sums.groupBy(*keys))
    # Spark reads a function's annotations; without any, tables go in and a table comes out.
    return meet.applyInArrow(lambda key, found, readers: kernel(key, found, readers), schema)


def _beside(keys: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of the table `TRAFFIC_CHANGES` beside the keys."""
    return tuple(column for column in TRAFFIC_CHANGES.columns if column.name not in keys and column != FAULT)


def _produced(partitions: DataFrame) -> DataFrame:
    """Return the partitions with the bytes that producers send to each, as the size of every replica."""
    refuse_other("partitions", partitions)
    if PRODUCED not in partitions.columns:
        return partitions
    each = F.transform("replicas", lambda _: F.col(PRODUCED).cast("long"))
    return partitions.withColumn("replica_size_bytes", F.when(F.col(PRODUCED).isNotNull(), each))


def changes_table(
    keys: Sequence[str], key: Sequence[Any], found: pa.Table, readers: pa.Table, table: Table, price_per_gib: float
) -> pa.Table:
    """Return the rows of one cluster, with its keys; what cannot be used is a row with a fault."""
    values = dict(zip(keys, key, strict=True))
    rows = list(_rows(values, found, readers, price_per_gib))
    documented = [pa.field(field.name, field.type) for field in table.arrow_schema()]
    answered = pa.Table.from_pylist(rows, schema=pa.schema(documented))
    constants: list[Any] = [pa.repeat(scalar, len(rows)) for scalar in values.values()]
    fields = [pa.field(name, scalar.type) for name, scalar in values.items()]
    return pa.table([*constants, *answered.columns], schema=pa.schema([*fields, *documented]))


def _rows(values: dict[str, Any], found: pa.Table, readers: pa.Table, price_per_gib: float) -> Iterator[dict[str, Any]]:
    partitions = usable_partitions(found)
    rejected: dict[str, int] = {}
    unanswered: dict[str, list[str]] = {}
    for row in readers.select(["assignor", "fault", REJECTED.name]).to_pylist():
        if row["fault"] is not None and row["assignor"] is not None:
            unanswered.setdefault(row["assignor"], []).append(row["fault"])
        elif row["fault"] is not None:
            rejected[row["fault"]] = rejected.get(row["fault"], 0) + (row[REJECTED.name] or 0)
    if partitions.fault is not None:
        rejected[partitions.fault] = rejected.get(partitions.fault, 0) + partitions.rejected_count
    yield from ({"fault": fault, REJECTED.name: rejected[fault]} for fault in sorted(rejected))
    if not is_named(values):
        return
    name = shown_name(values)
    try:
        zoned = ZonedPartitions.of(view_of_rows(name, partitions.rows, None))
        if not zoned.zones:
            raise UsageError(f"no replica of cluster {name!r} is in a known rack, so that nothing is known of zones")
        yield from ({"change": one, "fault": _said(unanswered[one])} for one in sorted(unanswered))
        matrices, least = _readers(zoned, readers)
        matrices = {one: matrix for one, matrix in matrices.items() if one not in unanswered}
        changes = changes_of(zoned, even_shares(len(zoned.zones)), matrices, least=least)
        yield from change_rows(changes, price_per_gib)
    except BrokersideError as error:
        yield {"fault": str(error), REJECTED.name: partitions.rows.num_rows}


def _said(faults: list[str]) -> str:
    """Return the fault of one group, or how many groups have one and the least of the texts."""
    return min(faults) if len(faults) == 1 else f"{len(faults)} groups are not answered; one of them: {min(faults)}"


def _readers(partitions: ZonedPartitions, rows: pa.Table) -> tuple[dict[str, Int64Array], Crossing]:
    """Return the matrix of readers of each assignor, and the least that all groups fetch across zones."""
    matrices = {NOW: no_readers(partitions)}
    zones: dict[str | None, int] = {zone: place for place, zone in enumerate(partitions.zones)}
    zones |= {ELSEWHERE: len(zones), None: len(zones) + 1}
    is_sized = partitions.sizes is not None
    least = np.zeros(5, np.float64)
    for row in rows.to_pylist():
        if row["assignor"] == LEAST:
            names = ("reader_count", "crossing_count", "unknown_count", "fetched_bytes", "crossing_bytes")
            least += [float(row[name] or 0) for name in names]
        elif row["topic"] is not None:
            rows_of_topic = partitions.rows_of(row["topic"])
            if not 0 <= row["partition"] < len(rows_of_topic):
                raise UsageError(f"partition {row['partition']} of topic {row['topic']!r} is read, but not listed")
            matrix = matrices.setdefault(row["assignor"], no_readers(partitions))
            matrix[rows_of_topic[row["partition"]], zones[row["zone"]]] += row["reader_count"]
    count, crossing, unknown, size, crossing_bytes = least.tolist()
    return matrices, Crossing(
        count=count,
        crossing_count=crossing,
        unknown_count=unknown,
        size_bytes=size if is_sized else None,
        crossing_bytes=crossing_bytes if is_sized else None,
    )
