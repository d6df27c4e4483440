"""A plan and its impact count the same: replicas, bytes and leaders, broker by broker, on random clusters."""

from __future__ import annotations

import random

import attrs
import pytest

from broker.cluster import ClusterView
from broker.errors import RefusedError, UsageError
from broker.ids import BrokerId
from broker.liveness import Liveness
from placement.planning.completion import elected_besides
from placement.planning.goal import Goal
from placement.planning.impact import impact
from placement.planning.impact_tables import brokers_table as brokers_of_impact
from placement.planning.plan import make_plan
from placement.planning.plan_tables import brokers_table, moves_table
from placement.planning.schedule import Limits, schedule
from tests.placement.planning.cases import lists, padded, random_view

SEEDS = [*range(60), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(60, 1000))]
SAME = {
    "broker": "broker_id",
    "replicas_before": "replica_count_before",
    "replicas_received": "replica_count_in",
    "replicas_given": "replica_count_gone",
    "replicas_after": "replica_count_after",
    "leaders_before": "leader_count_before",
    "leaders_after": "leader_count_after",
    "bytes_before": "size_bytes_before",
    "bytes_peak": "size_bytes_peak",
    "bytes_after": "size_bytes_after",
}
"""The columns of a plan's brokers, and those of its impact's."""


def without(view: ClusterView, down: BrokerId, how: Liveness) -> ClusterView:
    """Return the view once a broker is down: it leads nothing and is in no ISR of others."""
    table = view.partitions
    assert table.isr is not None
    rows = zip(lists(table.isr), lists(table.replicas), strict=True)
    isr = [
        [each for each in row if each != down] or [each for each in held if each != down] or row for row, held in rows
    ]
    leader = [next((each for each in row if each != down), -1) for row in isr]
    return attrs.evolve(view, partitions=attrs.evolve(table, isr=padded(isr), leader=leader)).with_stated({down: how})


def drawn(chance: random.Random) -> tuple[ClusterView, Goal]:
    """Return a cluster, perhaps with a broker that is down, and a goal."""
    view = random_view(chance, partition_count=chance.randint(4, 30), in_sync=chance.choice((0.6, 1.0)))
    ids = [one.id for one in view.brokers]
    if chance.random() < 0.4:
        view = without(view, chance.choice(ids), chance.choice((Liveness.STATED_DOWN, Liveness.FENCED)))
    goals = (
        Goal(),
        Goal(only_leaders=True),
        Goal(kind="drain", remove=(chance.choice(ids),)),
        Goal(kind="add", add=((BrokerId(90), "a"),)),
        Goal(kind="factor", factor=chance.randint(1, 3)),
        Goal(kind="racks"),
    )
    return view, chance.choice(goals)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_and_its_impact_count_the_same(seed: int) -> None:
    view, goal = drawn(random.Random(seed))
    try:
        plan = make_plan(view, goal)
    except (RefusedError, UsageError):
        return
    batches = schedule(plan.reassignment, Limits(batch_count=1 + seed % 2))
    if not batches.batches:
        return
    found = impact(batches.parts())
    assert found.moved_replicas == plan.tally.moved
    numbers = moves_table(plan.reassignment, goal, batches.batches)["batch"].to_numpy()
    assert [numbers[places].tolist() for places in batches.batches] == [
        [number] * places.size for number, places in enumerate(batches.batches, start=1)
    ]
    rows = brokers_table(plan.reassignment, goal, plan.certificate, batches.batches).to_pylist()
    mine = {name: [row[name] for row in rows] for name in SAME}
    theirs = {name: brokers_of_impact(found).column(other).to_pylist() for name, other in SAME.items()}
    # The plan counts who leads once its replicas are in sync and all preferred leaders are elected.
    leads_as_planned = _is_in_sync(view) and not elected_besides(plan.reassignment, goal).count
    if not leads_as_planned:
        del mine["leaders_after"], theirs["leaders_after"]
    assert mine == theirs
    assert found.moved_bytes == sum(
        int(size) * int(count)
        for size, count in zip(plan.reassignment.copy_bytes, plan.reassignment.added.sum(axis=1), strict=True)
    )
    if leads_as_planned:
        assert found.leader_changes == plan.tally.leader_changes


def _is_in_sync(view: ClusterView) -> bool:
    """Return whether every replica on a broker that is alive is in sync."""
    alive = set(view.broker_ids[view.alive].tolist())
    assert view.partitions.isr is not None
    rows = zip(lists(view.partitions.replicas), lists(view.partitions.isr), strict=True)
    return all(set(held) & alive <= set(isr) for held, isr in rows)
