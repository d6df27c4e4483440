"""Turn the cluster of a dump into rows of the tables: loads, spreads, violations; figures are those of placement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final

import attrs
import numpy as np

from broker.broker_rows import broker_rows
from broker.cluster import BROKER_FLAGS, ClusterView, Int32Array, Int64Array, LogDirView
from broker.known import known_of
from placement.balance.audit import assignment_of, explain_states, partition_states, rack_audit
from placement.balance.constraints import RACK_SPREAD, Violation, check
from placement.balance.loads import known_bytes
from placement.balance.out_of_sync import OutOfSync, out_of_sync
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
    held = Held.of_view(view)
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
    facts = {
        "cluster": view.name,
        "source": view.source,
        "format": view.format,
        "broker_count": len(view.brokers),
        "fenced_broker_count": int(view.flag("fenced").sum()),
        "topic_count": len(view.topics) if complete else None,
        "partition_count": view.partitions.count if complete else None,
        "replica_count": _total(held.brokers[0]),
        "size_bytes": known_bytes(view.partitions) if held.brokers[2] is None else _total(held.brokers[2]),
    }
    facts |= _racks_facts(view) | broken.counts | {"known": known_of(view).as_text()}
    further = partition_rows(view, broken.found, min_insync_replicas) if partitions and broken.found else ()
    return ClusterRows([DUMP], {name: [value] for name, value in facts.items()}, tables, shares, further)


def _racks_facts(view: ClusterView) -> dict[str, int | None]:
    audit = rack_audit(view)
    return {
        "unracked_broker_count": len(audit.unracked_brokers),
        "rack_count": audit.rack_count,
        "rack_broker_count_min": audit.rack_broker_count_min,
        "rack_broker_count_max": audit.rack_broker_count_max,
    }


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


def _total(shares: Int64Array | None) -> int | None:
    return None if shares is None else int(shares.sum())


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
    states = partition_states(view, min_insync_replicas=min_insync_replicas)
    broken = check(assignment_of(view), view.brokers)
    spread = next((found.count for found in broken if found.constraint is RACK_SPREAD), 0)
    counts: dict[str, Any] = dict(states.counts())
    counts = {f"{name}_count": count for name, count in counts.items()}
    violation_count = sum(found.count for found in broken) + sum(count or 0 for count in counts.values())
    racks_known = bool(view.racks) and (view.partitions_complete or spread > 0)
    listed = tuple(row for found in broken for row in found.explain(VIOLATIONS_MAX))
    missing = out_of_sync(view, states.under_replicated)
    return Broken(
        counts
        | {"fewer_racks_count": spread if racks_known else None, "violation_count": violation_count}
        | out_of_sync_facts(missing),
        listed + explain_states(view, states, VIOLATIONS_MAX),
        Found(states, broken, racks_known=racks_known),
        missing,
    )


def every_partition(view: ClusterView) -> Iterator[tuple[Table, Rows]]:
    """Yield the rows of all partitions of a view, in batches, as `describe_view` does."""
    found = broken_of(view, None).found
    assert found is not None
    yield from partition_rows(view, found, None)


def out_of_sync_facts(missing: OutOfSync | None) -> dict[str, Any]:
    """Return the columns of the table of clusters that name the brokers missing from ISRs."""
    return {
        "out_of_sync_brokers": None if missing is None else list(missing.brokers),
        "out_of_sync_explained_count": None if missing is None else missing.explained_count,
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
