"""Hold target replicas for some partitions of a view: the value that plans, readers and what-ifs exchange.

Checked when one is made: rows are partitions of the view, each at most once; every target has a replica, and names only
brokers of the view, each once; -1 pads short rows. In a view taken during another reassignment the replicas listed are
that one's target followed by those that it removes, which is what Kafka compares with as well. A new replica is copied
from the leader, or, where none is named, the first current replica.

>>> from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
>>> view = ClusterView.build(
...     name="demo",
...     source="inline",
...     format="example",
...     brokers=[BrokerView(id=BrokerId(number)) for number in (1, 2, 3)],
...     topics=(TopicView("t"),),
...     partitions=PartitionTable(
...         topic_index=[0], partition_ids=[0], leader=[1], replicas=[[1, 2]], size_bytes=[7]
...     ),
... )
>>> plan = Reassignment(view=view, rows=[0], replicas=[[3, 2]])
>>> plan.added.tolist(), plan.removed.tolist(), plan.source.tolist(), plan.copy_bytes.tolist()
([[True, False]], [[True, False]], [1], [7])
>>> plan.rollback(plan.view).replicas.tolist()
[[1, 2]]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import PAD, SIZE_UNKNOWN, ClusterView, Int32Array, Int64Array, PartitionTable
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.row_flags import any_in_row, count_in_row, distinct_in_row, members

BoolMatrix = NDArray[np.bool_]


@attrs.frozen(kw_only=True)
class LogDirTarget:
    """Name the log directory that one replica of a target goes to; `place` is the place of its row in the plan."""

    place: int
    broker_id: BrokerId
    path: str


def _rows(value: Any) -> Int64Array:
    return np.ascontiguousarray(value, dtype=np.int64)


def _matrix(value: Any) -> Int32Array:
    matrix = np.ascontiguousarray(value, dtype=np.int32)
    return matrix if matrix.ndim == 2 else matrix.reshape(len(matrix), -1)


@attrs.frozen(kw_only=True, eq=False)
class Reassignment:
    """Hold the targets of N partitions of `view`: `rows` int64[N] are their rows, `replicas` int32[N, W] the targets.

    The first replica of a target is the preferred leader; -1 pads. `log_dirs` are the targets that name a directory.
    """

    view: ClusterView
    rows: Int64Array = attrs.field(converter=_rows)
    replicas: Int32Array = attrs.field(converter=_matrix)
    log_dirs: tuple[LogDirTarget, ...] = ()

    def __attrs_post_init__(self) -> None:
        count = self.view.partitions.count
        if self.rows.shape != (self.replicas.shape[0],):
            raise UsageError(f"{self.rows.shape[0]} rows need as many targets; there are {self.replicas.shape[0]}")
        if self.rows.size and not 0 <= int(self.rows.min()) <= int(self.rows.max()) < count:
            raise UsageError(f"a reassignment names a row outside 0..{count - 1}")
        seen = np.bincount(self.rows, minlength=1)
        if seen.max(initial=0) > 1:
            raise UsageError(f"a reassignment names {self.name(int(np.argmax(self.rows == seen.argmax())))} twice")
        self._check_targets()

    def _check_targets(self) -> None:
        if not self.count:
            return
        held = self.replicas >= 0
        if not held[:, :1].all():
            place = int(np.argmin(any_in_row(held[:, :1])))
            raise UsageError(f"the target of {self.name(place)} has no replica at its beginning")
        if (held[:, 1:] & ~held[:, :-1]).any():
            raise UsageError("the padding of a target stands between its replicas")
        ids = self.view.broker_ids
        known = np.isin(self.replicas, ids) | ~held
        if not known.all():
            place = int(np.argmin(known.all(axis=1)))
            stranger = int(self.replicas[place][~known[place]][0])
            raise UsageError(f"the target of {self.name(place)} names broker {stranger}, which the view does not list")
        twice = distinct_in_row(self.replicas) < count_in_row(held)
        if twice.any():
            raise UsageError(f"the target of {self.name(int(np.argmax(twice)))} names a broker twice")

    @property
    def count(self) -> int:
        """Return the number of partitions with a target."""
        return int(self.rows.size)

    def name(self, place: int) -> str:
        """Return topic and partition of the target at `place`, such as "orders-3"."""
        return partition_name(self.view, int(self.rows[place]))

    @cached_property
    def current(self) -> Int32Array:
        """Return the replicas that the view lists for each row, int32[N, V]."""
        return np.ascontiguousarray(self.view.partitions.replicas[self.rows])

    @cached_property
    def added(self) -> BoolMatrix:
        """Return which replicas of each target are new, bool[N, W] beside `replicas`."""
        return (self.replicas >= 0) & ~members(self.replicas, self.current)

    @cached_property
    def removed(self) -> BoolMatrix:
        """Return which current replicas of each row are not in its target, bool[N, V] beside `current`."""
        return (self.current >= 0) & ~members(self.current, self.replicas)

    @cached_property
    def changes(self) -> NDArray[np.bool_]:
        """Return which rows differ from what the view lists, in brokers or in order; bool[N]."""
        width = max(self.replicas.shape[1], self.current.shape[1])
        return any_in_row(widened(self.replicas, width) != widened(self.current, width))

    @cached_property
    def source(self) -> Int32Array:
        """Return the broker from which each row's new replicas are copied, int32[N]: the leader or its substitute.

        -1 for a partition without a replica.
        """
        first = self.current[:, 0] if self.current.shape[1] else np.full(self.count, PAD, dtype=np.int32)
        known = self.view.partitions.leader
        if known is None:
            return first
        leader = known[self.rows]
        return np.where(leader >= 0, leader, first).astype(np.int32, copy=False)

    @cached_property
    def copy_bytes(self) -> Int64Array:
        """Return the bytes of one new replica of each row, int64[N]; -1 where the view does not say."""
        table = self.view.partitions
        each = np.full(self.count, SIZE_UNKNOWN, dtype=np.int64)
        if table.size_bytes is not None:
            each = table.size_bytes[self.rows]
        if table.replica_size_bytes is not None:
            mine = table.replica_size_bytes[self.rows]
            of_source = np.where(self.current == self.source[:, None], mine, SIZE_UNKNOWN)
            found = of_source.max(axis=1, initial=SIZE_UNKNOWN)
            each = np.where(found >= 0, found, each)
        return each

    def take(self, places: Any) -> Reassignment:
        """Return the part of this reassignment at `places`, in that order; log directories go with their rows."""
        chosen = _rows(places)
        new_place = {old: new for new, old in enumerate(chosen.tolist())} if self.log_dirs else {}
        dirs = tuple(
            attrs.evolve(each, place=new_place[each.place]) for each in self.log_dirs if each.place in new_place
        )
        return Reassignment(view=self.view, rows=self.rows[chosen], replicas=self.replicas[chosen], log_dirs=dirs)

    def parts(self, batches: Sequence[Int64Array]) -> tuple[Reassignment, ...]:
        """Return the reassignment of each batch of places over the same view, rows in the order of the view."""
        return tuple(self.take(batch[np.argsort(self.rows[batch])]) for batch in batches)

    def rollback(self, after: ClusterView) -> Reassignment:
        """Return the reassignment of `after` that restores the replicas of this view, in their order."""
        return Reassignment(view=after, rows=self.rows, replicas=self.current)

    def table(self) -> PartitionTable:
        """Return the view's partitions with the target replicas in their rows, and nothing else changed."""
        table = self.view.partitions
        width = max(table.replicas.shape[1], self.replicas.shape[1])
        replicas = widened(table.replicas, width).copy()
        replicas[self.rows] = widened(self.replicas, width)
        each, sizes = table.size_bytes, self._sizes(width)
        if each is not None and sizes is not None:
            each = each.copy()
            each[self.rows] = sizes[self.rows].max(axis=1, initial=SIZE_UNKNOWN)
        return attrs.evolve(table, replicas=replicas, size_bytes=each, replica_size_bytes=sizes)

    def _sizes(self, width: int) -> Int64Array | None:
        """Return the size of each replica afterwards, int64[P, width]: kept ones keep theirs, new ones copy."""
        known = self.view.partitions.replica_size_bytes
        if known is None:
            return None
        sizes = _wider(known, width).copy()
        mine, target = known[self.rows], np.full(self.replicas.shape, SIZE_UNKNOWN, dtype=np.int64)
        for column in range(self.current.shape[1]):
            same = (self.replicas == self.current[:, column, None]) & (self.replicas >= 0)
            target = np.where(same, mine[:, column, None], target)
        target = np.where(self.added, self.copy_bytes[:, None], target)
        sizes[self.rows] = _wider(target, width)
        return sizes


def partition_name(view: ClusterView, row: int) -> str:
    """Return topic and partition of a row of a view, such as "orders-3"."""
    table = view.partitions
    return f"{view.topics[int(table.topic_index[row])].name}-{int(table.partition_ids[row])}"


def partition_names(view: ClusterView, rows: Int64Array, shown_max: int) -> list[str]:
    """Return the names of the first rows by topic and partition, whatever order the view lists them in."""
    table = view.partitions
    ranks = np.argsort(np.argsort(np.array([topic.name for topic in view.topics], dtype=object)))
    order = np.lexsort((table.partition_ids[rows], ranks[table.topic_index[rows]]))[:shown_max]
    return [partition_name(view, row) for row in rows[order].tolist()]


def packed(matrix: Int32Array) -> Int32Array:
    """Return the rows with their padding moved to the end; the order of the others stays."""
    pads = matrix < 0
    if not (pads[:, :-1] & ~pads[:, 1:]).any():
        return matrix
    return np.take_along_axis(matrix, np.argsort(pads, axis=1, kind="stable"), axis=1)


def widened(matrix: Int32Array, width: int) -> Int32Array:
    """Return `matrix` with `width` columns, padded by -1; the same matrix if it is as wide."""
    if matrix.shape[1] == width:
        return matrix
    return np.pad(matrix, ((0, 0), (0, width - matrix.shape[1])), constant_values=PAD)


def _wider(sizes: Int64Array, width: int) -> Int64Array:
    return np.pad(sizes, ((0, 0), (0, width - sizes.shape[-1])), constant_values=SIZE_UNKNOWN)
