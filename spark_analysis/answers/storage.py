"""Ask what topics take on brokers: replicas, bytes, and the broker with most bytes of a topic.

What it decides: the table `storage`: a row per cluster and topic; and what is shown of many clusters: the means of each
shape and placer, and the largest topics.

Constraints: bytes are null where the input does not say them (`--sizes`).

How: `held_rows` counts what each broker holds of each topic.

Source: placement/balance/loads.py.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from broker.cluster import ClusterView
from broker.units import format_size
from spark_analysis.answers.held_rows import held_rows
from spark_analysis.answers.question import Field, Question, Shown, ShownTable, Values
from spark_analysis.answers.sums import means
from spark_analysis.tables.columns import KEY, Column, Table

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
