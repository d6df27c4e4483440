"""Make a ClusterView from rows of partitions and of brokers, and say which rows cannot be used.

What it decides: a row of partitions is used if it has a topic, a partition and replicas, no `fault`, and nothing that
no cluster can have (impossible.py); other rows are put aside and counted. A cluster that contradicts itself, such as by
listing a partition twice, has no view but a fault. An optional column counts if a row of the cluster says it; a row in
which it is null is then put aside (leaders: null is not known; bytes: null in a row makes them unknown). Racks are
those of the brokers' rows, else of the column `racks`. Rows given are rows counted; where brokers' totals are asked for
and exceed the partitions listed, the partitions are taken as a part, and loads are those totals. Bytes are those of
`replica_size_bytes`; with `size_bytes` alone each replica holds an equal part, the first the rest.

How: rows are ordered by topic and partition, so that an answer does not depend on the order in which Spark brings them.
No Python object per partition; per topic and per broker, as a view has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from broker.cluster import (
    BROKER_FLAGS,
    PAD,
    BrokerTotals,
    BrokerView,
    ClusterView,
    Int32Array,
    Int64Array,
    PartitionTable,
    TopicView,
)
from broker.clusters import Clusters, labelled
from broker.errors import UsageError
from broker.row_flags import count_in_row
from placement.balance.loads import LEADER_NOT_SAID, summed_by
from spark_analysis.frames.impossible import impossible, why_impossible
from spark_analysis.frames.inputs import CLUSTER
from spark_analysis.frames.matrices import (
    ID_BITS,
    INT_MAX,
    list_counts,
    mask_of,
    numbers_of,
    padded,
    refuse_wide,
    whole,
)

FORMAT: Final = "rows"
LISTS: Final = ("isr", "elr", "last_known_elr", "observers", "offline", "adding", "removing")
PARTITION_NEEDED: Final = ("topic", "partition", "replicas")
JUDGED: Final = ("leader", "isr")
"""Every question reads these: a row of partitions is judged by them (impossible.py)."""
STATES: Final = ("leader", *LISTS, "racks")
"""What says which brokers are alive, and the state of a partition."""
SIZES: Final = ("size_bytes", "replica_size_bytes")
LEAST_ISR: Final = "min_insync_replicas"
PARTITION_OPTIONAL: Final = (*STATES, LEAST_ISR, *SIZES, "fault")
BROKER_NEEDED: Final = ("broker_id",)
_SAID_BY_EACH: Final = (*LISTS, "racks")
"""If one row of a cluster has these, a row with a null there, as a left join leaves it, cannot be used."""
_OF_VIEW: Final = ("rack", "host", *BROKER_FLAGS)
TOTALS: Final = ("replica_count", "leader_count", "size_bytes")
BROKER_OPTIONAL: Final = ("rack", *BROKER_FLAGS, "host", *TOTALS, "fault")


@attrs.frozen(eq=False)
class Usable:
    """Hold the rows that can be used, the number of the others, and one sentence on these, None without any."""

    rows: pa.Table
    rejected_count: int
    fault: str | None


def usable(rows: pa.Table, needed: tuple[str, ...]) -> Usable:
    """Return the rows that can be used, and what is wrong with the others.

    A row can be used if it has the needed columns, its cluster where that is a column, and no fault.
    """
    return _of_one(rows, put_aside(rows, np.zeros(rows.num_rows, np.int64), 1, needed))


def usable_partitions(rows: pa.Table) -> Usable:
    """Return the rows of partitions that can be used, and what is wrong with the others."""
    return _of_one(rows, partitions_put_aside(rows, np.zeros(rows.num_rows, np.int64), 1))


def _of_one(rows: pa.Table, aside: Aside) -> Usable:
    if not aside.faults:
        return Usable(rows, 0, None)
    fault, count = aside.faults[0]
    return Usable(rows.take(np.flatnonzero(~aside.rows)), count, fault)


@attrs.frozen(eq=False)
class Aside:
    """Mark the rows that cannot be used, bool[n]; `faults` are why and how many, by cluster."""

    rows: NDArray[np.bool_]
    faults: dict[int, tuple[str, int]]


def partitions_put_aside(rows: pa.Table, cluster: Int64Array, count: int) -> Aside:
    """Return which rows of partitions cannot be used, each of the cluster of this number below `count`."""
    wrong = impossible(rows)
    partly: dict[str, NDArray[np.bool_]] = {}
    for name in _SAID_BY_EACH:
        if name in rows.column_names and rows[name].null_count:
            null = mask_of(pc.is_null(rows[name]))
            nulls = np.bincount(cluster[null], minlength=count)
            partly[name] = null & (nulls < np.bincount(cluster, minlength=count))[cluster]
    return put_aside(rows, cluster, count, PARTITION_NEEDED, partly, wrong)


def put_aside(
    rows: pa.Table,
    cluster: Int64Array,
    count: int,
    needed: tuple[str, ...],
    partly: Mapping[str, NDArray[np.bool_]] = MappingProxyType({}),
    wrong: NDArray[np.bool_] | None = None,
) -> Aside:
    """Return which rows cannot be used: for what they lack, for a fault, and as `wrong` marks them."""
    if CLUSTER in rows.column_names:
        needed = (CLUSTER, *needed)
    lacks = {name: mask_of(pc.is_null(rows[name])) for name in needed if rows[name].null_count} | dict(partly)
    lacking = np.zeros(rows.num_rows, dtype=np.bool_)
    for lack in lacks.values():
        lacking |= lack
    faults = rows["fault"] if "fault" in rows.column_names else pa.nulls(rows.num_rows, pa.string())
    has_fault = mask_of(pc.is_valid(faults))
    wrong = np.zeros_like(lacking) if wrong is None else wrong & ~has_fault
    bad = lacking | has_fault | wrong
    found = {}
    for place in np.unique(cluster[bad]).tolist():
        of = np.flatnonzero(bad & (cluster == place))
        said: list[Any] = whole(faults).take(pa.array(of)).drop_null().to_pylist()
        if wrong[of].any():
            said.append(why_impossible(rows.take(of[wrong[of]])))
        names = [name for name, lack in lacks.items() if lack[of].any()]
        # The least text, as rows arrive in any order.
        first = min(said, default=f"{np.count_nonzero(lacking[of])} without {' or '.join(names)}")
        found[place] = first if of.size == 1 else f"{of.size} rows cannot be used; one of them: {first}", of.size
    return Aside(bad, found)


def view_of_rows(name: str, partitions: pa.Table, brokers: pa.Table | None) -> ClusterView:
    """Return the cluster that rows of partitions and of brokers, all usable, describe at one moment.

    Raises UsageError for rows that contradict each other.
    """
    of_brokers = np.zeros(0 if brokers is None else brokers.num_rows, np.int64)
    of_partitions = np.zeros(partitions.num_rows, np.int64)
    return clusters_of_rows((name,), (partitions, of_partitions), (brokers, of_brokers)).view


def clusters_of_rows(
    names: Sequence[str], partitions: tuple[pa.Table, Int64Array], brokers: tuple[pa.Table | None, Int64Array]
) -> Clusters:
    """Return the clusters that rows of partitions and of brokers, all usable, describe, each at one moment.

    Beside the rows stand the numbers of their clusters, which are alike (`alike`). Raises UsageError for rows that
    contradict each other.
    """
    rows, cluster = partitions
    topics, topic_index, of_topic = _topics(rows, cluster)
    numbers = whole(rows["partition"]).to_numpy(zero_copy_only=False)
    order = np.lexsort((numbers, topic_index))
    topic_index, numbers = topic_index[order], numbers[order]
    _refuse_doubles(names, topics, of_topic, topic_index, numbers)
    rows, cluster = rows.take(order).combine_chunks(), cluster[order]
    replicas = padded(whole(rows["replicas"]), "replicas", INT_MAX).astype(np.int32)
    columns = {"replicas": replicas, "leader": _leaders(rows)} | {column: _list(rows, column) for column in LISTS}
    sizes = _sizes(rows, replicas)
    least = _least_isr(rows, topic_index, len(topics))
    listed = None if brokers[0] is None else _listed(names, brokers[0], brokers[1])
    codes = np.unique(
        np.concatenate(
            [
                *(_codes(cluster, column) for column in columns.values() if column is not None),
                np.zeros(0, np.int64) if listed is None else listed.codes,
            ]
        )
    )
    ids, of_broker = (codes & INT_MAX).astype(np.int32), codes >> ID_BITS
    if len(names) > 1:
        columns = {name: None if one is None else _placed(codes, cluster, one) for name, one in columns.items()}
    seen = np.arange(codes.size) if len(names) > 1 else ids
    racks = _racks(rows, cluster)
    view = ClusterView(
        name=names[0],
        source=names[0],
        format=FORMAT,
        brokers=_brokers(len(names), codes, seen, listed, racks),
        topics=tuple(TopicView(topic, min_insync_replicas=isr) for topic, isr in zip(topics, least, strict=True)),
        partitions=PartitionTable(topic_index=topic_index, partition_ids=numbers, **columns, **sizes),
    )
    found = Clusters(view=view, names=tuple(names), ids=ids, of_broker=of_broker, of_topic=of_topic)
    return found if listed is None else _with_totals(found, listed)


def alike(partitions: tuple[pa.Table, Int64Array], brokers: tuple[pa.Table | None, Int64Array], count: int) -> Any:
    """Return a number for each of `count` clusters, equal for those that say the same columns of all their rows."""
    signs = []
    for rows, cluster, names in ((*partitions, ("leader", *_SAID_BY_EACH, *SIZES)), (*brokers, TOTALS)):
        if rows is None:
            continue
        row_counts = np.bincount(cluster, minlength=count)
        for name in names:
            if name in rows.column_names and rows[name].null_count:
                nulls = np.bincount(cluster[mask_of(pc.is_null(rows[name]))], minlength=count)
                signs += [nulls > 0, (nulls > 0) & (nulls == row_counts)]
    if brokers[0] is not None and "replica_count" in brokers[0].column_names:
        held = summed_by(brokers[1], numbers_of(brokers[0]["replica_count"], 0), count)
        signs.append(held > summed_by(partitions[1], list_counts(whole(partitions[0]["replicas"])), count))
    if not signs:
        return np.zeros(count, np.int64)
    return np.unique(np.column_stack(signs), axis=0, return_inverse=True)[1].ravel()


def _codes(cluster: Int64Array, column: Any) -> Int64Array:
    """Return the distinct brokers in a column, each with its cluster before its id."""
    held = column >= 0
    of = cluster if column.ndim == 1 else np.broadcast_to(cluster[:, None], column.shape)
    return np.unique((of[held] << ID_BITS) | column[held].astype(np.int64))


def _placed(codes: Int64Array, cluster: Int64Array, column: Any) -> Int32Array:
    """Return a column of brokers by their places in `codes`; what is below 0 stays."""
    of = cluster if column.ndim == 1 else cluster[:, None]
    places = np.searchsorted(codes, (of << ID_BITS) | np.maximum(column, 0).astype(np.int64))
    return np.asarray(np.where(column >= 0, places, column), np.int32)


def _topics(rows: pa.Table, cluster: Int64Array) -> tuple[list[str], Int64Array, Int64Array]:
    """Return the topics in order of cluster and name, the place of each row's topic, and each topic's cluster."""
    column = whole(rows["topic"])
    names = column.unique().sort()
    ranks = pc.index_in(column, names).to_numpy(zero_copy_only=False).astype(np.int64)
    width = max(len(names), 1)
    codes, places = np.unique(cluster * width + ranks, return_inverse=True)
    return names.take(pa.array(codes % width)).to_pylist(), places.ravel().astype(np.int64), codes // width


def _refuse_doubles(
    names: Sequence[str], topics: list[str], of_topic: Int64Array, topic_index: Int64Array, numbers: Any
) -> None:
    doubles = np.flatnonzero((topic_index[1:] == topic_index[:-1]) & (numbers[1:] == numbers[:-1]))
    if doubles.size:
        first = int(doubles[0])
        topic = int(topic_index[first])
        raise UsageError(
            f"partition {int(numbers[first])} of topic {topics[topic]!r} is listed twice in cluster "
            f"{names[of_topic[topic]]!r}; if these are several clusters or moments, give the columns that tell them "
            "apart as by"
        )


def _known(rows: pa.Table, name: str) -> Any:
    """Return a column as one array; None if it is not there, or null in a row."""
    if name not in rows.column_names or rows[name].null_count:
        return None
    return whole(rows[name])


def _list(rows: pa.Table, name: str) -> Any:
    column = _known(rows, name)
    return None if column is None else padded(column, name, INT_MAX)


def _leaders(rows: pa.Table) -> Any:
    if "leader" not in rows.column_names or 0 < rows.num_rows == rows["leader"].null_count:
        return None
    leader = pc.fill_null(whole(rows["leader"]), LEADER_NOT_SAID).to_numpy(zero_copy_only=False)
    said = pc.min(rows["leader"]).as_py()
    if said is not None and said < PAD:
        raise UsageError(f"column 'leader' has the value {said}; allowed are -1 for none, and ids of brokers")
    refuse_wide(leader, "column 'leader'")
    return leader


def _sizes(rows: pa.Table, replicas: Int32Array) -> dict[str, Any]:
    """Return the sizes of replicas as a PartitionTable takes them; nothing if they are not known."""
    each, total = _known(rows, "replica_size_bytes"), _known(rows, "size_bytes")
    held = np.count_nonzero(replicas != PAD, axis=1)
    if each is not None:
        if (list_counts(each) != held).any():
            raise UsageError("a list in column 'replica_size_bytes' has another length than the partition's replicas")
        sizes = padded(each, "replica_size_bytes")
    elif total is not None:
        sizes = _shared_out(total.to_numpy(zero_copy_only=False), held, replicas)
    else:
        return {}
    return {"size_bytes": sizes.max(axis=1, initial=0), "replica_size_bytes": sizes}


def _shared_out(total: Int64Array, held: Int64Array, replicas: Int32Array) -> Int64Array:
    """Return an equal part of each partition's bytes for each replica, the first with what is left over."""
    if total.size and int(total.min()) < 0:
        raise UsageError(f"column 'size_bytes' has the value {int(total.min())}; allowed is 0 or more")
    part = total // np.maximum(held, 1)
    sizes = np.where(replicas != PAD, part[:, None], PAD)
    if replicas.shape[1]:
        sizes[:, 0] += np.where(held > 0, total - part * held, 0)
    return sizes


def _least_isr(rows: pa.Table, topic_index: Int64Array, topic_count: int) -> list[int | None]:
    """Return min.insync.replicas of each topic, as its first partition says."""
    if "min_insync_replicas" not in rows.column_names or not rows.num_rows:
        return [None] * topic_count
    firsts = np.unique(topic_index, return_index=True)[1]
    least: list[int | None] = whole(rows["min_insync_replicas"]).take(pa.array(firsts)).to_pylist()
    wrong = [one for one in least if one is not None and not 1 <= one <= INT_MAX]
    if wrong:
        raise UsageError(f"column 'min_insync_replicas' has the value {wrong[0]}; allowed are 1 to {INT_MAX:,}")
    return least


def _racks(rows: pa.Table, cluster: Int64Array) -> dict[int, str]:
    """Return the racks of brokers that the partitions name, by cluster and id; an empty name is an unknown rack."""
    racks = _known(rows, "racks")
    if racks is None:
        return {}
    replicas = whole(rows["replicas"])
    counts = list_counts(replicas)
    if (list_counts(racks) != counts).any():
        raise UsageError("a list in column 'racks' has another length than the partition's replicas")
    names = racks.flatten()
    known = mask_of(pc.fill_null(pc.not_equal(names, pa.scalar("")), False))
    codes = (np.repeat(cluster, counts) << ID_BITS) | numbers_of(replicas.flatten(), 0)
    places = np.flatnonzero(known)
    distinct, first = np.unique(codes[places], return_index=True)
    of_first = names.take(pa.array(places[first])).to_pylist()
    return dict(zip(distinct.tolist(), of_first, strict=True))


@attrs.frozen(eq=False)
class _Listed:
    """Hold the rows of brokers in order of cluster and id: `codes` are both, and `totals` what brokers hold."""

    codes: Int64Array
    rows: list[dict[str, Any]]
    totals: dict[str, Int64Array]


def _listed(names: Sequence[str], rows: pa.Table, cluster: Int64Array) -> _Listed:
    ids = numbers_of(rows["broker_id"], 0)
    refuse_wide(ids, "column 'broker_id'")
    order = np.lexsort((ids, cluster))
    rows, ids, cluster = rows.take(order), ids[order], cluster[order]
    doubles = np.flatnonzero((ids[1:] == ids[:-1]) & (cluster[1:] == cluster[:-1]))
    if doubles.size:
        first = int(doubles[0])
        raise UsageError(f"broker {int(ids[first])} is listed twice in cluster {names[cluster[first]]!r}")
    if ids.size and int(ids.min()) < 0:
        place = int(ids.argmin())
        raise UsageError(f"broker {int(ids[place])} of cluster {names[cluster[place]]!r}: allowed is 0 or more")
    held = {column: _known(rows, column) for column in TOTALS}
    totals = {column: numbers_of(values, 0) for column, values in held.items() if values is not None}
    shown = rows.select([name for name in rows.column_names if name in _OF_VIEW])
    return _Listed((cluster << ID_BITS) | ids, shown.to_pylist(), totals)


def _brokers(
    count: int, codes: Int64Array, seen: Any, listed: _Listed | None, racks: dict[int, str]
) -> tuple[BrokerView, ...]:
    """Return the brokers of `count` clusters; the rack in a row of brokers is the one that counts."""
    rows = {} if listed is None else dict(zip(listed.codes.tolist(), listed.rows, strict=True))
    brokers = []
    for code, number in zip(codes.tolist(), seen.tolist(), strict=True):
        row = rows.get(code, {})
        rack = row.get("rack") or racks.get(code)
        if rack is not None and count > 1:
            rack = labelled(code >> ID_BITS, rack)
        flags: dict[str, Any] = {flag: True for flag in BROKER_FLAGS if row.get(flag)}
        brokers.append(BrokerView(id=number, rack=rack, host=row.get("host"), **flags))
    return tuple(brokers)


def _with_totals(clusters: Clusters, listed: _Listed) -> Clusters:
    """Return the clusters with what brokers hold, if that is more than the partitions listed.

    Raises UsageError if it is less: then rows of partitions and of brokers are not of one cluster at one moment.
    """
    view = clusters.view
    if "replica_count" not in listed.totals:
        return clusters
    of = listed.codes >> ID_BITS
    held = summed_by(of, listed.totals["replica_count"], clusters.count)
    counts = clusters.counted(np.repeat(clusters.of_partition, count_in_row(view.partitions.replicas >= 0)))
    for place in np.flatnonzero(held < counts).tolist():
        raise UsageError(
            f"the brokers of cluster {clusters.names[place]!r} hold {int(held[place]):,} replicas in all; its "
            f"partitions list {int(counts[place]):,}"
        )
    if (held == counts).all():
        return clusters
    codes = (clusters.of_broker << ID_BITS) | clusters.ids
    wide = {column: np.zeros(codes.size, dtype=np.int64) for column in listed.totals}
    for column, values in listed.totals.items():
        wide[column][np.searchsorted(codes, listed.codes)] = values
    partial = attrs.evolve(view, totals=BrokerTotals(**wide), partitions_complete=False)
    return attrs.evolve(clusters, view=partial)
