"""Count what clusters and consumer groups send across zones, beside the least possible, and what changes save.

What it decides: `groups` has a row per group and assignor: partitions and bytes fetched across zones from leaders and
from the closest replica (KIP-392), beside the least of any assignment. `clusters` has a row per cluster and change:
what produce, replication and consume send across zones now, with the closest replica, with another assignor, with
leaders moved, and the least of each flow apart; with prices.

Constraints: as groups.py. Zones are the `racks` of the partitions. Bytes are those of `produced_bytes` of the
partitions where that column is there: bytes that producers send in the period asked about; else those of the largest
replica. Producers are spread evenly over the zones of the cluster's replicas.

How: groups are assigned many a task; what they read from each zone is summed by Spark, and each cluster's changes are
computed from these sums, whatever the number of its groups.

Source: placement/traffic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from placement.consumer.registry import KAFKAS
from placement.traffic.consumers import NOW
from placement.traffic.crossing import PRICE_PER_GIB
from spark_analysis.answers.group_rows import reader_rows, traffic_rows
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.frames.answering import REJECTED
from spark_analysis.frames.change_rows import changes_table
from spark_analysis.frames.inputs import chosen, refuse_other
from spark_analysis.frames.per_group import per_group, shared_keys
from spark_analysis.frames.views import PARTITION_NEEDED, PARTITION_OPTIONAL
from spark_analysis.questions.groups import groups_asked
from spark_analysis.tables.columns import Column
from spark_analysis.tables.schemas import FAULT, GROUP_TRAFFIC, READERS, TRAFFIC_CHANGES

ASSIGNORS: Final = (NOW, *KAFKAS)
PRODUCED: Final = "produced_bytes"
_REJECTED: Final = attrs.evolve(
    REJECTED, comment="Rows of partitions and of members that are in no answer because of the fault; null in a good row"
)
_SUMS: Final = ("reader_count", "crossing_count", "unknown_count", "fetched_bytes", "crossing_bytes")


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
    listed = chosen(sized, "partitions", PARTITION_NEEDED, PARTITION_OPTIONAL, keys)
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
