"""Turn the cluster of a dump into rows of the tables: its loads, its spreads, its violations.

How: every figure is that of `placement`, computed from a ClusterView.

Left out: the rank, which compares clusters, and the measures, which SQL computes from the shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np

from broker.broker_rows import broker_rows
from broker.cluster import BrokerView, ClusterView, Int32Array, Int64Array, LogDirView
from placement.balance.audit import assignment_of, explain_states, partition_states, rack_audit
from placement.balance.constraints import RACK_SPREAD, Violation, check
from placement.balance.loads import GroupLoads, loads
from placement.balance.measures import best_over_brokers, best_over_racks
from placement.balance.out_of_sync import OutOfSync, out_of_sync
from placement.balance.reachable import Classes, Groups, Reach
from placement.balance.topic_spread import topic_spread
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import NOT_KNOWN, QUANTITIES, Best, ClusterRows, Part, Rows, Shares
from spark_analysis.tables.columns import Table
from spark_analysis.tables.limits import VIOLATIONS_MAX
from spark_analysis.tables.pairs_kernel import count_shared
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
    held = loads(view)
    broken = broken_of(view, min_insync_replicas)
    complete = view.partitions_complete
    brokers = held.brokers
    racks, fenced = [broker.rack for broker in view.brokers], [broker.fenced for broker in view.brokers]
    missing = None if broken.out_of_sync is None else broken.out_of_sync.counts
    tables = {
        schemas.BROKERS: Rows(
            [len(racks)], (view.broker_ids, racks, fenced, *_quantities(brokers), missing, *_flags(view))
        ),
        schemas.VIOLATIONS: violation_rows([broken.listed]),
    }
    if view.log_dirs:
        tables[schemas.LOG_DIRS] = _log_dirs(view.log_dirs)
    groups = Groups.of_view(view)
    classes = Classes.of_view(view, groups)
    live = np.flatnonzero(groups.of >= 0)
    counted = tuple(None if column is None else column[live] for column in _quantities(brokers))
    over_brokers = reached(best_over_brokers, groups, classes, counted)
    names = [brokers.names[row] for row in live.tolist()]
    shares = [Shares("broker", np.array([live.size]), names, counted, bests_of(over_brokers))]
    if held.racks is not None:
        tables[schemas.RACKS] = _racks(held.racks, view.brokers, best_of_racks(groups, over_brokers))
        in_racks = tuple(None if column is None else rack_sums(groups, column) for column in _quantities(brokers))
        over_racks = reached(best_over_racks, groups, classes, in_racks)
        names = [name for name, group in zip(held.racks.names, groups.of_rack.tolist(), strict=False) if group >= 0]
        shares.append(Shares("rack", np.array([len(names)]), names, in_racks, bests_of(over_racks)))
    if held.topics is not None:
        by_name = sorted(range(len(view.topics)), key=lambda row: view.topics[row].name)
        tables[schemas.TOPICS] = _topics_of_view(view, np.array(by_name, dtype=np.int64))
        shares.append(_shares(held.topics, by_name))
    if pairs and complete and len(view.brokers) <= PAIR_BROKER_COUNT_MAX:
        tables[schemas.PAIRS] = count_pairs(view.partitions.replicas, view.broker_ids)
    facts = {
        "cluster": view.name,
        "source": view.source,
        "format": view.format,
        "broker_count": len(view.brokers),
        "fenced_broker_count": sum(fenced),
        "topic_count": len(view.topics) if complete else None,
        "partition_count": view.partitions.count if complete else None,
        "replica_count": _total(brokers.replica_count),
        "size_bytes": _total(brokers.size_bytes),
    }
    facts |= _racks_facts(view) | broken.counts
    further = partition_rows(view, broken.found, min_insync_replicas) if partitions and broken.found else ()
    return ClusterRows([DUMP], {name: [value] for name, value in facts.items()}, tables, tuple(shares), further)


def _flags(view: ClusterView) -> tuple[list[bool], list[bool]]:
    """Return which brokers are cordoned, and which are in controlled shutdown."""
    return [one.cordoned for one in view.brokers], [one.in_controlled_shutdown for one in view.brokers]


def reached(
    best: Callable[[Groups, Classes | None, str, Int64Array], Reach],
    groups: Groups,
    classes: Classes | None,
    shares: Sequence[Int64Array | None],
) -> tuple[Reach | None, ...]:
    """Return the best spread of replicas, of leaders and of bytes, None where not known."""
    known = zip(QUANTITIES, shares, strict=True)
    return tuple(None if held is None else best(groups, classes, quantity, held) for quantity, held in known)


def bests_of(reaches: Sequence[Reach | None]) -> tuple[Best | None, ...]:
    """Return the best spreads of one cluster, quantity by quantity."""
    return tuple(None if one is None else Best.of(one) for one in reaches)


def rack_sums(groups: Groups, shares: Int64Array) -> Int64Array:
    """Return what the live brokers of each rack hold; racks without one are left out."""
    sums = np.zeros(groups.sizes.size, dtype=np.int64)
    live = groups.of >= 0
    np.add.at(sums, groups.of[live], shares[live])
    return sums[: groups.rack_count]


def best_of_racks(groups: Groups, over_brokers: Sequence[Reach | None]) -> tuple[Int64Array, ...]:
    """Return the columns of the table of racks that say what a broker holds at best; -1 where not known."""
    unknown = np.full(groups.of_rack.size + 1, NOT_KNOWN, dtype=np.int64)
    return tuple(
        column for best in over_brokers for column in ((unknown, unknown) if best is None else best.of_racks(groups))
    )


def _shares(group: GroupLoads, rows: Sequence[int]) -> Shares:
    """Return what these groups hold, in this order; between them nothing can move."""
    order = np.array(rows, dtype=np.int64)
    replicas, leaders, sizes = (None if column is None else column[order] for column in _quantities(group))
    names = [group.names[row] for row in rows]
    return Shares(group.scope, np.array([order.size]), names, (replicas, leaders, sizes))


def _racks_facts(view: ClusterView) -> dict[str, int | None]:
    audit = rack_audit(view)
    return {
        "unracked_broker_count": len(audit.unracked_brokers),
        "rack_count": audit.rack_count,
        "rack_broker_count_min": audit.rack_broker_count_min,
        "rack_broker_count_max": audit.rack_broker_count_max,
    }


def _quantities(group: GroupLoads) -> tuple[Int64Array | None, ...]:
    return group.replica_count, group.leader_count, group.size_bytes


def _racks(racks: GroupLoads, brokers: tuple[BrokerView, ...], best: Sequence[Int64Array]) -> Rows:
    counts = dict.fromkeys(racks.names, 0)
    for broker in brokers:
        counts[broker.rack] += 1
    names = list(racks.names)
    of_best = (column[: len(names)] for column in best)
    return Rows([len(names)], (names, [counts[name] for name in names], *_quantities(racks), *of_best))


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
    shared = np.zeros((broker_ids.size, broker_ids.size), dtype=np.int64)
    count_shared(broker_rows(broker_ids, replicas).astype(np.int32), shared)
    lesser, greater = np.nonzero(shared)
    return Rows([lesser.size], (broker_ids[lesser], broker_ids[greater], shared[lesser, greater]))
