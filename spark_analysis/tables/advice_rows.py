"""Turn the cluster of a dump into rows that say what to do next: recovery, plans, outages, restarts.

Recovery comes first: who must return to partitions without a leader, elections, and brokers that look dead.
Four plans: `balance` moves the fewest replicas and leaders; `bytes`, where sizes are known, brings the bytes of every
broker within `BYTES_TOLERANCE_PERCENT` of the reachable mean; `leaders` reorders replicas only; `racks` restores the
rack rule. A plan that is refused becomes a row that says why. Topics with observers are left alone, and a plan begins
where reassignments in progress will end; the row says both. The effort is bounded by sizes, never by a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import PAD, ClusterView, Int64Array, distinct_ids
from broker.clusters import Clusters
from broker.errors import RefusedError, UsageError
from broker.liveness import Liveness
from broker.row_flags import any_in_row
from placement.balance.audit import assignment_of
from placement.balance.constraints import RACK_SPREAD
from placement.balance.loads import broker_loads
from placement.balance.measures import distribution
from placement.balance.reachable import Classes, Groups, Optimum
from placement.balance.shares import QUANTITIES, best_over_brokers
from placement.outages.elections import leaderless, preferred_rows
from placement.outages.restarts import restart_schedule
from placement.planning.completion import completed_view, completion
from placement.planning.goal import Goal, as_targeted, copy_sizes
from placement.planning.moves import Moves
from placement.planning.notes import notes_of
from placement.planning.plan import Drain, Plan, drain_of, make_plan
from spark_analysis.tables.cluster_rows import Rows
from spark_analysis.tables.columns import Table
from spark_analysis.tables.limits import (
    BYTES_TOLERANCE_PERCENT,
    OUTAGE_BROKERS_MAX,
    PLANNED_PARTITIONS_MAX,
    SCHEDULED_BROKERS_MAX,
    UNPLANNED,
)
from spark_analysis.tables.outage_rows import outage_rows
from spark_analysis.tables.schemas import ADVICE, OUTAGES, PLANS, RECOVERY, RESTARTS

BALANCE: Final = "balance"
LEADERS: Final = "leaders"
RACKS: Final = "racks"
BYTES: Final = "bytes"
GOALS: Final = {
    BALANCE: Goal(),
    BYTES: Goal(by="bytes", tolerance=BYTES_TOLERANCE_PERCENT / 100),
    LEADERS: Goal(only_leaders=True),
    RACKS: Goal(kind="racks"),
}
_OPTION: Final = re.compile(r"(?<![\w.-])--(?!(?:racks|sizes|min-isr)\b)(?=[a-z])")
EXCLUDED_TOPICS_MAX: Final = 20  # More would make a command that nobody reads.

Row = dict[str, Any]


def advice_rows(view: ClusterView) -> dict[Table, Rows]:
    """Return the rows of the tables `schemas.ADVICE`; but for recovery none of a view that lists some partitions."""
    found = {table: advice_of(table, view) for table in ADVICE}
    return {table: rows for table, rows in found.items() if rows is not None}


def advice_of(table: Table, view: ClusterView) -> Rows | None:
    """Return the rows of one table of advice; None if it has no rows."""
    if not view.partitions.count or not (view.wholeness.refusal is None or table is RECOVERY):
        return None
    found: dict[Table, Callable[[], Iterable[Row]]] = {
        PLANS: lambda: plan_rows(view),
        OUTAGES: lambda: _outages(view),
        RESTARTS: lambda: [_restarts(view)],
        RECOVERY: lambda: recovery_rows(view),
    }
    rows = list(found[table]())
    return _columns(table, rows) if rows else None


def _columns(table: Table, rows: Sequence[Row]) -> Rows:
    names = table.column_names[2:]  # Without the key.
    return Rows([len(rows)], tuple([row.get(name) for row in rows] for name in names))


def plan_rows(view: ClusterView, goals: Collection[str] | None = None) -> Iterator[Row]:
    """Yield a row for each of `goals`: the least plan, or why there is none.

    By default these are the goals that have something to do: not bytes that are not known, nor racks that are in order.
    """
    before = _Measured.of(view) if view.partitions.count <= PLANNED_PARTITIONS_MAX else None
    excluded, from_target = topics_with_observers(view), is_moving(view)
    base = as_targeted(view) if from_target else view
    sized = view.partitions.count > 0 and bool((copy_sizes(view) >= 0).all())
    for name, goal in GOALS.items():
        if goals is not None and name not in goals:
            continue
        # Without broken racks a plan that only restores rack spread has nothing to do, whatever else is to be moved.
        broken = view.racks if before is None else before.to_move["fewer_racks_count"]
        if goals is None and ((name == BYTES and not sized) or (name == RACKS and not broken)):
            continue
        row: Row = {"goal": name, "excluded_topics": list(excluded), "from_target": from_target, "notes": []}
        if before is None:
            yield row | {"refused": UNPLANNED}
            continue
        try:
            plan = make_plan(base, attrs.evolve(goal, exclude_topics=excluded))
        except (RefusedError, UsageError) as refused:
            yield row | {"refused": of_plan(str(refused))}
        else:
            yield row | _of_plan(plan, before)


def topics_with_observers(view: ClusterView) -> tuple[str, ...]:
    """Return the topics that have observers, or partitions without a replica; none if they are too many to name."""
    table = view.partitions
    rows = ~any_in_row(table.replicas != PAD)
    if table.observers is not None:
        rows |= any_in_row(table.observers != PAD)
    names = sorted({view.topics[place].name for place in np.unique(table.topic_index[rows]).tolist()})
    return tuple(names) if len(names) <= EXCLUDED_TOPICS_MAX else ()


def is_moving(view: ClusterView) -> bool:
    """Return whether a reassignment is in progress."""
    table = view.partitions
    return any(column is not None and bool((column != PAD).any()) for column in (table.adding, table.removing))


def of_plan(said: str) -> str:
    """Return what `brokerside plan` says with the command before its options, as a report has others.

    >>> of_plan("give --strict-racks"), of_plan("kafka-reassign-partitions --execute refuses")
    ('give plan --strict-racks', 'kafka-reassign-partitions --execute refuses')
    """
    return said if "kafka-" in said else _OPTION.sub("plan --", said)


def _of_plan(plan: Plan, before: _Measured) -> Row:
    moved, tally = plan.reassignment, plan.tally
    done = completion(moved)
    after = _Measured.of(completed_view(moved, done=done), before) if moved.count else before
    moves = Moves.of(moved)
    row: Row = {
        "moved_count": tally.moved,
        "moved_count_min": tally.moved_bound,
        "moved_bytes": int((moves.sizes * moves.counts).sum()) if moves.sizes_known else None,
        "moved_bytes_min": tally.moved_bytes_bound,
        "leader_change_count": tally.leader_changes,
        "leader_change_count_min": tally.leader_changes_least,
        "changed_partition_count": moved.count,
        "is_least": tally.is_least,
        "notes": [of_plan(note) for note in notes_of(plan, done)],
    }
    for when, values in (("before", before), ("after", after)):
        row |= {f"{name}_{when}": value for name, value in values.to_move.items()}
    return row


@attrs.frozen(eq=False)
class _Measured:
    """Hold what would have to move until the brokers of a view are even, and the optimum that they are held against."""

    to_move: dict[str, int | None]
    optimum: Optimum

    @classmethod
    def of(cls, view: ClusterView, before: _Measured | None = None) -> _Measured:
        """Measure a view; `before` is measured of the same brokers, and its optimum holds where classes do."""
        held = broker_loads(view)
        groups = Groups.of_view(view) if before is None else before.optimum.groups
        optimum = Optimum(groups, Classes.of_view(view, groups))
        if before is not None and _are_alike(before.optimum.classes, optimum.classes):
            optimum = before.optimum
        live = groups.of >= 0
        found: dict[str, int | None] = {}
        columns = (held.replica_count, held.leader_count, held.size_bytes)
        for quantity, column in zip(QUANTITIES, columns, strict=True):
            moves = None
            if column is not None:
                moves = distribution(column[live], best=best_over_brokers(optimum, quantity, column[live])).moves
            found[f"{quantity.removesuffix('s')}_moves"] = moves
        broken = RACK_SPREAD.violations(assignment_of(view), view.brokers).count if view.racks else None
        return cls(found | {"fewer_racks_count": broken}, optimum)


def _are_alike(one: Classes | None, other: Classes | None) -> bool:
    """Return whether the best spreads of both are the same: as many partitions of each class."""
    if one is None or other is None:
        return False
    columns = ("factors", "barred", "stands", "replicas", "leaders", "bytes")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)


def _outages(view: ClusterView) -> Iterable[Row]:
    """Return the worst loss of a broker and of a rack; nothing if the cluster has too many brokers."""
    if len(view.brokers) > OUTAGE_BROKERS_MAX:
        return ()
    losses = outage_rows(Clusters.of_view(view))
    worst: list[Row] = losses.filter(pa.array(losses["severity_rank"].to_numpy() == 1)).to_pylist()
    return worst


def _restarts(view: ClusterView) -> Row:
    if view.partitions.count > PLANNED_PARTITIONS_MAX or len(view.brokers) > SCHEDULED_BROKERS_MAX:
        why = (
            f"more than {PLANNED_PARTITIONS_MAX:,} partitions or {SCHEDULED_BROKERS_MAX:,} brokers are left to the "
            "command"
        )
        return {"refused": why, "notes": []}
    try:
        found = restart_schedule(view)
    except (RefusedError, UsageError) as refused:
        return {"refused": str(refused), "notes": []}
    return {
        "batch_count": len(found.batches),
        "batch_count_min": found.bound,
        "batch_broker_count_max": max(map(len, found.batches), default=0),
        "stuck_partition_count": int(found.limits.stuck.rows.size),
        "notes": list(found.limits.notes),
    }


def recovery_rows(view: ClusterView) -> Iterator[Row]:
    """Yield the steps that give partitions leaders or replicas again; elections only where they change something."""
    unled = leaderless(view)
    for each in unled.returning():
        is_up = bool(each.broker_ids) and bool(view.alive[np.isin(view.broker_ids, each.broker_ids)].all())
        yield _step(view, "return", each.broker_ids, np.array(each.rows), role=each.role.value) | {"is_up": is_up}
    elects = unled.elected != PAD
    if elects.any():
        yield _step(view, "unclean-election", distinct_ids(unled.elected[elects]), unled.rows[elects])
    dead = [broker for broker, found in view.down.items() if found is not Liveness.STOPPING]
    drain = drain_of(view, dead) if dead else Drain()
    for how in dict.fromkeys(each for each in view.down.values() if each is not Liveness.STOPPING):
        brokers = [broker for broker, found in view.down.items() if found is how]
        held = int(np.count_nonzero(any_in_row(np.isin(view.partitions.replicas, brokers))))
        if held:
            yield _step(view, "down", brokers, role=how.value) | {
                "partition_count": held,
                "goal": drain.goal,
                "refused": None if drain.refused is None else of_plan(drain.refused),
            }
    preferred = preferred_rows(view)
    if preferred.size and view.partitions_complete:
        leaders = distinct_ids(view.partitions.replicas[preferred, 0])
        yield _step(view, "preferred-election", leaders, preferred) | _evened(view, preferred)


def _step(
    view: ClusterView, step: str, brokers: Iterable[int], rows: Int64Array | None = None, role: str | None = None
) -> Row:
    table = view.partitions
    rows = np.zeros(0, dtype=np.int64) if rows is None else rows
    return {
        "step": step,
        "broker_ids": [int(broker) for broker in brokers],
        "role": role,
        "partition_count": int(rows.size),
        "topics": [view.topics[topic].name for topic in table.topic_index[rows].tolist()],
        "partitions": table.partition_ids[rows].tolist(),
    }


def _evened(view: ClusterView, rows: Int64Array) -> Row:
    """Return how many leaders have to move until brokers are even, before and after a preferred election of `rows`."""
    table = view.partitions
    if table.count > PLANNED_PARTITIONS_MAX or table.leader is None:
        return {}
    leader = table.leader.copy()
    leader[rows] = table.replicas[rows, 0]
    before = _Measured.of(view)
    after = _Measured.of(attrs.evolve(view, partitions=attrs.evolve(table, leader=leader)), before)
    return {f"leader_moves_{when}": of.to_move["leader_moves"] for when, of in (("before", before), ("after", after))}
