"""Answer a question about each consumer group of a DataFrame, many groups a task.

Members and partitions meet by the columns of `KEYS` that both DataFrames have, `cluster` at least, or those given as
`by`. Groups are spread by a hash of their names over `BUCKET_COUNT` tasks a cluster, and each gets the partitions of
the topics that its groups subscribe to. A member that cannot be used is a row with a `fault`, and its group is answered
without it; a group that cannot be answered is a row with a `fault`. A topic that no partition names is a topic without
metadata. What a group holds is known if `held` is null in no row of its members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from broker.errors import BrokersideError, UsageError
from broker.ids import PartitionId, TopicPartition
from placement.consumer.group import Member
from placement.traffic.consumers import Consumers
from placement.traffic.zones import ZonedPartitions
from spark_analysis.answers.group_rows import GroupKernel, GroupsAsked
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.frames.answering import REJECTED, is_named, shown_name
from spark_analysis.frames.inputs import CLUSTER, KEYS, by_default, chosen, quoted, refuse_missing, refuse_other
from spark_analysis.frames.matrices import INT_MAX
from spark_analysis.frames.views import JUDGED, PARTITION_NEEDED, SIZES, usable, usable_partitions, view_of_rows
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import FAULT

GROUP_REJECTED: Final = attrs.evolve(
    REJECTED, comment="Rows of members that are in no answer because of the fault; null in a good row"
)
BUCKET_COUNT: Final = 32
BUCKET: Final = "group_bucket"
READ_BUCKET: Final = "read_bucket"
ZONED: Final = (*JUDGED, "racks", *SIZES, "fault")
"""The optional columns of partitions by which groups are answered."""
MEMBER_NEEDED: Final = ("group", "member_id", "topics")
MEMBER_OPTIONAL: Final = ("rack", "instance_id", "held", "fault")


def shared_keys(members: DataFrame, partitions: DataFrame, by: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns by which members and partitions of one cluster meet; raise UsageError if one is missing."""
    if by is not None and (isinstance(by, str) or not by):
        raise UsageError(f"by is {by!r}; allowed is a list of one column or more of both DataFrames")
    wanted = tuple(by) if by is not None else (CLUSTER,)
    refuse_other("members", members)
    refuse_other("partitions", partitions)
    refuse_missing("members", wanted, members.columns)
    refuse_missing("partitions", wanted, partitions.columns)
    if by is not None:
        return wanted
    both = [name for name in KEYS if name in members.columns and name in partitions.columns]
    # Each has the file that it was read from.
    return by_default("clusters", (name for name in both if name != "source"))


def per_group(
    members: DataFrame,
    partitions: DataFrame,
    table: Table,
    kernel: GroupKernel,
    asked: GroupsAsked,
    *,
    by: Sequence[str] | None = None,
) -> DataFrame:
    """Return the kernel's rows of all groups, as rows of `table`; raise UsageError for columns that do not fit."""
    keys = shared_keys(members, partitions, by)
    bucket = F.pmod(F.xxhash64("group"), F.lit(BUCKET_COUNT)).cast("int").alias(BUCKET)
    given = chosen(members, "members", MEMBER_NEEDED, MEMBER_OPTIONAL, keys).select("*", bucket)
    listed = chosen(partitions, "partitions", PARTITION_NEEDED, ZONED, keys)
    read = _read_by_bucket(listed, given, keys)
    documented = answer_columns(table, keys)
    types = {field.name: field for field in given.schema.fields}
    fields = [StructField(key, types[key].dataType, True, types[key].metadata) for key in keys]
    schema = StructType(fields + list(spark_schema_of(documented).fields))
    work = _GroupWork(keys, documented, kernel, asked)
    meet = given.groupBy(*keys, BUCKET).cogroup(read.groupBy(*keys, READ_BUCKET))
    # Spark reads a function's annotations; without any, tables go in and a table comes out.
    return meet.applyInArrow(lambda key, rows, found: work.answered(key, rows, found), schema)


def _read_by_bucket(listed: DataFrame, given: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the partitions of the topics that each bucket of groups subscribes to; a null key is equal to a null.

    The bucket has another name there, since Spark takes one column on both sides of a cogroup for an ambiguity.
    """
    of_reader = {key: f"{READ_BUCKET}_{place}" for place, key in enumerate((*keys, "topic"))}
    subscribed = given.select(*(F.col(quoted(key)) for key in keys), BUCKET, F.explode("topics").alias("topic"))
    wanted = subscribed.select(
        *(F.col(quoted(key)).alias(name) for key, name in of_reader.items()), F.col(BUCKET).alias(READ_BUCKET)
    ).distinct()
    same = [F.col(quoted(key)).eqNullSafe(F.col(name)) for key, name in of_reader.items() if key != "topic"]
    met = F.col("topic") == F.col(of_reader["topic"])
    return listed.join(wanted, on=[*same, met], how="inner").drop(*of_reader.values())


def answer_columns(table: Table, keys: Sequence[str]) -> Table:
    """Return the columns of `table` beside the keys, with `rejected_count` and `fault`."""
    kept = tuple(column for column in table.columns if column.name not in keys and column != FAULT)
    return attrs.evolve(table, columns=(*kept, GROUP_REJECTED, FAULT))


@attrs.frozen
class _GroupWork:
    """Answer the question on the groups of one bucket after another, in a task."""

    keys: tuple[str, ...]
    table: Table
    kernel: GroupKernel
    asked: GroupsAsked

    def answered(self, key: Sequence[Any], rows: pa.Table, found: pa.Table) -> pa.Table:
        """Return the answer on the groups of one bucket."""
        values = dict(zip(self.keys, key, strict=False))  # The bucket comes last, and is no column.
        fields = [pa.field(name, scalar.type) for name, scalar in values.items()]
        documented = [pa.field(field.name, field.type) for field in self.table.arrow_schema()]
        known = {field.name for field in documented}
        answers = [{name: row[name] for name in row if name in known} for row in self._rows(key, rows, found)]
        table = pa.Table.from_pylist(answers, schema=pa.schema(documented))
        constants: list[Any] = [pa.repeat(scalar, table.num_rows) for scalar in values.values()]
        return pa.table([*constants, *table.columns], schema=pa.schema([*fields, *documented]))

    def _rows(self, key: Sequence[Any], rows: pa.Table, found: pa.Table) -> Iterator[dict[str, Any]]:
        values = dict(zip(self.keys, key, strict=False))
        members, partitions = usable(rows, MEMBER_NEEDED), usable_partitions(found)
        if members.fault is not None:
            yield {"fault": members.fault, REJECTED.name: members.rejected_count}
        if not is_named(values):
            return
        if partitions.fault is not None and partitions.fault != members.fault:
            yield {"fault": partitions.fault, REJECTED.name: 0}
        name = shown_name(values)
        try:
            zoned = ZonedPartitions.of(view_of_rows(name, partitions.rows, None))
        except BrokersideError as error:
            for group, some in groups_of(members.rows):
                yield {"group": group, "fault": str(error), REJECTED.name: len(some)}
            return
        groups = []
        for group, some in groups_of(members.rows):
            try:
                is_held_known = all(row.get("held") is not None for row in some)
                found_members = [_member(row) for row in some]
                groups.append(Consumers.of(group, found_members, zoned, is_held_known=is_held_known))
            except BrokersideError as error:
                yield {"group": group, "fault": str(error), REJECTED.name: len(some)}
        yield from self.kernel(zoned, groups, self.asked)


def groups_of(rows: pa.Table) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each group with the rows of its members, both in order of their ids, whatever the order of the rows."""
    if not rows.num_rows:
        return
    ordered = rows.sort_by([("group", "ascending"), ("member_id", "ascending")])
    names = [str(name) for name in ordered["group"].to_pylist()]
    listed = ordered.to_pylist()
    start = 0
    for end in range(1, len(names) + 1):
        if end == len(names) or names[end] != names[start]:
            yield names[start], listed[start:end]
            start = end


def _member(row: dict[str, Any]) -> Member:
    for name in ("topics", "held"):
        if any(one is None for one in row.get(name) or ()):
            raise UsageError(f"the list in column {name!r} of member {row['member_id']!r} has a null in it")
    return Member(
        id=row["member_id"],
        topics=tuple(row["topics"]),
        rack=row.get("rack") or None,
        instance_id=row.get("instance_id") or None,
        owned=tuple(_held(text) for text in row.get("held") or ()),
        generation=1 if row.get("held") else -1,
    )


def _held(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    is_number = number.isascii() and number.isdecimal() and len(number) <= len(str(INT_MAX)) and int(number) <= INT_MAX
    if not topic or not is_number:
        raise UsageError(f"a member holds {text[:80]!r}; a partition is TOPIC-NUMBER, such as orders-0")
    return TopicPartition(topic, PartitionId(int(number)))


__all__ = ("BUCKET_COUNT", "answer_columns", "groups_of", "per_group", "shared_keys")
