"""Turn the cluster of a dump into rows of the tables: loads, spreads, violations; figures are those of placement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final

import attrs
import numpy as np

from broker.broker_rows import broker_rows
from broker.cluster import BROKER_FLAGS, BoolArray, ClusterView, Int32Array, Int64Array, LogDirView
from broker.clusters import Clusters
from broker.known import known_of_each
from placement.balance.audit import PartitionStates, assignment_of, explain_states, partition_states, state_counts
from placement.balance.constraints import HARD, RACK_SPREAD, Violation, Violations, check, rack_spread
from placement.balance.loads import known_bytes, summed_by
from placement.balance.out_of_sync import OutOfSync, explained, out_of_sync
from placement.balance.shares import Held
from placement.balance.topic_spread import topic_spread
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import ClusterRows, Rows, rack_rows
from spark_analysis.tables.columns import Part, Table
from spark_analysis.tables.limits import VIOLATIONS_MAX
from spark_analysis.tables.partition_rows import Found, partition_rows

PAIR_BROKER_COUNT_MAX: Final = 100  # 4,950 pairs: what a heat map can still show.
DUMP: Final = "dump"


def describe_view(
    view: ClusterView, *, min_insync_replicas: int | None = None, pairs: bool = False, partitions: bool = False
) -> ClusterRows:
    """Return the rows of one dump's cluster; `min_insync_replicas` is for topics that do not show their own.

    With `pairs`, brokers that share partitions are counted, if they are at most 100; with `partitions`, every partition
    has a row.
    """
    clusters = Clusters.of_view(view)
    held = Held.of(clusters)
    broken = broken_of(view, min_insync_replicas)
    complete = view.partitions_complete
    racks = [broker.rack for broker in view.brokers]
    missing = None if broken.out_of_sync is None else broken.out_of_sync.counts
    columns = (view.broker_ids, racks, view.flag("fenced"), *held.brokers, missing)
    shares = held.shares()
    tables = {
        schemas.BROKERS: Rows([len(racks)], (*columns, *map(view.flag, BROKER_FLAGS[1:]))),
        schemas.VIOLATIONS: violation_rows([broken.listed]),
    }
    if view.log_dirs:
        tables[schemas.LOG_DIRS] = _log_dirs(view.log_dirs)
    if view.racks:
        tables[schemas.RACKS] = rack_rows(held, shares[0])
    if complete:
        by_name = sorted(range(len(view.topics)), key=lambda row: view.topics[row].name)
        tables[schemas.TOPICS] = _topics_of_view(view, np.array(by_name, dtype=np.int64))
    if pairs and complete and len(view.brokers) <= PAIR_BROKER_COUNT_MAX:
        tables[schemas.PAIRS] = count_pairs(view.partitions.replicas, view.broker_ids)
    counts = {name: [count] for name, count in broken.counts.items()}
    facts = {"source": [view.source], "format": [view.format]} | facts_of(clusters, held) | counts
    further = partition_rows(view, broken.found, min_insync_replicas) if partitions and broken.found else ()
    return ClusterRows([DUMP], facts, tables, shares, further)


def facts_of(clusters: Clusters, held: Held) -> dict[str, Part]:
    """Return columns of the table of clusters, a value for each: sizes, racks, and what is known."""
    view, complete = clusters.view, clusters.view.partitions_complete
    of_rack = np.repeat(np.arange(clusters.count), held.rack_counts)
    rack_sizes = np.bincount(held.rack_of[held.rack >= 0], minlength=of_rack.size)
    least, most = np.full(clusters.count, np.iinfo(np.int64).max), np.zeros(clusters.count, np.int64)
    np.minimum.at(least, of_rack, rack_sizes)
    np.maximum.at(most, of_rack, rack_sizes)
    none = held.rack_counts == 0
    size_bytes = held.brokers[2]
    return {
        "cluster": list(clusters.names),
        "broker_count": held.broker_counts,
        "fenced_broker_count": clusters.counted(clusters.of_broker[view.flag("fenced")]),
        "topic_count": clusters.counted(clusters.of_topic) if complete else None,
        "partition_count": clusters.counted(clusters.of_partition) if complete else None,
        "replica_count": _totals(clusters, held.brokers[0]),
        "size_bytes": known_bytes(view.partitions, clusters.of_partition, clusters.count)
        if size_bytes is None
        else _totals(clusters, size_bytes),
        "unracked_broker_count": clusters.counted(clusters.of_broker[held.rack < 0]),
        "rack_count": held.rack_counts,
        "rack_broker_count_min": _null_where(none, least),
        "rack_broker_count_max": _null_where(none, most),
        "known": [known.as_text() for known in known_of_each(clusters)],
    }


def _totals(clusters: Clusters, of_brokers: Int64Array | None) -> Part:
    return None if of_brokers is None else summed_by(clusters.of_broker, of_brokers, clusters.count)


def _null_where(unknown: BoolArray, values: Int64Array) -> list[int | None]:
    return [None if is_unknown else value for value, is_unknown in zip(values.tolist(), unknown.tolist(), strict=True)]


def _log_dirs(dirs: Sequence[LogDirView]) -> Rows:
    names = ("broker_id", "path", "error", "replica_count", "future_replica_count", "size_bytes")
    return Rows([len(dirs)], tuple([getattr(each, name) for each in dirs] for name in names))


def _topics_of_view(view: ClusterView, order: Int64Array) -> Rows:
    """Topics in order of name, so that the first of equals is the same everywhere."""
    spread = topic_spread(view)
    columns = (getattr(spread, name) for name in ("topics", *schemas.TOPICS.column_names[3:]))
    return Rows([order.size], tuple(_reordered(column, order) for column in columns))


def _reordered(column: Any, order: Int64Array) -> Part:
    if isinstance(column, tuple):
        return [column[row] for row in order.tolist()]
    return None if column is None else column[order]


@attrs.frozen(eq=False)
class Broken:
    """Hold the violations of one cluster: columns of the table of clusters, and the first of each kind.

    `found` has all of them, and `out_of_sync` the brokers that are missing from ISRs; both are None where `counts` is
    known without looking.
    """

    counts: dict[str, Any]
    listed: tuple[Violation, ...]
    found: Found | None = None
    out_of_sync: OutOfSync | None = None


def broken_of(view: ClusterView, min_insync_replicas: int | None) -> Broken:
    """Return the counts of states and of violations, and the first violations of each kind in words."""
    states, broken, columns = broken_of_each(Clusters.of_view(view), min_insync_replicas)
    counts = {name: column[0] for name, column in columns.items()}
    listed = tuple(row for found in broken for row in found.explain(VIOLATIONS_MAX))
    return Broken(
        counts,
        listed + explain_states(view, states, VIOLATIONS_MAX),
        Found(states, broken, racks_known=counts["fewer_racks_count"] is not None),
        out_of_sync(view, states.under_replicated),
    )


def broken_of_each(
    clusters: Clusters, min_insync_replicas: int | None
) -> tuple[PartitionStates, tuple[Violations, ...], dict[str, list[Any]]]:
    """Return the states and violations of the view of all clusters, and the counts of each cluster as columns."""
    view, of = clusters.view, clusters.of_partition
    rack_counts = rack_counts_of(clusters)
    states = partition_states(view, min_insync_replicas=min_insync_replicas)
    broken = check(assignment_of(view), view.brokers, (*HARD, rack_spread(rack_counts[of])))
    counts = state_counts(clusters, states, min_insync_replicas=min_insync_replicas)
    in_all, spread = (np.zeros(clusters.count, np.int64) for _ in range(2))
    for found in broken:
        in_all += clusters.counted(of[found.subjects])
        spread += clusters.counted(of[found.subjects]) if found.constraint.name == RACK_SPREAD.name else 0
    for column in counts.values():
        in_all += np.array([count or 0 for count in column], np.int64)
    racks_unknown = (rack_counts == 0) | ((spread == 0) & np.bool_(not view.partitions_complete))
    missing = explained(clusters, states.under_replicated)
    short = counts["under_replicated"]
    shown = [None if count is None or missing is None else missing[place] for place, count in enumerate(short)]
    columns: dict[str, list[Any]] = {f"{name}_count": column for name, column in counts.items()}
    columns |= {"fewer_racks_count": _null_where(racks_unknown, spread), "violation_count": in_all.tolist()}
    return states, broken, columns | out_of_sync_facts(shown)


def rack_counts_of(clusters: Clusters) -> Int64Array:
    """Return the racks of each cluster, int64[K]."""
    pairs = zip(clusters.view.brokers, clusters.of_broker.tolist(), strict=True)
    of_rack = {broker.rack: cluster for broker, cluster in pairs if broker.rack is not None}
    return clusters.counted(np.array(list(of_rack.values()), np.int64))


def every_partition(view: ClusterView) -> Iterator[tuple[Table, Rows]]:
    """Yield the rows of all partitions of a view, in batches, as `describe_view` does."""
    found = broken_of(view, None).found
    assert found is not None
    yield from partition_rows(view, found, None)


def out_of_sync_facts(missing: Sequence[tuple[list[int], int] | None]) -> dict[str, list[Any]]:
    """Return the columns of the table of clusters that name the brokers missing from ISRs."""
    return {
        "out_of_sync_brokers": [None if one is None else one[0] for one in missing],
        "out_of_sync_explained_count": [None if one is None else one[1] for one in missing],
    }


def violation_rows(listed: Sequence[Sequence[Violation]]) -> Rows:
    """Return the rows of the table of violations, of one cluster after another."""
    every = [row for rows in listed for row in rows]
    names = schemas.VIOLATIONS.column_names[2:]
    return Rows([len(rows) for rows in listed], tuple([getattr(row, name) for row in every] for name in names))


def count_pairs(replicas: Int32Array, broker_ids: Int32Array) -> Rows:
    """Return the number of partitions that each pair of brokers shares, without pairs that share none; ids ascend."""
    places, count = broker_rows(broker_ids, replicas), broker_ids.size
    shared = np.zeros(count * count, dtype=np.int64)
    for first, second in combinations(range(places.shape[1]), 2):
        one, other = np.minimum(places[:, first], places[:, second]), np.maximum(places[:, first], places[:, second])
        some = (one >= 0) & (one != other)
        shared += np.bincount(one[some] * count + other[some], minlength=shared.size)
    pairs = np.flatnonzero(shared)
    return Rows([pairs.size], (broker_ids[pairs // max(count, 1)], broker_ids[pairs % max(count, 1)], shared[pairs]))
