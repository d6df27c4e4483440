"""What to do next, as rows: plans agree with the measures beside them, and what cannot be planned says why."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.balance.measures import Distribution, measures
from placement.balance.reachable import Classes, Groups
from spark_analysis.tables import advice_rows as advice
from spark_analysis.tables.advice_rows import advice_rows


def rows_of(view: ClusterView) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of advice of each table, as dictionaries without the key."""
    return {
        table.name: [dict(zip(table.column_names[2:], row, strict=True)) for row in zip(*rows.parts, strict=True)]
        for table, rows in advice_rows(view).items()
    }


def plans_of(view: ClusterView) -> dict[str, dict[str, Any]]:
    return {row["goal"]: row for row in rows_of(view)["plans"]}


def random_view(seed: int) -> ClusterView:
    """Return a small cluster: skewed, with mixed factors, fenced brokers and racks in some."""
    draw = np.random.default_rng(seed)
    broker_count, count, rack_count = int(draw.integers(3, 9)), int(draw.integers(1, 40)), int(draw.integers(0, 4))
    factor = int(draw.integers(1, min(broker_count, 4) + 1))
    fenced = draw.random(broker_count) < 0.1
    fenced[0] = False
    skew = draw.random(broker_count) + 0.05
    mixed = bool(draw.random() < 0.3)
    replicas = np.full((count, factor), -1)
    for row in range(count):
        width = int(draw.integers(1, factor + 1)) if mixed else factor
        replicas[row, :width] = draw.choice(broker_count, width, replace=False, p=skew / skew.sum())
    live = np.append(~fenced, False)[replicas]
    leader = np.where(live.any(axis=1), replicas[np.arange(count), live.argmax(axis=1)], -1)
    return ClusterView.build(
        name=f"random {seed}",
        source="test",
        format="test",
        brokers=[
            BrokerView(
                id=BrokerId(each),
                rack=f"r{draw.integers(0, rack_count)}" if rack_count else None,
                fenced=bool(fenced[each]),
            )
            for each in range(broker_count)
        ],
        topics=[TopicView("t", min_insync_replicas=1)],
        partitions=PartitionTable(
            topic_index=np.zeros(count, np.int32), partition_ids=np.arange(count), replicas=replicas, leader=leader
        ),
    )


def measured(view: ClusterView, quantity: str) -> Distribution:
    return next(m.distribution for m in measures(view) if (m.scope, m.quantity) == ("broker", quantity))


def assert_plan_agrees(view: ClusterView, plan: dict[str, Any]) -> str:
    """Compare the plan's replicas with those the report says would even it out; return how they compare."""
    found = measured(view, "replicas")
    assert found.moves is not None
    assert plan["replica_moves_before"] == found.moves
    assert plan["replica_moves_after"] == 0, view.name
    if found.moves_exact and not plan["fewer_racks_count_before"]:
        assert plan["moved_count"] == found.moves, view.name
    assert plan["moved_count"] >= found.moves, view.name
    assert plan["moved_count"] >= plan["moved_count_min"]
    assert plan["is_least"], view.name
    return "equal" if plan["moved_count"] == found.moves else "more"


def test_bytes_are_made_even_where_sizes_are_known() -> None:
    """Broker 0 holds 40 partitions and broker 1 as many of half their size: counts are even, and bytes become so."""
    view = random_view(0)
    sizes = [10 * 2**20] * 40 + [5 * 2**20] * 40
    table = PartitionTable(
        topic_index=[0] * 80, partition_ids=range(80), replicas=[[n // 40] for n in range(80)], size_bytes=sizes
    )
    brokers = (BrokerView(id=BrokerId(0)), BrokerView(id=BrokerId(1)))
    view = attrs.evolve(view, brokers=brokers, partitions=table, totals=None)
    plans = plans_of(view)
    assert list(plans) == ["balance", "bytes", "leaders"]
    plan = plans["bytes"]
    assert plan["refused"] is None
    assert plans["balance"]["moved_count"] == 0
    assert (plan["byte_moves_before"], plan["moved_bytes"]) == (100 << 20, 90 << 20)  # 285 to 315 MiB are within 5 %.
    assert plan["moved_bytes_min"] == 85 << 20  # Broker 0 has partitions of 10 MiB only, which no price knows.
    unknown = attrs.evolve(view, partitions=attrs.evolve(table, size_bytes=[-1, *sizes[1:]]))
    assert list(plans_of(unknown)) == ["balance", "leaders"]


def test_a_plan_moves_what_would_mend_the_cluster_and_more_only_where_at_least_is_said() -> None:
    seen = {"equal": 0, "more": 0}
    for seed in range(12):
        view = random_view(seed)
        plan = plans_of(view)["balance"]
        if plan["refused"] is None:
            seen[assert_plan_agrees(view, plan)] += 1
    assert seen["equal"] > 5
    assert seen["more"] > 0


def test_topics_with_observers_are_left_alone_and_named() -> None:
    table = PartitionTable(
        topic_index=[0, 1, 1],
        partition_ids=[0, 0, 1],
        replicas=[[1, 2], [1, 2], [1, 2]],
        leader=[1, 1, 1],
        observers=[[2], [-1], [-1]],
    )
    topics = (TopicView("seen"), TopicView("plain"))
    view = ClusterView.build(name="n", source="s", format="f", topics=topics, partitions=table)
    plan = plans_of(view)["leaders"]
    assert (plan["excluded_topics"], plan["refused"], plan["leader_change_count"]) == (["seen"], None, 1)


def test_a_plan_begins_where_reassignments_will_end() -> None:
    table = PartitionTable(
        topic_index=[0, 0],
        partition_ids=[0, 1],
        replicas=[[1, 2, 3], [1, 2, -1]],
        adding=[[3], [-1]],
        removing=[[2], [-1]],
    )
    view = ClusterView.build(name="n", source="s", format="f", topics=[TopicView("t")], partitions=table)
    plan = plans_of(view)["balance"]
    assert (plan["from_target"], plan["refused"]) == (True, None)


def test_a_rule_that_forbids_a_plan_is_named() -> None:
    table = PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[1, 2]], leader=[2])
    brokers = [BrokerView(id=BrokerId(1), fenced=True), BrokerView(id=BrokerId(2), fenced=True)]
    view = ClusterView.build(
        name="n", source="s", format="f", brokers=brokers, topics=[TopicView("t")], partitions=table
    )
    plan = plans_of(view)["balance"]
    assert "is live and stays" in plan["refused"]
    assert plan["moved_count"] is None


def test_a_large_cluster_is_left_to_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "PLANNED_PARTITIONS_MAX", 2)
    monkeypatch.setattr(advice, "OUTAGE_BROKERS_MAX", 2)
    found = rows_of(random_view(3))
    assert {plan["refused"] for plan in found["plans"]} == {"more than 200,000 partitions are left to the command"}
    assert found["restarts"][0]["refused"].startswith("more than 2 partitions or 200 brokers are left")
    assert "outages" not in found


def test_a_part_of_a_cluster_is_not_advised() -> None:
    whole = random_view(1)
    assert advice_rows(whole)
    assert not advice_rows(attrs.evolve(whole, partitions_complete=False))


def test_best_spreads_are_kept_only_where_each_class_has_the_same_replicas_leaders_and_bytes() -> None:
    """Sums of all classes may stay equal while what one has goes to another: the best spread is not the same."""

    groups = Groups.make(np.full(3, -1), np.zeros(3, dtype=np.bool_))

    def classes(
        counts: tuple[int, int] = (4, 4), led: tuple[int, int] = (4, 3), size: int = 10, *, stands: bool = False
    ) -> Classes:
        made = Classes.of_factors((2, 3), counts, groups, size_bytes=np.array([size, 20 - size]))
        return attrs.evolve(made, leaders=np.array(led), stands=np.array([[stands], [False]]))

    same = advice._are_alike
    assert same(classes(), classes())
    assert same(classes(stands=True), classes(stands=True))
    assert not same(classes(), classes(counts=(3, 5)))
    assert not same(classes(), classes(led=(3, 4)))
    assert not same(classes(), classes(size=12))
    assert not same(classes(), classes(stands=True))
    assert not same(None, classes())
