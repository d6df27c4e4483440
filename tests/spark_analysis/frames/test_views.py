"""Rows of partitions and of brokers become the cluster that they describe: racks, sizes, and plans by bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker.cluster import ClusterView
from broker.errors import UsageError
from spark_analysis.fleet.generate import Fleet, make_clusters
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.views import simulated_view
from spark_analysis.frames.views import (
    BROKER_NEEDED,
    BROKER_OPTIONAL,
    PARTITION_NEEDED,
    PARTITION_OPTIONAL,
    view_of_rows,
)
from spark_analysis.questions.movement import move_table, plan_table
from spark_analysis.tables.advice_rows import plan_rows
from spark_analysis.tables.schemas import CLUSTER_BROKERS, CLUSTER_PARTITIONS
from spark_analysis.tables.view_columns import Constants, broker_columns, partition_columns
from tests.spark_analysis.fleet.test_fleet import recipe

SCHEMA = CLUSTER_PARTITIONS.arrow_schema()


def partitions(replicas: list[list[int]], **columns: list[Any]) -> pa.Table:
    """Partitions of one topic with these replicas and optional columns."""
    values = {"topic": ["t"] * len(replicas), "partition": list(range(len(replicas))), "replicas": replicas, **columns}
    return pa.table({name: pa.array(column, SCHEMA.field(name).type) for name, column in values.items()})


def racks(view: ClusterView) -> dict[int, str | None]:
    return {int(broker.id): broker.rack for broker in view.brokers}


def test_racks_are_those_of_the_partitions_where_no_brokers_are_given() -> None:
    rows = partitions([[1, 2], [2, 3]], racks=[["a", "b"], ["b", ""]])
    view = view_of_rows("c", rows, None)
    assert racks(view) == {1: "a", 2: "b", 3: None}
    assert view.racks == ("a", "b")


def test_racks_of_brokers_win_over_those_of_partitions() -> None:
    rows = partitions([[1, 2]], racks=[["a", "b"]])
    brokers = pa.table({"broker_id": pa.array([2, 1, 4], pa.int32()), "rack": ["z", None, None]})
    assert racks(view_of_rows("c", rows, brokers)) == {1: "a", 2: "z", 4: None}


def test_racks_that_a_row_lacks_are_unknown() -> None:
    assert racks(view_of_rows("c", partitions([[1], [2]], racks=[["a"], None]), None)) == {1: None, 2: None}


@pytest.mark.parametrize(
    ("columns", "expected", "largest"),
    [
        ({"replica_size_bytes": [[5, 7], [9, 0]]}, [[5, 7], [9, 0]], [7, 9]),
        ({"replica_size_bytes": [[5, 7], [9, 0]], "size_bytes": [100, 100]}, [[5, 7], [9, 0]], [7, 9]),
        ({"size_bytes": [5, 4]}, [[3, 2], [2, 2]], [3, 2]),
        ({"replica_size_bytes": [[5, 7], None], "size_bytes": [5, 4]}, [[3, 2], [2, 2]], [3, 2]),
    ],
)
def test_sizes_are_those_of_each_replica_or_equal_parts_of_the_partition(
    columns: dict[str, list[Any]], expected: list[list[int]], largest: list[int]
) -> None:
    table = view_of_rows("c", partitions([[1, 2], [2, 1]], **columns), None).partitions
    assert table.replica_size_bytes is not None
    assert table.size_bytes is not None
    assert table.replica_size_bytes.tolist() == expected
    assert table.size_bytes.tolist() == largest


def test_a_size_that_a_row_lacks_leaves_all_unknown() -> None:
    table = view_of_rows("c", partitions([[1], [2]], size_bytes=[1, None]), None).partitions
    assert (table.size_bytes, table.replica_size_bytes) == (None, None)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"racks": [["a"]]}, "a list in column 'racks' has another length than the partition's replicas"),
        (
            {"replica_size_bytes": [[1, 2, 3]]},
            "a list in column 'replica_size_bytes' has another length than the partition's replicas",
        ),
        (
            {"replica_size_bytes": [[1, -2]]},
            "a list in column 'replica_size_bytes' has the value -2; allowed is 0 or more",
        ),
        ({"size_bytes": [-1]}, "column 'size_bytes' has the value -1; allowed is 0 or more"),
        ({"leader": [-3]}, "column 'leader' has the value -3; allowed are -1 for none, and ids of brokers"),
    ],
)
def test_columns_that_contradict_the_replicas_are_refused(columns: dict[str, list[Any]], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        view_of_rows("c", partitions([[1, 2]], **columns), None)
    assert str(caught.value) == sentence


def given_as_rows(view: ClusterView, seed: int) -> ClusterView:
    """The view once more, from the rows that kafka_cluster gives of it, in another order."""
    drawn = np.random.default_rng(seed)
    found = []
    for table, rows, names in (
        (CLUSTER_PARTITIONS, list(partition_columns(view, None)), (*PARTITION_NEEDED, *PARTITION_OPTIONAL)),
        (CLUSTER_BROKERS, [broker_columns(view)], (*BROKER_NEEDED, *BROKER_OPTIONAL)),
    ):
        joined = pa.Table.from_batches([one.batch(table, Constants()) for one in rows]).select(list(names))
        found.append(joined.take(drawn.permutation(joined.num_rows)))
    return view_of_rows(view.name, *found)


def test_each_goal_that_is_asked_for_has_a_row_that_may_say_why_there_is_no_plan() -> None:
    view = view_of_rows("c", partitions([[1, 2], [1, 2]]), None)
    rows = {row["goal"]: row for row in plan_table(view, ["racks", "bytes"]).to_pylist()}
    assert {goal: row["refused"] for goal, row in rows.items()} == {
        "bytes": "a plan by bytes needs sizes, and 2 partitions have none (t-0, t-1); give a file that states them "
        "(--sizes)",
        "racks": "goal racks: none of the 2 brokers of c has a known rack (--racks FILE)",
    }
    assert {row["goal"] for row in plan_table(view).to_pylist()} == {"balance", "leaders"}
    in_order = view_of_rows("c", partitions([[1, 2], [2, 1]], racks=[["a", "b"], ["b", "a"]]), None)
    (row,) = plan_table(in_order, ["racks"]).to_pylist()
    assert (row["refused"], row["moved_count"], row["is_least"]) == (None, 0, True)


def test_a_cluster_whose_partitions_have_no_replica_moves_none() -> None:
    brokers = pa.table({"broker_id": pa.array([1], pa.int32())})
    assert move_table(view_of_rows("c", partitions([[], []]), brokers), "balance").to_pylist() == []


@pytest.mark.deep
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_rows_of_a_cluster_with_sizes_have_its_plans_by_bytes_too(seed: int) -> None:
    """Of each of these fleets a cluster, at least, has partitions small enough to be even within 5 %."""
    fleet = Fleet.of(recipe(seed))
    goals: set[str] = set()
    for cluster in make_clusters(fleet, range(3)):
        view = simulated_view(cluster, place_cluster(cluster, "striped", seed=fleet.recipe.seed), "r")
        expected = list(plan_rows(view)) if view.partitions.count else []
        if expected:
            assert list(plan_rows(given_as_rows(view, seed))) == expected
            assert "bytes" in {row["goal"] for row in expected}
        goals |= {row["goal"] for row in expected if row.get("moved_bytes")}
    assert "bytes" in goals
