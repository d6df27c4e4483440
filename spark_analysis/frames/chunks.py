"""Hold many regular clusters as columns, so that one call answers a question about all of them.

What it decides: a cluster is regular if all of its rows can be used and agree, every partition has replicas, a leader
and an ISR among them (or no row has these), sizes are not known, nothing is reassigned, offline, observed or in an ELR,
and brokers have no racks or racks of one size. Its rows of brokers, if there are any, are regular as listed_brokers.py
says. Any other cluster is answered by itself, as a ClusterView, which also explains what is wrong with it.

How: rows are in order of cluster, topic and partition; brokers and topics are numbered through all clusters.

Example: Chunk.of(rows, ends).is_regular

Source: views.py, which decides what a row means.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.cluster import PAD, BoolArray, Int32Array, Int64Array
from placement.formats.checks import PARTITION_ID_MAX
from spark_analysis.frames.inputs import CLUSTER
from spark_analysis.frames.listed_brokers import BROKER_PREFIX, OF_BROKER, ListedBrokers, split
from spark_analysis.frames.matrices import ID_BITS, INT_MAX, list_counts, mask_of, numbers_of, whole
from spark_analysis.frames.views import PARTITION_NEEDED

_RARE: Final = ("elr", "last_known_elr", "observers", "offline", "adding", "removing")
_SIZES: Final = ("size_bytes", "replica_size_bytes")
_NAMES: Final = pa.list_(pa.string())
UNKNOWN: Final = -1


@attrs.frozen(eq=False, kw_only=True)
class Chunk:
    """Hold the columns of K clusters; the regular ones have n partitions, T topics and B brokers.

    `is_regular` bool[K]; `key_rows` int64[K], the place of a row with the keys. `cluster`, `topic` and `partition` are
    int64[n]; `replicas` int32[n, W] and `isr` int32[n, V] number brokers, -1 pads; `leader` int32[n]
    likewise, -1 where no row of the cluster says leaders; `knows_isr` bool[K]; `min_isr` int64[T], -1 where not said.
    `broker_ids` int32[B], `broker_cluster` int64[B], `rack` int64[B], its place among the racks of the cluster, -1 for
    none; `rack_names` are those of all clusters, `rack_counts` int64[K].
    """

    is_regular: BoolArray
    key_rows: Int64Array
    cluster: Int64Array
    topic: Int64Array
    partition: Int64Array
    replicas: Int32Array
    isr: Int32Array
    leader: Int32Array
    knows_leader: BoolArray
    knows_isr: BoolArray
    topic_names: Any
    topic_cluster: Int64Array
    min_isr: Int64Array
    broker_ids: Int32Array
    broker_cluster: Int64Array
    rack: Int64Array
    rack_names: tuple[str, ...]
    rack_counts: Int64Array

    @property
    def count(self) -> int:
        """Return the number of clusters."""
        return int(self.is_regular.size)

    @property
    def broker_counts(self) -> Int64Array:
        """Return the number of brokers of each cluster, 0 of one that is not regular."""
        return np.bincount(self.broker_cluster, minlength=self.count).astype(np.int64)

    @classmethod
    def of(cls, rows: pa.Table, ends: Int64Array) -> Chunk:
        """Return the clusters of rows that stand together, given the end of each one's rows.

        Rows of brokers stand among them where there is a column `OF_BROKER`.
        """
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
        cluster = np.repeat(np.arange(ends.size), ends - starts)
        listed = None
        if OF_BROKER in rows.column_names:
            places, listed = split(rows)
            of_listed = np.delete(cluster, places)
            names = [name for name in rows.column_names if name != OF_BROKER and not name.startswith(BROKER_PREFIX)]
            rows, cluster = rows.select(names).take(places), cluster[places]
        is_regular = _readable(rows, cluster, ends.size)
        brokers = ListedBrokers.none()
        if listed is not None:
            replica_counts = np.zeros(ends.size, np.int64)
            np.add.at(replica_counts, cluster, list_counts(whole(rows["replicas"])))
            brokers = ListedBrokers.of(listed, of_listed, replica_counts, is_regular)
        while True:  # What is wrong with a cluster may be seen late; the others are then put together anew.
            found = cls._made(rows, cluster, starts, brokers.kept(is_regular), is_regular.copy())
            if (found.is_regular == is_regular).all():
                return found
            is_regular = found.is_regular  # There are fewer each time.

    @classmethod
    def _made(
        cls, rows: pa.Table, cluster: Int64Array, starts: Int64Array, listed: ListedBrokers, is_regular: BoolArray
    ) -> Chunk:
        """Return the clusters that are regular so far; `is_regular` is narrowed."""
        kept = np.flatnonzero(is_regular[cluster])
        rows, cluster = rows.take(kept), cluster[kept]
        ranks, names = _ranked(whole(rows["topic"]))
        partition = _numbers(rows, "partition")
        order = np.lexsort((partition, ranks, cluster))
        rows, cluster = rows.take(order).combine_chunks(), cluster[order]
        ranks, partition = ranks[order], partition[order]
        same = (cluster[1:] == cluster[:-1]) & (ranks[1:] == ranks[:-1])
        _exclude(is_regular, cluster[1:], same & (partition[1:] == partition[:-1]))
        firsts = np.flatnonzero(np.concatenate((np.ones(min(1, cluster.size), np.bool_), ~same)))
        brokers = _Brokers.of(rows, cluster, listed, is_regular)
        racks = _Racks.of(rows, cluster, brokers, listed, is_regular)
        replicas = brokers.matrix("replicas")
        leader, knows_leader = _leaders(rows, cluster, brokers, replicas, is_regular)
        return cls(
            is_regular=is_regular,
            key_rows=starts,
            cluster=cluster,
            topic=np.cumsum(np.concatenate((np.zeros(min(1, cluster.size), np.int64), (~same).astype(np.int64)))),
            partition=partition,
            replicas=replicas,
            isr=brokers.matrix("isr"),
            leader=leader,
            knows_leader=knows_leader,
            knows_isr=_known(rows, "isr", cluster, is_regular.size),
            topic_names=names.take(pa.array(ranks[firsts])),
            topic_cluster=cluster[firsts],
            min_isr=_numbers(rows, "min_insync_replicas", UNKNOWN)[firsts],
            broker_ids=(brokers.codes & INT_MAX).astype(np.int32),
            broker_cluster=brokers.codes >> ID_BITS,
            rack=racks.of_broker,
            rack_names=racks.names,
            rack_counts=racks.counts,
        )


def _readable(rows: pa.Table, cluster: Int64Array, count: int) -> BoolArray:
    """Return which clusters have rows, all with the needed columns filled and none of the rare ones."""
    bad = np.zeros(rows.num_rows, np.bool_)
    for name in (CLUSTER, *PARTITION_NEEDED):  # Without the column, other keys tell clusters apart.
        if name in rows.column_names:
            bad |= mask_of(pc.is_null(rows[name]))
    if "fault" in rows.column_names:
        bad |= mask_of(pc.is_valid(rows["fault"]))
    for name in _SIZES:
        if name in rows.column_names:
            bad |= mask_of(pc.is_valid(rows[name]))
    for name in _RARE:
        if name in rows.column_names:
            bad |= list_counts(whole(rows[name])) > 0
    partition = _numbers(rows, "partition", UNKNOWN)
    bad |= (partition < 0) | (partition > PARTITION_ID_MAX)
    for name in ("replicas", "isr"):
        if name in rows.column_names:
            column = whole(rows[name])
            counts, values = list_counts(column), pc.fill_null(column.flatten(), -1).to_numpy(zero_copy_only=False)
            wrong = (values < 0) | (values > INT_MAX)
            bad[np.repeat(np.arange(rows.num_rows), counts)[wrong]] = True
            bad |= counts == 0 if name == "replicas" else False
    least = _numbers(rows, "min_insync_replicas", 1)
    bad |= (least < 1) | (least > INT_MAX)
    row_counts = np.bincount(cluster, minlength=count)
    found: BoolArray = (np.bincount(cluster[bad], minlength=count) == 0) & (row_counts > 0)
    for name in ("leader", "isr", "racks"):  # A column counts if no row of the cluster, or every row, is null in it.
        if name in rows.column_names:
            null = np.bincount(cluster[mask_of(pc.is_null(rows[name]))], minlength=count)
            found &= (null == 0) | (null == row_counts)
    return found


def _numbers(rows: pa.Table, name: str, null: int = 0) -> Int64Array:
    """Return a column of numbers, `null` where it is null or not there."""
    if name not in rows.column_names:
        return np.full(rows.num_rows, null, np.int64)
    return numbers_of(rows[name], null)


def _known(rows: pa.Table, name: str, cluster: Int64Array, count: int) -> BoolArray:
    if name not in rows.column_names:
        return np.zeros(count, np.bool_)
    return np.asarray(np.bincount(cluster[mask_of(pc.is_valid(rows[name]))], minlength=count) > 0)


def _ranked(column: Any) -> tuple[Int64Array, Any]:
    """Return the place of each value among the distinct ones in order, and these."""
    names = column.unique().sort()
    places = pc.index_in(column, names).to_numpy(zero_copy_only=False)
    return np.asarray(places, np.int64), names


def _exclude(is_regular: BoolArray, cluster: Int64Array, wrong: BoolArray) -> None:
    is_regular[cluster[wrong]] = False


@attrs.frozen(eq=False)
class _Brokers:
    """Number the brokers of all clusters: `codes` int64[B] are clusters and ids, ascending."""

    codes: Int64Array
    counts: dict[str, Int64Array]
    places: dict[str, Int32Array]

    @classmethod
    def of(cls, rows: pa.Table, cluster: Int64Array, listed: ListedBrokers, is_regular: BoolArray) -> _Brokers:
        counts: dict[str, Int64Array] = {}
        codes: dict[str, Int64Array] = {}
        for name in ("replicas", "isr"):
            column = whole(rows[name]) if name in rows.column_names else pa.nulls(rows.num_rows, pa.list_(pa.int64()))
            counts[name] = list_counts(column)
            values = column.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            codes[name] = (np.repeat(cluster, counts[name]) << ID_BITS) | values
        every = np.unique(np.concatenate((codes["replicas"], listed.codes)))
        of_rows: dict[str, Int64Array] = {}
        for name, of in codes.items():
            row = np.repeat(np.arange(rows.num_rows), counts[name])
            cells = np.lexsort((of, row))
            twice = (row[cells][1:] == row[cells][:-1]) & (of[cells][1:] == of[cells][:-1])
            _exclude(is_regular, cluster[row[cells][1:]], twice)
            of_rows[name] = (row << ID_BITS) | (of & INT_MAX)
        _exclude(is_regular, cluster[of_rows["isr"] >> ID_BITS], ~np.isin(of_rows["isr"], of_rows["replicas"]))
        places = {name: np.searchsorted(every, of).astype(np.int32) for name, of in codes.items()}
        return cls(every, counts, places)

    def matrix(self, name: str) -> Int32Array:
        """Return a column of lists as a padded matrix of the brokers' numbers."""
        counts = self.counts[name]
        matrix = np.full((counts.size, int(counts.max(initial=0))), PAD, np.int32)
        matrix[np.arange(matrix.shape[1]) < counts[:, None]] = self.places[name]
        return matrix


def _leaders(
    rows: pa.Table, cluster: Int64Array, brokers: _Brokers, replicas: Int32Array, is_regular: BoolArray
) -> tuple[Int32Array, BoolArray]:
    """Return the number of each leader, -1 where not said, and the clusters that say leaders."""
    knows = _known(rows, "leader", cluster, is_regular.size)
    said = knows[cluster]
    ids = _numbers(rows, "leader", UNKNOWN)
    codes = (cluster << ID_BITS) | np.clip(ids, 0, INT_MAX)
    places = np.searchsorted(brokers.codes, codes).astype(np.int32)
    _exclude(is_regular, cluster, said & ((ids < 0) | (ids > INT_MAX) | ~(replicas == places[:, None]).any(axis=1)))
    return np.where(said, places, UNKNOWN).astype(np.int32), knows


@attrs.frozen(eq=False)
class _Racks:
    """Number the racks of each cluster in order of their names."""

    of_broker: Int64Array
    names: tuple[str, ...]
    counts: Int64Array

    @classmethod
    def of(
        cls, rows: pa.Table, cluster: Int64Array, brokers: _Brokers, listed: ListedBrokers, is_regular: BoolArray
    ) -> _Racks:
        of_broker = np.full(brokers.codes.size, UNKNOWN, np.int64)
        column = whole(rows["racks"]) if "racks" in rows.column_names else pa.nulls(rows.num_rows, _NAMES)
        lengths, held = list_counts(column), brokers.counts["replicas"]
        said = mask_of(pc.is_valid(column))
        _exclude(is_regular, cluster, (lengths != held) & said)
        if not np.array_equal(lengths, np.where(said, held, 0)):
            # Such a cluster is not regular, and no cluster of the chunk is then.
            return cls(of_broker, (), np.zeros(is_regular.size, np.int64))
        cells: Any = column.flatten()
        in_rows = pc.fill_null(cells.cast(pa.string()), "")
        ranks, names = _ranked(whole(pa.chunked_array([in_rows, listed.racks])))
        names_listed: list[str] = names.to_pylist()
        is_named = np.array([name != "" for name in names_listed], np.bool_)[ranks]
        width, in_cells = max(len(names_listed), 1), np.arange(ranks.size) < len(in_rows)
        cell_broker = brokers.places["replicas"][np.repeat(lengths > 0, held)]
        named = is_named[in_cells]
        pairs = np.unique(cell_broker[named].astype(np.int64) * width + ranks[in_cells][named])
        broker, rank = pairs // width, pairs % width
        of_cluster = brokers.codes >> ID_BITS
        _exclude(is_regular, of_cluster[broker[1:]], broker[1:] == broker[:-1])
        of_broker[broker] = rank
        named = is_named[~in_cells]  # The rack in a row of brokers is the one that counts.
        of_broker[np.searchsorted(brokers.codes, listed.codes[named])] = ranks[~in_cells][named]
        return cls._numbered(of_broker, of_cluster, names_listed, is_regular)

    @classmethod
    def _numbered(
        cls, of_broker: Int64Array, of_cluster: Int64Array, names: list[str], is_regular: BoolArray
    ) -> _Racks:
        """Return the racks by cluster; clusters whose racks are uneven, or not of all brokers, are excluded."""
        has = np.flatnonzero(of_broker >= 0)
        width = max(len(names), 1)
        pairs = of_cluster[has] * width + of_broker[has]
        codes, place, sizes = np.unique(pairs, return_inverse=True, return_counts=True)
        rack_cluster = codes // width
        counts = np.bincount(rack_cluster, minlength=is_regular.size).astype(np.int64)
        firsts = np.cumsum(counts) - counts
        numbered = np.full(of_broker.size, UNKNOWN, np.int64)
        numbered[has] = place.ravel() - firsts[of_cluster[has]]
        _exclude(is_regular, of_cluster, (numbered < 0) & (counts[of_cluster] > 0))
        largest = np.zeros(is_regular.size, np.int64)
        np.maximum.at(largest, rack_cluster, sizes)
        _exclude(is_regular, rack_cluster, sizes != largest[rack_cluster])
        return cls(numbered, tuple(names[code % width] for code in codes.tolist()), counts)
