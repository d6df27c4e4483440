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
from broker.errors import UsageError
from broker.ids import BrokerId
from placement.balance.loads import LEADER_NOT_SAID
from spark_analysis.frames.impossible import impossible, why_impossible
from spark_analysis.frames.inputs import CLUSTER
from spark_analysis.frames.matrices import INT_MAX, list_counts, mask_of, padded, refuse_wide, whole

FORMAT: Final = "rows"
LISTS: Final = ("isr", "elr", "last_known_elr", "observers", "offline", "adding", "removing")
PARTITION_NEEDED: Final = ("topic", "partition", "replicas")
PARTITION_OPTIONAL: Final = (
    "leader",
    *LISTS,
    "racks",
    "min_insync_replicas",
    "size_bytes",
    "replica_size_bytes",
    "fault",
)
BROKER_NEEDED: Final = ("broker_id",)
_SAID_BY_EACH: Final = (*LISTS, "racks")
"""If one row of a cluster has these, a row with a null there, as a left join leaves it, cannot be used."""
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
    if CLUSTER in rows.column_names:
        needed = (CLUSTER, *needed)
    absent: NDArray[np.bool_] = np.zeros(rows.num_rows, dtype=np.bool_)
    for name in needed:
        absent |= mask_of(pc.is_null(rows[name]))
    lacking = absent.copy()
    if "fault" in rows.column_names:
        absent |= mask_of(pc.is_valid(rows["fault"]))
    if not absent.any():
        return Usable(rows, 0, None)
    first = None
    if "fault" in rows.column_names:
        # The least text, as rows arrive in any order.
        first = pc.min(rows["fault"]).as_py()
    if first is None:
        names = [name for name in needed if rows[name].null_count]
        first = f"{int(lacking.sum())} without {' or '.join(names)}"
    count = int(absent.sum())
    fault = first if count == 1 else f"{count} rows cannot be used; one of them: {first}"
    return Usable(rows.take(np.flatnonzero(~absent)), count, fault)


def usable_partitions(rows: pa.Table) -> Usable:
    """Return the rows of partitions that can be used, and what is wrong with the others."""
    wrong = impossible(rows)
    if wrong.any():
        others = rows.select([name for name in rows.column_names if name != "fault"])
        said = whole(rows["fault"]) if "fault" in rows.column_names else pa.nulls(rows.num_rows, pa.string())
        wrong &= mask_of(pc.is_null(said))
        why = why_impossible(rows.filter(pa.array(wrong))) if wrong.any() else None
        rows = others.append_column("fault", pc.if_else(pa.array(wrong), pa.scalar(why, pa.string()), said))
    partly = [name for name in _SAID_BY_EACH if name in rows.column_names and 0 < rows[name].null_count < rows.num_rows]
    return usable(rows, (*PARTITION_NEEDED, *partly))


def view_of_rows(name: str, partitions: pa.Table, brokers: pa.Table | None) -> ClusterView:
    """Return the cluster that rows of partitions and of brokers, all usable, describe at one moment.

    Raises UsageError for rows that contradict each other.
    """
    topics, topic_index = _topics(partitions)
    numbers = whole(partitions["partition"]).to_numpy(zero_copy_only=False)
    order = np.lexsort((numbers, topic_index))
    topic_index, numbers = topic_index[order], numbers[order]
    _refuse_doubles(name, topics, topic_index, numbers)
    rows = partitions.take(order).combine_chunks()
    replicas = padded(whole(rows["replicas"]), "replicas", INT_MAX).astype(np.int32)
    table = PartitionTable(
        topic_index=topic_index,
        partition_ids=numbers,
        replicas=replicas,
        leader=_leaders(rows),
        **{column: _list(rows, column) for column in LISTS},
        **_sizes(rows, replicas),
    )
    least = _least_isr(rows, topic_index, len(topics))
    listed, totals = ((), None) if brokers is None else _brokers(name, brokers)
    view = ClusterView.build(
        name=name,
        source=name,
        format=FORMAT,
        partitions=table,
        brokers=_racked(listed, _racks(rows)),
        topics=tuple(TopicView(topic, min_insync_replicas=isr) for topic, isr in zip(topics, least, strict=True)),
    )
    return view if totals is None else _with_totals(view, listed, totals)


def _topics(rows: pa.Table) -> tuple[list[str], Int64Array]:
    """Return the names of the topics in order, and the place of each row's topic."""
    column = whole(rows["topic"])
    names = column.unique().sort()
    places: Int64Array = pc.index_in(column, names).to_numpy(zero_copy_only=False).astype(np.int64)
    return names.to_pylist(), places


def _refuse_doubles(name: str, topics: list[str], topic_index: Int64Array, numbers: Any) -> None:
    doubles = np.flatnonzero((topic_index[1:] == topic_index[:-1]) & (numbers[1:] == numbers[:-1]))
    if doubles.size:
        first = int(doubles[0])
        raise UsageError(
            f"partition {int(numbers[first])} of topic {topics[topic_index[first]]!r} is listed twice in cluster "
            f"{name!r}; if these are several clusters or moments, give the columns that tell them apart as by"
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


def _racks(rows: pa.Table) -> dict[int, str]:
    """Return the racks of brokers that the partitions name; an empty name is an unknown rack."""
    racks = _known(rows, "racks")
    if racks is None:
        return {}
    replicas = whole(rows["replicas"])
    if (list_counts(racks) != list_counts(replicas)).any():
        raise UsageError("a list in column 'racks' has another length than the partition's replicas")
    names = racks.flatten()
    known = pc.fill_null(pc.not_equal(names, pa.scalar("")), False)
    ids = replicas.flatten().filter(known).to_numpy(zero_copy_only=False)
    distinct, first = np.unique(ids, return_index=True)
    of_first = names.filter(known).take(pa.array(first)).to_pylist()
    return dict(zip(distinct.tolist(), of_first, strict=True))


def _racked(listed: tuple[BrokerView, ...], racks: dict[int, str]) -> tuple[BrokerView, ...]:
    """Return the brokers listed, and those that have a rack, with their racks."""
    by_id = {int(broker.id): broker for broker in listed}
    for number, rack in racks.items():
        broker = by_id.get(number, BrokerView(id=BrokerId(number)))
        by_id[number] = broker if broker.rack is not None else attrs.evolve(broker, rack=rack)
    return tuple(by_id[number] for number in sorted(by_id))


def _brokers(name: str, rows: pa.Table) -> tuple[tuple[BrokerView, ...], dict[str, Int64Array] | None]:
    """Return the brokers in order of id, and what they hold where all of them say so."""
    rows = rows.sort_by("broker_id")
    ids = rows["broker_id"].to_numpy()
    refuse_wide(ids, "column 'broker_id'")
    doubles = np.flatnonzero(ids[1:] == ids[:-1])
    if doubles.size:
        raise UsageError(f"broker {int(ids[doubles[0]])} is listed twice in cluster {name!r}")
    if ids.size and int(ids[0]) < 0:
        raise UsageError(f"broker {int(ids[0])} of cluster {name!r}: allowed is 0 or more")
    listed = rows.to_pylist()
    flags: list[dict[str, Any]] = [{flag: bool(row.get(flag)) for flag in BROKER_FLAGS} for row in listed]
    brokers = tuple(
        BrokerView(id=BrokerId(row["broker_id"]), rack=row.get("rack") or None, host=row.get("host"), **given)
        for row, given in zip(listed, flags, strict=True)
    )
    held = {column: _known(rows, column) for column in TOTALS}
    totals = {column: values.to_numpy(zero_copy_only=False) for column, values in held.items() if values is not None}
    return brokers, totals if "replica_count" in totals else None


def _with_totals(view: ClusterView, listed: tuple[BrokerView, ...], totals: dict[str, Int64Array]) -> ClusterView:
    """Return the view with what brokers hold, if that is more than the partitions listed.

    Raises UsageError if it is less: then rows of partitions and of brokers are not of one cluster at one moment.
    """
    held, listed_count = int(totals["replica_count"].sum()), view.partitions.replica_count
    if held < listed_count:
        raise UsageError(
            f"the brokers of cluster {view.name!r} hold {held:,} replicas in all; its partitions list {listed_count:,}"
        )
    if held == listed_count:
        return view
    places = np.searchsorted(view.broker_ids, np.array([broker.id for broker in listed]))
    wide = {column: np.zeros(len(view.brokers), dtype=np.int64) for column in totals}
    for column, values in totals.items():
        wide[column][places] = values
    return attrs.evolve(view, totals=BrokerTotals(**wide), partitions_complete=False)
