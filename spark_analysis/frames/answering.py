"""Answer a question about many clusters in a task, from their sorted rows, with the code that the commands call.

The rows of an answer are the keys of a cluster, the columns of the question's table, `rejected_count` and `fault`. Rows
that cannot be used, and a cluster that contradicts itself or that a limit refuses, are a row with a `fault`, nulls, and
the number of rows of partitions that are in no answer because of it: the job goes on. The rows of brokers stand among
those of partitions (listed_brokers.py). If they lack a key that tells moments apart, they are the brokers of every
moment, and clusters are answered one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import ClusterView, Int64Array
from broker.errors import BrokersideError
from spark_analysis.frames.chunks import Chunk
from spark_analysis.frames.inputs import CLUSTER
from spark_analysis.frames.listed_brokers import OF_BROKER, split
from spark_analysis.frames.many import IN_CHUNK, Many
from spark_analysis.frames.matrices import whole
from spark_analysis.frames.views import BROKER_NEEDED, Usable, usable, usable_partitions, view_of_rows
from spark_analysis.tables.columns import KEY, Column, Table
from spark_analysis.tables.schemas import FAULT

Kernel: TypeAlias = Callable[[ClusterView], pa.Table]
"""Return the rows of an answer on one cluster, their columns by name; columns left out are null."""
REJECTED: Final = Column(
    "rejected_count",
    "long",
    "Rows of partitions that are in no answer because of the fault; null in a good row",
    "rows",
    nullable=True,
)
_OF_RUN: Final = tuple(column.name for column in KEY)
_BATCH_ROWS: Final = 1 << 16
MANY_MIN: Final = 4  # Fewer clusters are answered as fast one by one.


def answer_table(table: Table, keys: Sequence[str]) -> Table:
    """Return the columns of `table` that an answer has beside the keys, with `rejected_count` and `fault`."""
    left_out = {*_OF_RUN, *keys}
    columns: tuple[Column, ...] = tuple(column for column in table.columns if column.name not in left_out)
    return attrs.evolve(table, columns=(*columns, REJECTED, FAULT))


@attrs.frozen(eq=False)
class _Cluster:
    """Hold a cluster's rows at one moment, and the place of a row that has its keys."""

    key_row: int
    partitions: pa.Table
    brokers: pa.Table | None


@attrs.define(eq=False)
class _Answers:
    """Collect the rows of some clusters: the tables, the faults, and of each the place of a row with its keys."""

    tables: list[pa.Table] = attrs.field(factory=list)
    table_rows: list[int] = attrs.field(factory=list)
    faults: list[tuple[str, int]] = attrs.field(factory=list)
    fault_rows: list[int] = attrs.field(factory=list)

    def add(self, key_row: int, table: pa.Table) -> None:
        """Add the answer on a cluster."""
        if table.num_rows:
            self.tables.append(table)
            self.table_rows.append(key_row)

    def add_fault(self, key_row: int, fault: str, rejected_count: int) -> None:
        """Add a row with a fault."""
        self.faults.append((fault, rejected_count))
        self.fault_rows.append(key_row)


@attrs.frozen
class Work:
    """Answer the question on one cluster after another, in a task.

    `keys` tell clusters and moments apart; rows are sorted by `shared`, those keys that rows of brokers have, too.
    """

    keys: tuple[str, ...]
    shared: tuple[str, ...]
    table: Table
    kernel: Kernel
    many: Many | None = None

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the answers on the clusters of sorted rows: on many at once, and on the others one by one."""
        for rows, ends in whole_clusters(batches, self.shared):
            done = np.zeros(ends.size, np.bool_)
            if self.many is not None and ends.size >= MANY_MIN and len(self.shared) == len(self.keys):
                chunk = Chunk.of(rows, ends)
                done, answers = self.many(chunk) if chunk.is_regular.any() else (done, None)
                if answers is not None and answers.num_rows:
                    yield from self._keyed(rows, chunk.key_rows[answers[IN_CHUNK].to_numpy()], answers)
            found = _Answers()
            start = 0
            for end, is_done in zip(ends.tolist(), done.tolist(), strict=True):
                for cluster in () if is_done else self._clusters(rows.slice(start, end - start), start):
                    self._answer(cluster, rows, found)
                start = end
            if found.tables:
                same = all(one.schema.equals(found.tables[0].schema) for one in found.tables)
                joined = pa.concat_tables(found.tables, promote_options="none" if same else "permissive")
                counts = [one.num_rows for one in found.tables]
                yield from self._keyed(rows, np.repeat(found.table_rows, counts), joined)
            if found.faults:
                names = (FAULT.name, REJECTED.name)
                listed = pa.Table.from_pylist([dict(zip(names, fault, strict=True)) for fault in found.faults])
                yield from self._keyed(rows, np.array(found.fault_rows), listed)

    def _clusters(self, rows: pa.Table, start: int) -> Iterator[_Cluster]:
        """Yield each moment of the cluster whose rows begin at `start`."""
        if OF_BROKER not in rows.column_names:
            yield _Cluster(start, rows, None)
            return
        places, brokers = split(rows)
        if len(self.shared) == len(self.keys):
            yield _Cluster(start, rows.take(places), brokers)
            return
        for of_moment in _moments(rows, places, self.keys):
            yield _Cluster(start + int(of_moment[0]), rows.take(of_moment), brokers)

    def _answer(self, cluster: _Cluster, rows: pa.Table, found: _Answers) -> None:
        """Add the answer on one cluster, and a row with a fault for what cannot be used."""
        keys = {key: rows[key][cluster.key_row] for key in self.keys}
        partitions = usable_partitions(cluster.partitions)
        brokers = None if cluster.brokers is None else usable(cluster.brokers, BROKER_NEEDED)
        self._add_unusable(cluster.key_row, partitions, brokers, found)
        listed = None if brokers is None else brokers.rows
        if not partitions.rows.num_rows and (listed is None or not listed.num_rows):
            return
        if not is_named(keys):  # Rows of brokers are left then.
            assert listed is not None
            found.add_fault(cluster.key_row, f"brokers without {CLUSTER}: {listed.num_rows}", 0)
            return
        try:
            found.add(cluster.key_row, self.kernel(view_of_rows(shown_name(keys), partitions.rows, listed)))
        except BrokersideError as error:
            found.add_fault(cluster.key_row, str(error), partitions.rows.num_rows)

    def _add_unusable(self, key_row: int, partitions: Usable, brokers: Usable | None, found: _Answers) -> None:
        if partitions.fault is not None:
            found.add_fault(key_row, partitions.fault, partitions.rejected_count)
        if brokers is not None and brokers.fault is not None and brokers.fault != partitions.fault:
            found.add_fault(key_row, brokers.fault, 0)

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


def _moments(rows: pa.Table, places: Int64Array, keys: Sequence[str]) -> Iterator[Int64Array]:
    """Yield the places of each moment, rows with equal keys."""
    if not places.size:
        return
    codes = codes_of(rows, keys)[places]
    groups, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)[1:]
    ordered = places[np.argsort(groups.ravel(), kind="stable")]
    yield from np.split(ordered, np.cumsum(counts)[:-1])


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
