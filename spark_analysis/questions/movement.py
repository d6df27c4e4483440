"""Compute how little each cluster of a DataFrame must move: the least plan's replicas, leaders, bytes, and racks.

It answers for each cluster and goal, what the least plan moves and what any plan moves at least, which together say
whether the plan is proved least; and what is left to move before it and after it. Nothing is advised that a rule
forbids: `refused` says why.

What changing the brokers costs is a question of its own, `costs`: brokers that join, one that leaves, a new rack.
`moves` lists the partitions that the plan of one goal changes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from broker.cluster import PAD, SIZE_UNKNOWN, ClusterView
from broker.errors import RefusedError, UsageError
from broker.row_flags import count_in_row, first_in_row
from placement.planning.goal import as_targeted
from placement.planning.plan import make_plan
from placement.planning.reassignment import Reassignment
from spark_analysis.answers.movement import COSTS, JOINING, cost_table
from spark_analysis.frames.per_cluster import Rows, per_cluster
from spark_analysis.frames.transforming import question
from spark_analysis.frames.views import SIZES, STATES
from spark_analysis.tables import schemas
from spark_analysis.tables.advice_rows import BALANCE, GOALS, is_moving, plan_rows, topics_with_observers
from spark_analysis.tables.columns import KEY
from spark_analysis.tables.limits import PLANNED_PARTITIONS_MAX, UNPLANNED, check_listed
from spark_analysis.tables.lists import id_lists, leader_column
from spark_analysis.tables.schemas import MOVED

PLANS: Final = attrs.evolve(schemas.PLANS, grain="one row per cluster and goal: balance, bytes, leaders, racks")
_SCHEMA: Final = pa.schema([pa.field(field.name, field.type) for field in list(MOVED.arrow_schema())[len(KEY) :]])
_READS: Final = (*STATES, *SIZES)


@question
def plans(
    partitions: DataFrame,
    brokers: DataFrame | None = None,
    *,
    by: Sequence[str] | None = None,
    goals: Collection[str] | None = None,
) -> DataFrame:
    """Return one row per cluster and goal: how much the least plan moves, and any plan at least.

    Each of `goals` has a row, `refused` if there is no plan. By default the goals are those of a report, without bytes
    where sizes are not known and without racks that are in order. Raises UsageError for a goal that there is not, and
    for a column that is missing or of another type.
    """
    for goal in goals or ():
        _check_goal(goal)
    wanted = None if goals is None else frozenset(goals)
    return per_cluster(Rows(partitions, brokers, by), PLANS, lambda view: plan_table(view, wanted), reads=_READS)


@question
def moves(
    partitions: DataFrame,
    brokers: DataFrame | None = None,
    *,
    by: Sequence[str] | None = None,
    goal: str = BALANCE,
) -> DataFrame:
    """Return one row per partition that the least plan of each cluster changes: its replicas before and after.

    A cluster without a plan has one row that says why, `refused`. Raises UsageError as `plans` does.
    """
    _check_goal(goal)
    return per_cluster(Rows(partitions, brokers, by), MOVED, lambda view: move_table(view, goal), reads=_READS)


@question
def costs(
    partitions: DataFrame,
    brokers: DataFrame | None = None,
    *,
    by: Sequence[str] | None = None,
    joining: int = int(JOINING.default),
) -> DataFrame:
    """Return one row per cluster and change of its brokers: what the plan moves, and any plan at least.

    `joining` brokers join each rack. Raises UsageError as `plans` does.
    """
    if not JOINING.low <= joining <= JOINING.high:
        raise UsageError(f"joining is {joining}; allowed are {JOINING.low:g} to {JOINING.high:g}")
    return per_cluster(Rows(partitions, brokers, by), COSTS, lambda view: cost_table(view, joining), reads=_READS)


def _check_goal(goal: str) -> None:
    if goal not in GOALS:
        raise UsageError(f"there is no goal {goal!r}; goals are {', '.join(GOALS)}")


def plan_table(view: ClusterView, goals: Collection[str] | None = None) -> pa.Table:
    """Return a row for each goal, the least plan of one cluster; none for a cluster without partitions."""
    check_listed(view, "no plan can be made")
    rows = list(plan_rows(view, goals)) if view.partitions.count else []
    schema = [pa.field(field.name, field.type) for field in list(PLANS.arrow_schema())[2:]]
    return pa.Table.from_pylist(rows, schema=pa.schema(schema))


def move_table(view: ClusterView, goal: str) -> pa.Table:
    """Return the partitions of one cluster that the least plan for a goal changes, in the order of the view.

    Raises UsageError for a cluster of which not every partition is listed.
    """
    check_listed(view, "no plan can be made")
    if not view.partitions.count:
        return _SCHEMA.empty_table()
    if view.partitions.count > PLANNED_PARTITIONS_MAX:
        return _refused(goal, UNPLANNED)
    base = as_targeted(view) if is_moving(view) else view
    try:
        plan = make_plan(base, attrs.evolve(GOALS[goal], exclude_topics=topics_with_observers(view)))
    except (RefusedError, UsageError) as refused:
        return _refused(goal, str(refused))
    return pa.table(_columns(plan.reassignment, goal)).cast(_SCHEMA)


def _refused(goal: str, why: str) -> pa.Table:
    return pa.Table.from_pylist([{"goal": goal, "refused": why}], schema=_SCHEMA)


def _columns(plan: Reassignment, goal: str) -> dict[str, Any]:
    table, rows = plan.view.partitions, plan.rows
    names: Any = pa.array([topic.name for topic in plan.view.topics], pa.string())
    added = count_in_row(plan.added)
    sizes = np.where(added > 0, plan.copy_bytes, 0)
    return {
        "goal": pa.array([goal] * plan.count, pa.string()),
        "refused": pa.nulls(plan.count),
        "topic": names.take(pa.array(table.topic_index[rows])),
        "partition": table.partition_ids[rows],
        "replicas": id_lists(plan.current),
        "target_replicas": id_lists(plan.replicas),
        "leader": pa.nulls(plan.count) if table.leader is None else leader_column(table.leader[rows]),
        "target_leader": first_in_row(plan.replicas, plan.replicas != PAD),
        "added_count": added,
        "moved_bytes": pa.array(sizes * added, mask=sizes == SIZE_UNKNOWN),
    }
