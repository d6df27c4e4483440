"""Plan what changing the brokers of each cluster moves: brokers that join, one that leaves, a rack that joins.

A change that cannot be made is a row that says why, `refused`; the cluster's other rows stand. Topics with observers
are left alone, as plans of the report leave them, and a plan begins where reassignments in progress will end.

Source: the cases are those of Cruise Control's add_broker and remove_broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.cluster import PAD, ClusterView
from broker.errors import RefusedError, UsageError
from broker.ids import BrokerId
from placement.balance.loads import broker_loads
from placement.planning.goal import Goal, as_targeted
from placement.planning.moves import Moves
from placement.planning.plan import make_plan
from spark_analysis.answers.question import Assumption, Cell, Field, Question, Shown, ShownTable, Values
from spark_analysis.answers.sums import groups, is_of_one_placer, mean, quantile
from spark_analysis.tables.advice_rows import is_moving, topics_with_observers
from spark_analysis.tables.columns import KEY, Column, Table
from spark_analysis.tables.limits import PLANNED_PARTITIONS_MAX, UNPLANNED, check_listed

BALANCE: Final = "balance"
ADD: Final = "add"
DRAIN: Final = "drain"
RACK: Final = "rack"
CHANGES: Final = (BALANCE, ADD, DRAIN, RACK)
ID_MAX: Final = (1 << 31) - 1  # Kafka's ids of brokers are ints.
_IN_WORDS: Final = {
    BALANCE: "no change, balance alone",
    ADD: "brokers join every rack",
    DRAIN: "the fullest broker leaves",
    RACK: "a rack joins",
}
_SHORT: Final = {BALANCE: "to balance", ADD: "as brokers join", DRAIN: "as the fullest leaves", RACK: "as a rack joins"}
COSTS: Final = Table(
    "movement",
    "one row per cluster and change of its brokers: balance, add, drain, rack",
    (
        *KEY,
        Column("change", "string", "balance: none; add: brokers join; drain: the fullest leaves; rack: a rack joins"),
        Column("broker_count", "long", "Brokers before the change", "brokers"),
        Column("changed_broker_count", "long", "Brokers that join or leave", "brokers"),
        Column("first_broker_id", "int", "Number of the broker that leaves, or of the first that joins", nullable=True),
        Column("refused", "string", "Why there is no plan", nullable=True),
        Column("replica_count", "long", "Replicas before the change", "replicas"),
        Column("moved_count", "long", "Replicas that the plan moves", "replicas", nullable=True),
        Column("moved_count_min", "long", "Replicas that any plan moves, at least", "replicas", nullable=True),
        Column("moved_share", "double", "Moved replicas divided by all replicas, 0 to 1", "share", nullable=True),
        Column("moved_bytes", "long", "Bytes that the plan moves, where sizes are known", "bytes", nullable=True),
        Column("leader_change_count", "long", "Partitions that get another leader", "partitions", nullable=True),
        Column("leader_change_count_min", "long", "Partitions to which any plan gives another leader, at least",
               "partitions", nullable=True),
        Column("is_least", "boolean", "Whether no plan moves less", nullable=True),
    ),
)  # fmt: skip
JOINING: Final = Assumption(
    "joining",
    1,
    "Brokers that join each rack, or the cluster where racks are unknown",
    "brokers",
    low=1,
    high=1_000,
    whole=True,
)
_SHOWN: Final = (
    Field("shape", "shape"),
    Field("placer", "placer"),
    Field("change", "change"),
    Field("cluster_count", "clusters", "count"),
    Field("moved_share_mean", "replicas that move", "percent"),
    Field("moved_share_p99", "99 % of clusters", "percent"),
    Field("leader_change_mean", "leaders that change", "mean"),
    Field("least_share", "proved least", "percent"),
    Field("refused_count", "refused", "count"),
)


def cost_table(view: ClusterView, joining: int = 1) -> pa.Table:
    """Return what each change of a cluster's brokers moves, a row a change; none for a cluster without partitions."""
    check_listed(view, "no plan can be made")
    rows = list(_rows(view, joining)) if view.partitions.count else []
    fields = [pa.field(field.name, field.type) for field in list(COSTS.arrow_schema())[len(KEY) :]]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def _rows(view: ClusterView, joining: int) -> Iterator[dict[str, Any]]:
    replica_count = int((view.partitions.replicas != PAD).sum())
    about = {"broker_count": len(view.brokers), "replica_count": replica_count}
    base = as_targeted(view) if is_moving(view) else view
    excluded = topics_with_observers(view)
    for change, goal in _goals(view, joining, excluded):
        brokers = (*goal.remove, *(number for number, _ in goal.add))
        first = min((number for number in brokers if number <= ID_MAX), default=None)
        which = {"changed_broker_count": len(brokers), "first_broker_id": first}
        yield {"change": change, **which, **about, **_cost(base, goal, replica_count)}


def _goals(view: ClusterView, joining: int, excluded: tuple[str, ...]) -> Iterator[tuple[str, Goal]]:
    """Yield the changes that the cluster may see, each with the goal of its plan."""
    racks: Sequence[str | None] = view.racks if all(one.rack is not None for one in view.brokers) else ()
    first = 1 + max((one.id for one in view.brokers), default=-1)
    yield BALANCE, Goal(exclude_topics=excluded)
    to = [rack for rack in racks or (None,) for _ in range(joining)]
    joined = tuple((BrokerId(first + place), rack) for place, rack in enumerate(to))
    yield ADD, Goal(kind="add", add=joined, exclude_topics=excluded)
    held = broker_loads(view).replica_count
    assert held is not None, "every partition is listed"
    live = np.flatnonzero(view.alive).tolist()
    if live:
        fullest = view.brokers[live[int(np.argmax(held[live]))]].id
        yield DRAIN, Goal(kind="drain", remove=(fullest,), exclude_topics=excluded)
    if racks:
        name = next(name for name in ("new", *(f"new-{place}" for place in range(len(racks)))) if name not in racks)
        count = min(sum(one.rack == rack for one in view.brokers) for rack in racks)
        members = tuple((BrokerId(first + place), name) for place in range(count))
        yield RACK, Goal(kind="add", add=members, exclude_topics=excluded)


def _cost(view: ClusterView, goal: Goal, replica_count: int) -> dict[str, Any]:
    if view.partitions.count > PLANNED_PARTITIONS_MAX:
        return {"refused": UNPLANNED}
    if any(number > ID_MAX for number, _ in goal.add):
        return {"refused": f"brokers that join would need numbers above {ID_MAX:,}"}
    try:
        plan = make_plan(view, goal)
    except (RefusedError, UsageError) as refused:
        return {"refused": str(refused)}
    tally, moves = plan.tally, Moves.of(plan.reassignment)
    return {
        "moved_count": tally.moved,
        "moved_count_min": tally.moved_bound,
        "moved_share": tally.moved / max(replica_count, 1),
        "moved_bytes": int((moves.sizes * moves.counts).sum()) if moves.sizes_known else None,
        "leader_change_count": tally.leader_changes,
        "leader_change_count_min": tally.leader_changes_least,
        "is_least": tally.is_least,
    }


def _answer(view: ClusterView, values: Values) -> pa.Table:
    return cost_table(view, int(values[JOINING.name]))


def _show(rows: pa.Table, values: Values) -> Shown:
    by = ("shape", "placer", "change")
    found = [(*key, *_summed(some)) for key, some in groups(rows, by)]
    order = {change: place for place, change in enumerate(CHANGES)}
    ordered = sorted(found, key=lambda row: (str(row[0] or ""), str(row[1]), order[str(row[2])]))
    shown = tuple((row[0], row[1], _IN_WORDS[str(row[2])], *row[3:]) for row in ordered)
    table = ShownTable("by_change", "What each change moves, over clusters", _SHOWN, shown)
    count = int(values[JOINING.name])
    joined = "1 broker joins" if count == 1 else f"{count} brokers join"
    return Shown(
        f"{_headline(rows)}What moves when {joined} every rack, when the fullest broker leaves, and when a rack joins "
        "that is as large as the smallest. Each plan is held against a bound that no plan is below.",
        (table,),
        refusals=tuple(_refusals(rows)),
    )


def _headline(rows: pa.Table) -> str:
    """Return which share of the replicas each change moves, mean over clusters; "" of several placers."""
    if not is_of_one_placer(rows):
        return ""
    found = {str(change): mean(some["moved_share"].to_pylist()) for (change,), some in groups(rows, ("change",))}
    parts = [f"{_SHORT[name]} {100 * share:.1f} %" for name in CHANGES if (share := found.get(name)) is not None]
    return f"Of the replicas move: {', '.join(parts)}. " if parts else ""


def _refusals(rows: pa.Table) -> Iterator[str]:
    """Yield for each change of how many clusters it is refused, and why of the first of them."""
    asked = rows.filter(pc.is_null(rows["fault"]))
    for change, words in _IN_WORDS.items():
        of_change = asked.filter(pc.equal(asked["change"], pa.scalar(change)))
        refused = of_change.filter(pc.is_valid(of_change["refused"]))
        if refused.num_rows:
            first = refused.slice(0, 1).to_pylist()[0]
            yield (
                f"Refused, {words}: {refused.num_rows:,} of {of_change.num_rows:,}; the first, {first['cluster']}: "
                f"{first['refused']}"
            )


def _summed(rows: pa.Table) -> tuple[Cell, ...]:
    shares, least = rows["moved_share"].to_pylist(), rows["is_least"].to_pylist()
    return (
        rows.num_rows,
        mean(shares),
        quantile(shares, 0.99),
        mean(rows["leader_change_count"].to_pylist()),
        mean([None if one is None else float(one) for one in least]),
        rows.num_rows - rows["refused"].null_count,
    )


QUESTION: Final = Question(
    table=COSTS,
    title="What does a change of brokers move?",
    answer=_answer,
    show=_show,
    assumptions=(JOINING,),
)
