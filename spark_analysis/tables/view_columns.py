"""Turn a ClusterView into the columns that data sources give to Spark, a batch at a time.

No Python object per partition is made; a batch has at most `BATCH_ROWS` rows. What the input does not say is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import BROKER_FLAGS, ClusterView, Int64Array, PartitionTable
from placement.balance.audit import least_isr
from placement.balance.loads import loads, partition_bytes, replica_bytes
from spark_analysis.tables.columns import Table
from spark_analysis.tables.lists import RackLists, id_lists, leader_column, size_lists

BATCH_ROWS: Final = 1 << 16  # Some ten megabytes of partitions.
_LISTS: Final = ("isr", "elr", "last_known_elr", "observers", "offline", "adding", "removing")


@attrs.define(eq=False)
class Constants:
    """Hold the columns that have one value in all rows, and the longest column made of each so far."""

    values: Mapping[str, Any] = attrs.field(factory=dict)
    _made: dict[str, Any] = attrs.field(init=False, factory=dict)

    def column(self, name: str, kind: Any, count: int) -> Any:
        """Return `count` times the value of a column; batches of one size share one column."""
        made = self._made.get(name)
        if made is None or len(made) < count:
            made = self._made[name] = pa.repeat(pa.scalar(self.values[name], kind), count)
        return made.slice(0, count)


@attrs.frozen(eq=False)
class ColumnRows:
    """Hold `count` rows by column name; an integer -1 of a numpy array is an unknown value."""

    count: int
    values: Mapping[str, Any]

    def batch(self, table: Table, constants: Constants) -> pa.RecordBatch:
        """Return the rows as a batch of `table`; `constants` have one value for all rows, other columns are null."""
        arrays: list[Any] = []
        for field in table.arrow_schema():
            kind: Any = field.type
            if field.name in constants.values:
                arrays.append(constants.column(field.name, kind, self.count))
            else:
                arrays.append(_array(self.values.get(field.name), kind, self.count))
        return pa.RecordBatch.from_arrays(arrays, names=list(table.column_names))


def partition_columns(view: ClusterView, min_insync_replicas: int | None) -> Iterator[ColumnRows]:
    """Yield the partitions of `view` in batches; `min_insync_replicas` is for topics that do not show their own."""
    table = view.partitions
    names: Any = pa.array([topic.name for topic in view.topics], type=pa.string())
    racks = RackLists.of(view)
    least, sizes = least_isr(view, min_insync_replicas), partition_bytes(table)
    each = replica_bytes(table)
    for start in range(0, table.count, BATCH_ROWS):
        run = slice(start, min(start + BATCH_ROWS, table.count))
        values = {
            "topic": names.take(pa.array(table.topic_index[run])),
            "partition": pa.array(table.partition_ids[run]),
            "leader": leader_column(None if table.leader is None else table.leader[run]),
            "replicas": id_lists(table.replicas[run]),
            "racks": racks.lists(table.replicas[run]),
            "min_insync_replicas": None if least is None else least[run],
            "size_bytes": None if sizes is None else sizes[run],
            "replica_size_bytes": None if each is None else size_lists(table.replicas[run], each[run]),
            **{name: _lists(table, name, run) for name in _LISTS},
        }
        yield ColumnRows(run.stop - run.start, values)


def broker_columns(view: ClusterView) -> ColumnRows:
    """Return the brokers of `view` with what they hold."""
    held = loads(view).brokers
    brokers = view.brokers
    values = {
        "broker_id": pa.array(view.broker_ids),
        "rack": [broker.rack for broker in brokers],
        **{name: pa.array(view.flag(name)) for name in BROKER_FLAGS},
        "host": [broker.host for broker in brokers],
        "replica_count": held.replica_count,
        "leader_count": held.leader_count,
        "size_bytes": held.size_bytes,
    }
    return ColumnRows(len(brokers), values)


def cluster_columns(view: ClusterView) -> ColumnRows:
    """Return the one row of `view`."""
    complete, held = view.partitions_complete, loads(view).brokers
    values = {
        "format": view.format,
        "broker_count": len(view.brokers),
        "fenced_broker_count": sum(broker.fenced for broker in view.brokers),
        "rack_count": len(view.racks),
        "topic_count": len(view.topics) if complete else None,
        "partition_count": view.partitions.count if complete else None,
        "replica_count": _total(held.replica_count),
        "size_bytes": _total(held.size_bytes),
        "partitions_complete": view.wholeness.is_whole,
        "notes": list(view.notes),
    }
    return ColumnRows(1, {name: [value] for name, value in values.items()})


def _total(column: Int64Array | None) -> int | None:
    return None if column is None or (column < 0).any() else int(column.sum())


def _lists(table: PartitionTable, name: str, run: slice) -> Any:
    rows = getattr(table, name)
    return id_lists(None if rows is None else rows[run])


def _array(values: Any, kind: Any, count: int) -> Any:
    if values is None:
        return pa.nulls(count, kind)
    if isinstance(values, np.ndarray) and values.dtype.kind == "i":
        return pa.array(values, kind, mask=values < 0)
    return values if isinstance(values, pa.Array) else pa.array(values, kind)
