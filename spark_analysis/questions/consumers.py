"""Ask how each of Kafka's assignors would serve consumer groups: evenness, traffic across zones, what moves.

What it decides: the table `consumers`: a row per cluster and assignor, summed over groups that are drawn as for
traffic.py; and what is shown of many clusters: the mean of each assignor. What moves is counted from the assignment of
range, the default of clients.

Constraints: zones are racks; a fetch crosses from the leader, or from the closest replica (KIP-392).

How: `placement.traffic` draws and counts; `placement.consumer` assigns.

Example: QUESTION.rows(view, QUESTION.values({"members": 12})) is the Arrow table of one cluster.

Left out: real groups, which `groups` of this package takes as DataFrames.

Source: placement/consumer and placement/traffic.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from broker.cluster import ClusterView
from placement.consumer.registry import KAFKAS
from placement.traffic import ZonedPartitions, group_traffic
from placement.traffic.least import least_fetched
from spark_analysis.questions.question import Field, Question, Shown, ShownTable, Values
from spark_analysis.questions.sums import means
from spark_analysis.questions.traffic import CLASSIC, GROUPS, drawn_groups
from spark_analysis.tables.columns import KEY, Column, Table

_FETCHES: Final = "fetches"
CONSUMERS: Final = Table(
    "consumers",
    "one row per cluster and assignor, summed over its groups",
    (
        *KEY,
        Column("assignor", "string", "Kafka's name of the assignor"),
        Column("group_count", "long", "Groups", "groups"),
        Column("uneven_group_count", "long", "Groups in which two members differ by two partitions or more", "groups"),
        Column("fetched_count", "long", "Partitions that groups fetch", _FETCHES),
        Column("crossing_count", "long", "Fetches across zones from leaders; null where no rack is known", _FETCHES),
        Column("closest_count", "long", "Fetches across zones from the closest replica", _FETCHES),
        Column("least_count", "long", "Fewest fetches across zones of any assignment", _FETCHES),
        Column("moved_count", "long", "Partitions with another member than range gives them", "partitions"),
    ),
)
_SHOWN: Final = tuple(
    Field(name, title, "decimal")
    for name, title in (
        ("uneven_group_count", "uneven groups"),
        ("fetched_count", "fetches"),
        ("crossing_count", "across zones"),
        ("closest_count", "from the closest"),
        ("least_count", "least"),
        ("moved_count", "moved"),
    )
)


def consumers_table(view: ClusterView, values: Values) -> pa.Table:
    """Return what each assignor makes of the drawn groups of one cluster."""
    partitions = ZonedPartitions.of(view)
    rows = {name: dict.fromkeys(CONSUMERS.column_names[len(KEY) + 1 :], 0) for name in KAFKAS}
    for consumers in drawn_groups(partitions, values):
        least, now = least_fetched(partitions, consumers), consumers.assigned(CLASSIC)
        for name, row in rows.items():
            found = group_traffic(partitions, consumers, name)
            row["group_count"] += 1
            row["uneven_group_count"] += found.size_max - found.size_min > 1
            row["fetched_count"] += int(found.leader.count)
            row["crossing_count"] += int(found.leader.crossing_count)
            row["closest_count"] += int(found.closest.crossing_count)
            row["least_count"] += int(least.crossing_count)
            row["moved_count"] += int((consumers.assigned(name) != now).sum())
    unknown = {} if partitions.zones else dict.fromkeys(("crossing_count", "closest_count", "least_count"))
    listed = [{"assignor": name, **row, **unknown} for name, row in rows.items()]
    return pa.Table.from_pylist(listed, schema=pa.schema(list(CONSUMERS.arrow_schema())[len(KEY) :]))


def _show(rows: pa.Table, values: Values) -> Shown:
    table = ShownTable(
        "by_assignor",
        "Means over clusters",
        (Field("shape", "shape"), Field("placer", "placer"), Field("assignor", "assignor"), *_SHOWN),
        means(rows, ("shape", "placer", "assignor"), [field.key for field in _SHOWN]),
    )
    groups, members, topics = (int(values[name]) for name in ("groups", "members", "topics"))
    lead = f"{groups:,} groups a cluster, of {members:,} members on {topics:,} topics each, are drawn and assigned."
    return Shown(lead, (table,))


QUESTION: Final = Question(
    table=CONSUMERS,
    title="Which assignor suits the consumers?",
    answer=consumers_table,
    show=_show,
    assumptions=GROUPS,
)
