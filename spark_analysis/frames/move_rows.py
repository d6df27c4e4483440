"""List the partitions that the least plan of a cluster changes: their replicas and leaders before and after.

The plan is the one that `movement.plans` counts. With reassignments in progress it starts from where they will end, and
`replicas` are those. A goal that a rule forbids, or a cluster of more than `PLANNED_PARTITIONS_MAX` partitions, is one
row that says so, `refused`.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from broker.cluster import SIZE_UNKNOWN, ClusterView
from broker.errors import RefusedError, UsageError
from broker.row_flags import count_in_row
from placement.planning.goal import as_targeted
from placement.planning.plan import make_plan
from placement.planning.reassignment import Reassignment
from spark_analysis.tables.advice_rows import GOALS, is_moving, topics_with_observers
from spark_analysis.tables.columns import KEY
from spark_analysis.tables.limits import PLANNED_PARTITIONS_MAX, UNPLANNED, check_listed
from spark_analysis.tables.lists import id_lists, leader_column
from spark_analysis.tables.schemas import MOVED

_SCHEMA: Final = pa.schema([pa.field(field.name, field.type) for field in list(MOVED.arrow_schema())[len(KEY) :]])


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
        "target_leader": plan.replicas[:, 0],
        "added_count": added,
        "moved_bytes": pa.array(sizes * added, mask=sizes == SIZE_UNKNOWN),
    }
