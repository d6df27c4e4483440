"""Simulated clusters as rows: equal to the tables that the main job writes, whatever the tasks."""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow as pa
import pytest

from broker.errors import BrokersideError
from spark_analysis.data_sources.kafka_fleet import OPTIONS, FleetRequest, chosen_recipe, fleet_batches, ranges
from spark_analysis.data_sources.options import GivenOptions
from spark_analysis.fleet.generate import Fleet, make_clusters
from spark_analysis.fleet.place import place_cluster
from spark_analysis.fleet.reading import load_recipe
from spark_analysis.fleet.views import simulated_view
from spark_analysis.tables import schemas
from spark_analysis.tables.schemas import FLEET_TABLES
from spark_analysis.tables.view_rows import every_partition


def rows(table: str, numbers: range, recipe: str = "uneven-racks") -> list[dict[str, Any]]:
    chosen = next(each for each in FLEET_TABLES if each.name == table)
    request = FleetRequest(chosen, chosen.column_names, load_recipe(recipe))
    schema = pa.schema([(field.name, field.type) for field in chosen.arrow_schema()])
    return pa.Table.from_batches(list(fleet_batches(request, numbers)), schema).to_pylist()


def test_each_cluster_is_there_as_each_placer_places_it() -> None:
    clusters = rows("clusters", range(2))
    assert [(row["cluster_id"], row["placer"]) for row in clusters] == [
        (number, placer) for number in range(2) for placer in ("classic", "striped")
    ]
    partitions = rows("partitions", range(2))
    assert len(partitions) == sum(row["partition_count"] for row in clusters)
    assert sum(len(row["replicas"]) for row in partitions) == sum(row["replica_count"] for row in clusters)
    brokers = rows("brokers", range(2))
    assert sum(row["replica_count"] for row in brokers) == sum(row["replica_count"] for row in clusters)
    assert sum(row["leader_count"] for row in brokers) == len(partitions)
    assert all(row["leader"] == row["replicas"][0] and len(set(row["racks"])) == 3 for row in partitions[:100])


@pytest.mark.parametrize(
    ("table", "cluster_count", "task_count"),
    [
        ("partitions", 1_000_000, 10_000),
        ("partitions", 1_000_001, 10_001),
        ("brokers", 1_000_000, 1_000),
        ("brokers", 1_000_001, 1_001),
        ("brokers", 8_001, 9),
        ("brokers", 8_000, 8),
        ("brokers", 5, 5),
    ],
)
def test_tasks_have_some_seconds_of_work(table: str, cluster_count: int, task_count: int) -> None:
    """A task takes at most a thousand clusters, or a hundred of 10,000 partitions; small fleets have eight tasks."""
    recipe = attrs.evolve(load_recipe("three-hundred-million"), cluster_count=cluster_count)
    chosen = next(each for each in FLEET_TABLES if each.name == table)
    tasks = ranges(chosen, recipe)
    assert len(tasks) == task_count
    assert [task.start for task in tasks] == [0, *(task.stop for task in tasks[:-1])]
    assert tasks[-1].stop == cluster_count
    assert max(map(len, tasks)) <= (100 if table == "partitions" else 1_000)


def given(path: str, **options: str) -> GivenOptions:
    return GivenOptions.of("kafka_fleet", {"path": path, **options}, OPTIONS)


def test_a_recipe_is_a_name_or_a_path_with_other_clusters_and_seed() -> None:
    recipe = chosen_recipe(given("demo", clusters="7", seed="5"))
    assert (recipe.cluster_count, recipe.seed) == (7, 5)
    assert chosen_recipe(given("demo")) == load_recipe("demo")


@pytest.mark.parametrize(
    ("path", "options", "sentence"),
    [
        ("none", {}, "no such recipe; shipped are "),
        ("demo", {"clusters": "0"}, "option 'clusters' of kafka_fleet is '0'; allowed are a whole number from 1 to "),
        ("demo", {"seed": "x"}, "option 'seed' of kafka_fleet is 'x'; allowed are a whole number from 0 to "),
    ],
)
def test_a_recipe_that_is_not_there_or_makes_no_sense_is_one_sentence(
    path: str, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(BrokersideError) as caught:
        chosen_recipe(given(path, **options))
    assert str(caught.value).startswith(sentence)


def test_partitions_are_those_that_the_main_job_writes() -> None:
    recipe = load_recipe("demo")
    (cluster,) = make_clusters(Fleet.of(recipe), [1])
    for placer in cluster.shape.placers:
        view = simulated_view(cluster, place_cluster(cluster, placer, seed=recipe.seed), recipe.source)
        written = [(schemas.PARTITIONS.column_names[2:], rows.parts) for _, rows in every_partition(view)]
        found = [row for row in rows("partitions", range(1, 2), "demo") if row["placer"] == placer]
        for name in ("topic", "partition", "leader", "replicas", "isr", "racks", "min_insync_replicas", "size_bytes"):
            values = [value for names, parts in written for value in listed(parts[names.index(name)])]
            assert [row[name] for row in found] == values


def listed(values: Any) -> list[Any]:
    return values.to_pylist() if isinstance(values, pa.Array) else list(values)
