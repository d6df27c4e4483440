"""Ask what topics take on brokers: replicas, bytes, and the broker with most bytes of a topic.

It gives the table `storage`: a row per cluster and topic; and what is shown of many clusters: the means of each shape
and placer, and the largest topics. Bytes are null where the input does not say them (`--sizes`)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.broker_rows import broker_rows
from broker.cluster import PAD, ClusterView, Int64Array
from broker.units import format_size
from placement.balance.loads import leaders, replica_bytes
from spark_analysis.answers.question import Field, Question, Shown, ShownTable, Values
from spark_analysis.answers.sums import means
from spark_analysis.tables.columns import KEY, Column, Table
from spark_analysis.tables.limits import check_listed

_BYTES: Final = "bytes"
STORAGE: Final = Table(
    "storage",
    "one row per cluster and topic that holds replicas",
    (
        *KEY,
        Column("topic", "string", "Topic"),
        Column("broker_count", "long", "Brokers that hold some of it", "brokers"),
        Column("replica_count", "long", "Replicas", "replicas"),
        Column("size_bytes", "long", "Bytes of all its replicas", _BYTES, nullable=True),
        Column("size_bytes_max", "long", "Most of these bytes on one broker", _BYTES, nullable=True),
    ),
)
LARGEST_SHOWN: Final = 20
_COUNTED: Final = (Field("broker_count", "brokers", "mean"), Field("replica_count", "replicas", "mean"))
_SIZES: Final = (Field("size_bytes", "bytes", "bytes"), Field("size_bytes_max", "most on one broker", "bytes"))
_NO_ROWS: Final = np.zeros(0, np.int64)


def storage_table(view: ClusterView) -> pa.Table:
    """Return the topics of one cluster, a row each, in order of name."""
    held = held_rows(view)
    has_bytes = "size_bytes" in held.column_names
    sums: list[Any] = [("broker_id", "count"), ("replica_count", "sum")]
    sums += [("size_bytes", "sum"), ("size_bytes", "max")] if has_bytes else []
    found = held.group_by("topic").aggregate(sums).sort_by("topic")
    columns: dict[str, Any] = {"topic": found["topic"], "broker_count": found["broker_id_count"]}
    columns |= {"replica_count": found["replica_count_sum"]}
    if has_bytes:
        columns |= {"size_bytes": found["size_bytes_sum"], "size_bytes_max": found["size_bytes_max"]}
    return pa.table(columns)


def _answer(view: ClusterView, _: Values) -> pa.Table:
    return storage_table(view)


def _show(rows: pa.Table, _: Values) -> Shown:
    fields = (*_COUNTED, *_SIZES)
    by_placer = ShownTable(
        "by_placer",
        "Means over topics",
        (Field("shape", "shape"), Field("placer", "placer"), *fields),
        means(rows, ("shape", "placer"), [field.key for field in fields]),
    )
    named = (Field("cluster", "cluster"), Field("placer", "placer"), Field("topic", "topic"), *fields)
    sized = rows.filter(pc.is_valid(rows["size_bytes"]))
    order: list[Any] = [("size_bytes", "descending"), *((name, "ascending") for name in ("cluster", "placer", "topic"))]
    first = sized.sort_by(order).slice(0, LARGEST_SHOWN).to_pylist()
    largest = ShownTable(
        "largest", "The topics with most bytes", named, tuple(tuple(row[field.key] for field in named) for row in first)
    )
    return Shown(_lead(sized), (by_placer, largest) if first else (by_placer,))


def _lead(sized: pa.Table) -> str:
    """Return how much the topics hold: the most of any placer, as each places the same topics."""
    placed = sized.group_by("placer").aggregate([("size_bytes", "sum")])
    if not placed.num_rows:
        return "The input does not say sizes; --sizes gives them."
    again = ", as each placer places them" if placed.num_rows > 1 else ""
    return f"The topics hold {format_size(pc.max(placed['size_bytes_sum']).as_py())} in all replicas{again}."


QUESTION: Final = Question(table=STORAGE, title="What do topics take?", answer=_answer, show=_show)


def held_rows(view: ClusterView) -> pa.Table:
    """Return one row per topic and broker that holds some of it; raise UsageError if only a part is listed."""
    check_listed(view, "topics are not known")
    table, broker_count = view.partitions, len(view.brokers)
    holds = table.replicas != PAD
    topics = table.topic_index.astype(np.int64)
    codes = (np.repeat(topics, holds.sum(axis=1)) * broker_count) + broker_rows(view.broker_ids, table.replicas[holds])
    pairs, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    names: Any = pa.array([topic.name for topic in view.topics], pa.string())
    columns: dict[str, Any] = {
        "topic": names.take(pa.array(pairs // max(broker_count, 1))),
        "broker_id": pa.array(view.broker_ids[pairs % max(broker_count, 1)] if len(pairs) else _NO_ROWS),
        "replica_count": pa.array(counts.astype(np.int64)),
    }
    leader, sizes = leaders(table), replica_bytes(table)
    if leader is not None:
        columns["leader_count"] = pa.array(_led(view, topics, leader, pairs))
    if sizes is not None:
        sums = np.zeros(len(pairs), np.int64)
        np.add.at(sums, places.ravel(), sizes[holds])
        columns["size_bytes"] = pa.array(sums)
    return pa.table(columns)


def _led(view: ClusterView, topics: Int64Array, leader: Any, pairs: Int64Array) -> Int64Array:
    """Return how many partitions each pair of a topic and a broker leads."""
    has = np.flatnonzero(np.isin(leader, view.broker_ids))
    codes = topics[has] * len(view.brokers) + broker_rows(view.broker_ids, leader[has])
    places = np.searchsorted(pairs, codes)
    inside = places < len(pairs)
    inside[inside] = pairs[places[inside]] == codes[inside]  # A leader may stand outside the replicas for a moment.
    return np.bincount(places[inside], minlength=len(pairs)).astype(np.int64)
