"""What changing the brokers of a cluster moves: small clusters whose plans can be counted by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import pytest

from broker.cluster import BrokerView, ClusterView
from broker.errors import UsageError
from broker.ids import BrokerId
from placement.formats.read import read_dump
from spark_analysis.answers import movement
from spark_analysis.answers.movement import QUESTION, cost_table
from spark_analysis.fleet.generate import Fleet, make_clusters
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.views import simulated_view
from tests.spark_analysis.fleet.test_fleet import recipe


def cluster(replicas: Sequence[str], racks: Mapping[int, str] | None = None) -> ClusterView:
    """One topic with these replicas, on the brokers that hold any, or on those that have a rack here."""
    count, factor = len(replicas), replicas[0].count(",") + 1
    lines = [f"Topic: t\tPartitionCount: {count}\tReplicationFactor: {factor}\tConfigs: "]
    lines += [
        f"\tTopic: t\tPartition: {place}\tLeader: {each.split(',')[0]}\tReplicas: {each}\tIsr: {each}"
        for place, each in enumerate(replicas)
    ]
    (view,) = read_dump(["\n".join(lines).encode()], source="t").clusters
    brokers = tuple(BrokerView(id=BrokerId(number), rack=rack) for number, rack in (racks or {}).items())
    return attrs.evolve(view, brokers=brokers or view.brokers)


def moved(view: ClusterView, joining: int = 1) -> dict[str, tuple[int | None, int | None]]:
    return {
        row["change"]: (row["moved_count"], row["moved_count_min"]) for row in cost_table(view, joining).to_pylist()
    }


def test_without_racks_a_broker_joins_and_one_leaves() -> None:
    view = cluster(["1", "1", "2", "2", "2"])
    rows = {row["change"]: row for row in cost_table(view).to_pylist()}
    assert moved(view) == {"balance": (0, 0), "add": (1, 1), "drain": (3, 3)}
    assert [rows[name]["first_broker_id"] for name in rows] == [None, 3, 2]
    assert [rows[name]["changed_broker_count"] for name in rows] == [0, 1, 1]
    assert [rows[name]["moved_share"] for name in rows] == [0, 0.2, 0.6]
    assert moved(view, 3)["add"] == (3, 3)
    assert moved(cluster(["1", "1", "1", "2"]))["balance"] == (1, 1)


def test_with_racks_brokers_join_each_and_a_rack_joins_that_is_as_large_as_the_smallest() -> None:
    """Six partitions on racks a (1, 2, 3) and b (4, 5): each rack has one replica of each."""
    view = cluster(["1,4", "2,5", "3,4", "1,5", "2,4", "3,5"], {1: "a", 2: "a", 3: "a", 4: "b", 5: "b"})
    rows = {row["change"]: row for row in cost_table(view, 2).to_pylist()}
    assert list(rows) == list(movement.CHANGES)
    assert (rows["add"]["changed_broker_count"], rows["add"]["first_broker_id"]) == (4, 6)
    assert (rows["rack"]["changed_broker_count"], rows["rack"]["first_broker_id"]) == (2, 6)
    assert rows["drain"]["first_broker_id"] == 4
    # Brokers 1, 2 and 3 hold two replicas, 4 and 5 three: twelve on seven brokers are two each, but for two with one.
    assert (rows["rack"]["moved_count"], rows["rack"]["moved_count_min"]) == (2, 2)
    assert all(row["is_least"] for row in rows.values())


def test_what_cannot_be_is_refused_in_its_own_row() -> None:
    rows = {row["change"]: row for row in cost_table(cluster(["1,2", "2,1"])).to_pylist()}
    why = "t-0 needs 2 live brokers, and 1 remains; 1 more, or a smaller factor (--factor 1)"
    assert rows["drain"]["refused"] == why
    assert rows["drain"]["moved_count"] is None
    assert rows["add"]["refused"] is None


def test_a_fenced_broker_is_not_the_one_that_leaves() -> None:
    view = cluster(["1", "1", "1", "2"])
    fenced = tuple(attrs.evolve(one, fenced=one.id == 1) for one in view.brokers)
    assert "drain" in moved(attrs.evolve(view, brokers=fenced))
    (row,) = [row for row in cost_table(attrs.evolve(view, brokers=fenced)).to_pylist() if row["change"] == "drain"]
    assert row["first_broker_id"] == 2


def test_a_cluster_of_which_partitions_are_missing_has_no_costs() -> None:
    view = attrs.evolve(cluster(["1", "2"]), partitions_complete=False)
    with pytest.raises(UsageError, match=r"not every partition is listed, .*, so that no plan can be made"):
        cost_table(view)


@pytest.mark.deep
def test_no_plan_is_below_its_bound_and_a_drain_moves_what_the_broker_holds() -> None:
    fleet = Fleet.of(recipe(3))
    for one in make_clusters(fleet, range(1)):
        for placer in one.shape.placers:
            view = simulated_view(one, place_cluster(one, placer, seed=fleet.recipe.seed), "r")
            for row in QUESTION.rows(view, QUESTION.values()).to_pylist():
                if row["refused"] is None:
                    assert 0 <= row["moved_count_min"] <= row["moved_count"] <= row["replica_count"]
                    held = (view.partitions.replicas == row["first_broker_id"]).sum()
                    assert row["change"] != "drain" or row["moved_count"] >= held > 0
