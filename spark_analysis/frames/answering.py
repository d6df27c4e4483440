"""Answer a question about many clusters in a task, from their sorted rows, with the code that the commands call.

The rows of an answer are the keys of a cluster, the columns of the question's table, `rejected_count` and `fault`. Rows
that cannot be used, and a cluster that contradicts itself or that a limit refuses, are a row with a `fault`, nulls, and
the number of rows of partitions that are in no answer because of it: the job goes on. The rows of brokers stand among
those of partitions (listed_brokers.py). If they lack a key that tells moments apart, they are the brokers of every
moment.

How: the clusters of a batch of rows are one view (broker/clusters.py), a view for each set of columns that they say, so
that a question is answered for all of them by the code that answers for one. A batch that is refused is halved until
the clusters at fault stand alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import ClusterView, Int64Array
from broker.clusters import Clusters
from broker.errors import BrokersideError, UsageError
from spark_analysis.frames.inputs import CLUSTER
from spark_analysis.frames.listed_brokers import OF_BROKER, split
from spark_analysis.frames.matrices import whole
from spark_analysis.frames.views import BROKER_NEEDED, alike, clusters_of_rows, partitions_put_aside, put_aside
from spark_analysis.tables.columns import IN_BATCH, KEY, Column, Table
from spark_analysis.tables.schemas import FAULT

Kernel: TypeAlias = Callable[[ClusterView], pa.Table]
"""Return the rows of an answer on one cluster, their columns by name; columns left out are null."""
Many: TypeAlias = Callable[[Clusters], pa.Table]
"""Return the rows of the answers on many clusters, with `IN_BATCH`."""
REJECTED: Final = Column(
    "rejected_count",
    "long",
    "Rows of partitions that are in no answer because of the fault; null in a good row",
    "rows",
    nullable=True,
)
_OF_RUN: Final = tuple(column.name for column in KEY)
_BATCH_ROWS: Final = 1 << 16


def answer_table(table: Table, keys: Sequence[str]) -> Table:
    """Return the columns of `table` that an answer has beside the keys, with `rejected_count` and `fault`."""
    left_out = {*_OF_RUN, *keys}
    columns: tuple[Column, ...] = tuple(column for column in table.columns if column.name not in left_out)
    return attrs.evolve(table, columns=(*columns, REJECTED, FAULT))


@attrs.define(eq=False)
class _Answers:
    """Collect the rows of some clusters: the tables, the faults, and of each row the place of one with its keys."""

    tables: list[pa.Table] = attrs.field(factory=list)
    table_rows: list[Int64Array] = attrs.field(factory=list)
    faults: list[tuple[str, int]] = attrs.field(factory=list)
    fault_rows: list[int] = attrs.field(factory=list)

    def add(self, key_rows: Int64Array, table: pa.Table) -> None:
        """Add answers on clusters."""
        if table.num_rows:
            self.tables.append(table)
            self.table_rows.append(key_rows)

    def add_fault(self, key_row: int, fault: str, rejected_count: int) -> None:
        """Add a row with a fault."""
        self.faults.append((fault, rejected_count))
        self.fault_rows.append(key_row)


@attrs.frozen(eq=False)
class _Rows:
    """Hold the usable rows of many clusters at one moment each, sorted by the numbers of their clusters.

    `key_rows` int64[K] is the place of a row that has the keys of each.
    """

    names: list[str]
    key_rows: Int64Array
    partitions: pa.Table
    of_partition: Int64Array
    brokers: pa.Table | None
    of_broker: Int64Array

    def of(self, clusters: Int64Array) -> Clusters:
        """Return some of the clusters, ascending; raise UsageError for rows that contradict each other."""
        names = [str(self.names[place] or "") for place in clusters.tolist()]
        if None in (self.names[place] for place in clusters.tolist()):  # Rows of brokers are left then.
            raise UsageError(f"brokers without {CLUSTER}: {self.of_broker.size}")
        brokers = None if self.brokers is None else _taken(self.brokers, self.of_broker, clusters)
        partitions = _taken(self.partitions, self.of_partition, clusters)
        return clusters_of_rows(names, partitions, (None, self.of_broker) if brokers is None else brokers)

    def counts(self, of: Int64Array) -> Int64Array:
        """Return the number of rows of each cluster."""
        return np.bincount(of, minlength=len(self.names)).astype(np.int64)


def _taken(rows: pa.Table, of: Int64Array, clusters: Int64Array) -> tuple[pa.Table, Int64Array]:
    """Return the rows of some clusters, and these numbered anew."""
    starts, ends = np.searchsorted(of, clusters), np.searchsorted(of, clusters, side="right")
    numbered = np.repeat(np.arange(clusters.size), ends - starts)
    if clusters.size == 1:
        return rows.slice(int(starts[0]), int(ends[0] - starts[0])), numbered
    if numbered.size == rows.num_rows and (np.diff(clusters) > 0).all():
        return rows, numbered
    places = np.arange(numbered.size) + np.repeat(starts - np.cumsum(ends - starts) + (ends - starts), ends - starts)
    return rows.take(pa.array(places)), numbered


@attrs.frozen
class Work:
    """Answer the question on many clusters at once, in a task.

    `keys` tell clusters and moments apart; rows are sorted by `shared`, those keys that rows of brokers have, too. The
    question is `many`, of all clusters of a batch, or `kernel`, of one cluster after another.
    """

    keys: tuple[str, ...]
    shared: tuple[str, ...]
    table: Table
    kernel: Kernel | None = None
    many: Many | None = None

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the answers on the clusters of sorted rows."""
        for rows, ends in whole_clusters(batches, self.shared):
            found = _Answers()
            usable = self._usable(rows, ends, found)
            for places in self._batches(usable):
                self._answer(usable, places, found)
            if found.tables:
                same = all(one.schema.equals(found.tables[0].schema) for one in found.tables)
                joined = pa.concat_tables(found.tables, promote_options="none" if same else "permissive")
                yield from self._keyed(rows, np.concatenate(found.table_rows), joined)
            if found.faults:
                names = (FAULT.name, REJECTED.name)
                listed = pa.Table.from_pylist([dict(zip(names, fault, strict=True)) for fault in found.faults])
                yield from self._keyed(rows, np.array(found.fault_rows), listed)

    def _usable(self, rows: pa.Table, ends: Int64Array, found: _Answers) -> _Rows:
        """Return the rows that can be used, with a fault for the others."""
        cluster = np.repeat(np.arange(ends.size), np.diff(ends, prepend=0))
        key_rows = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
        partitions, brokers, of_broker = rows, None, cluster[:0]
        if OF_BROKER in rows.column_names:
            places, brokers = split(rows)
            of_broker, cluster = np.delete(cluster, places), cluster[places]
            partitions = rows.take(places)
            if len(self.shared) < len(self.keys):
                key_rows, order, cluster, of_moment = _moments(rows, places, cluster, self.keys)
                partitions = partitions.take(order)
                brokers, of_broker = _taken(brokers, of_broker, of_moment)
        count = key_rows.size
        aside = partitions_put_aside(partitions, cluster, count)
        faults = dict(aside.faults)
        if aside.faults:
            kept = np.flatnonzero(~aside.rows)
            partitions, cluster = partitions.take(kept), cluster[kept]
        if brokers is not None:
            aside = put_aside(brokers, of_broker, count, BROKER_NEEDED)
            if aside.faults:
                kept = np.flatnonzero(~aside.rows)
                brokers, of_broker = brokers.take(kept), of_broker[kept]
            for place, (fault, _) in aside.faults.items():
                if faults.get(place, ("", 0))[0] != fault:
                    found.add_fault(int(key_rows[place]), fault, 0)
        for place, (fault, rejected_count) in faults.items():
            found.add_fault(int(key_rows[place]), fault, rejected_count)
        names: list[Any] = (
            whole(rows[CLUSTER]).take(pa.array(key_rows)).to_pylist() if CLUSTER in self.keys else [""] * count
        )
        return _Rows(names, key_rows, partitions, cluster, brokers, of_broker)

    def _batches(self, usable: _Rows) -> Iterator[Int64Array]:
        """Yield the places of clusters that are answered together."""
        counts = usable.counts(usable.of_partition)
        counts = counts if usable.brokers is None else counts + usable.counts(usable.of_broker)
        asked = counts > 0
        if self.many is None:
            yield from np.flatnonzero(asked)[:, None]
            return
        kinds = alike((usable.partitions, usable.of_partition), (usable.brokers, usable.of_broker), counts.size)
        for kind in np.unique(kinds[asked]).tolist():
            yield np.flatnonzero(asked & (kinds == kind))

    def _answer(self, usable: _Rows, places: Int64Array, found: _Answers) -> None:
        """Add the answers on some clusters; a batch that is refused is halved until the clusters at fault are alone."""
        try:
            clusters = usable.of(places)
            answer = self.many(clusters) if self.many is not None else in_batch(self._one(clusters.view), 0)
        except BrokersideError as error:
            if places.size > 1:
                for half in np.array_split(places, 2):
                    self._answer(usable, half, found)
                return
            rejected_count = int(np.count_nonzero(usable.of_partition == places[0]))
            found.add_fault(int(usable.key_rows[places[0]]), str(error), rejected_count)
            return
        found.add(usable.key_rows[places[answer[IN_BATCH].to_numpy()]], answer)

    def _one(self, view: ClusterView) -> pa.Table:
        assert self.kernel is not None
        return self.kernel(view)

    def _keyed(self, rows: pa.Table, key_rows: Int64Array, answers: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield answers with the keys of these rows, every column of its type; those left out are null."""
        places = pa.array(key_rows)
        columns: list[Any] = [whole(rows[key]).take(places) for key in self.keys]
        fields = [pa.field(key, rows.schema.field(key).type) for key in self.keys]
        for field in self.table.arrow_schema():
            has = field.name in answers.column_names
            columns.append(answers[field.name].cast(field.type) if has else pa.nulls(answers.num_rows, field.type))
            fields.append(pa.field(field.name, field.type))
        yield from pa.table(columns, schema=pa.schema(fields)).combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)


def is_named(keys: Mapping[str, Any]) -> bool:
    """Return whether the cluster that has these keys has a name, where its name is one of them."""
    return CLUSTER not in keys or bool(keys[CLUSTER].is_valid)


def shown_name(keys: Mapping[str, Any]) -> str:
    """Return the name of the cluster that has these keys; nothing where they do not name it."""
    name = keys[CLUSTER].as_py() if CLUSTER in keys else None
    return "" if name is None else str(name)


def in_batch(table: pa.Table, place: int) -> pa.Table:
    """Return the rows of an answer on one cluster with its place among the clusters of a batch."""
    return table.append_column(IN_BATCH, pa.array(np.full(table.num_rows, place)))


def _moments(
    rows: pa.Table, places: Int64Array, cluster: Int64Array, keys: Sequence[str]
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Return of rows of partitions at `places` what tells their moments apart, in order of cluster.

    They are the place of a row with each moment's keys, the order of rows by moment, the moment of each row in it, and
    the cluster of each moment.
    """
    codes = np.column_stack((cluster, codes_of(rows, keys)[places]))
    moments, firsts, of = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(of.ravel(), kind="stable")
    return places[firsts], order, of.ravel()[order].astype(np.int64), moments[:, 0]


def whole_clusters(batches: Iterable[pa.RecordBatch], keys: Sequence[str]) -> Iterator[tuple[pa.Table, Int64Array]]:
    """Yield the rows of whole clusters, with the end of each cluster's rows; rows with equal keys stand together."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        held_count = sum(each.num_rows for each in held)
        starts = held_count + _starts(batch, keys)
        if not held or _is_same(held[-1], batch, keys):
            starts = starts[1:]
        if starts.size:
            last = int(starts[-1])
            yield pa.Table.from_batches([*held, batch.slice(0, last - held_count)]).combine_chunks(), starts
            held = [batch.slice(last - held_count)]
        else:
            held.append(batch)
    if held:
        rows = pa.Table.from_batches(held).combine_chunks()
        yield rows, np.array([rows.num_rows], dtype=np.int64)


def codes_of(rows: pa.Table | pa.RecordBatch, keys: Sequence[str]) -> Int64Array:
    """Return int64[rows, keys]: equal numbers where values are equal, nulls included."""
    columns: list[Any] = [whole(rows.column(key)).dictionary_encode(null_encoding="encode").indices for key in keys]
    numbers = [column.to_numpy(zero_copy_only=False).astype(np.int64) for column in columns]
    return np.column_stack(numbers)


def _starts(batch: pa.RecordBatch, keys: Sequence[str]) -> Int64Array:
    """Return where the rows of each cluster begin, 0 included."""
    codes = codes_of(batch, keys)
    changes = (codes[1:] != codes[:-1]).any(axis=1)
    return np.concatenate((np.zeros(1, np.int64), 1 + np.flatnonzero(changes)))


def _is_same(before: pa.RecordBatch, after: pa.RecordBatch, keys: Sequence[str]) -> bool:
    """Return whether the last row of one batch and the first of the next belong to one cluster."""
    return all(before.column(key)[before.num_rows - 1].equals(after.column(key)[0]) for key in keys)
