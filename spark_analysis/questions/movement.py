"""Compute how little each cluster of a DataFrame must move: the least plan's replicas, leaders, bytes, and racks.

What it decides: for each cluster and goal, what the least plan moves and what any plan moves at least, which together
say whether the plan is proved least; and what is left to move before it and after it. Goals are those of the report:
`balance` (replicas and leaders), `bytes` (even bytes), `leaders` (by reordering alone), `racks` (mend the rack rule
alone). Rows are those of the table `plans` of `brokerside report`.

Constraints: nothing is advised that a rule forbids: `refused` says why. Clusters of more than `PLANNED_PARTITIONS_MAX`
partitions are refused, too: `brokerside plan` makes these.

How: as balance.py, a cluster a task; the planner is that of `brokerside plan`.

What changing the brokers costs is a question of its own, `costs`: brokers that join, one that leaves, a new rack.
`moves` lists the partitions that the plan of one goal changes.

Source: placement/planning.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame

from broker.cluster import ClusterView
from broker.errors import UsageError
from spark_analysis.answers.movement import COSTS, JOINING, cost_table
from spark_analysis.frames.move_rows import move_table
from spark_analysis.frames.per_cluster import Rows, per_cluster
from spark_analysis.tables import schemas
from spark_analysis.tables.advice_rows import BALANCE, GOALS, plan_rows
from spark_analysis.tables.limits import check_listed
from spark_analysis.tables.schemas import MOVED

PLANS: Final = attrs.evolve(schemas.PLANS, grain="one row per cluster and goal: balance, bytes, leaders, racks")


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
    return per_cluster(Rows(partitions, brokers, by), PLANS, lambda view: plan_table(view, wanted))


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
    return per_cluster(Rows(partitions, brokers, by), MOVED, lambda view: move_table(view, goal))


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
    return per_cluster(Rows(partitions, brokers, by), COSTS, lambda view: cost_table(view, joining))


def _check_goal(goal: str) -> None:
    if goal not in GOALS:
        raise UsageError(f"there is no goal {goal!r}; goals are {', '.join(GOALS)}")


def plan_table(view: ClusterView, goals: Collection[str] | None = None) -> pa.Table:
    """Return a row for each goal, the least plan of one cluster; none for a cluster without partitions."""
    check_listed(view, "no plan can be made")
    rows = list(plan_rows(view, goals)) if view.partitions.count else []
    schema = [pa.field(field.name, field.type) for field in list(PLANS.arrow_schema())[2:]]
    return pa.Table.from_pylist(rows, schema=pa.schema(schema))
