"""What `--ask` says of consumers, traffic and storage is a loop over partitions and drawn groups."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import pyarrow as pa
import pytest

from broker.units import GIB
from placement.consumer.registry import KAFKAS
from placement.traffic import Consumers, GroupPlan, ZonedPartitions, sample_groups
from spark_analysis.questions.registry import load_question
from tests.placement.traffic.naive import Plain, cluster

PLAN = {"groups": 4, "members": 3, "topics": 2, "seed": 5}


def rows_of(name: str, view: Any, **more: float) -> list[dict[str, Any]]:
    question = load_question(name)
    given = {key: value for key, value in {**PLAN, **more}.items() if key in {a.name for a in question.assumptions}}
    return question.rows(view, question.values(given)).to_pylist()


@pytest.mark.parametrize("seed", range(8))
def test_consumers_are_counted_fetch_by_fetch(seed: int) -> None:
    view = cluster(seed)
    plain, partitions = Plain(view), ZonedPartitions.of(view)
    rows = {row["assignor"]: row for row in rows_of("consumers", view)}
    assert sorted(rows) == sorted(KAFKAS)
    for assignor, row in rows.items():
        crossing, closest, fetched, uneven = 0, 0, 0, 0
        for name, members in sample_groups(partitions, GroupPlan(4, 3, 2), seed=5):
            consumers = Consumers.of(name, members, partitions)
            owners = consumers.assigned(assignor).tolist()
            sizes = Counter(owners)
            uneven += max(sizes.values()) - min(sizes.get(one, 0) for one in range(3)) > 1
            for place, owner in enumerate(owners):
                one = consumers.group.name_of(place)
                key = (one.topic, int(one.partition))
                what = [plain.fetch(key, members[owner].rack, closest=near) for near in (False, True)]
                fetched += what[0] != "none"
                crossing += what[0] == "crosses"
                closest += what[1] == "crosses"
        assert (row["fetched_count"], row["crossing_count"], row["closest_count"]) == (fetched, crossing, closest)
        assert (row["group_count"], row["uneven_group_count"]) == (4, uneven)
        assert row["least_count"] <= row["closest_count"] <= row["crossing_count"]
    assert rows["range"]["moved_count"] == 0


@pytest.mark.parametrize("seed", range(8))
def test_costs_follow_prices_retention_and_what_is_produced(seed: int) -> None:
    view = cluster(seed)
    rows = {row["change"]: row for row in rows_of("traffic", view, price_per_gib=1.0, retention_days=30)}
    half = {row["change"]: row for row in rows_of("traffic", view, price_per_gib=1.0, retention_days=15)}
    now = rows["now"]
    plain = Plain(view)
    replicated = sum(plain.rows[key][3] * plain.replicated(key).count("crosses") for key in plain.rows)
    assert now["replicate_bytes"] == replicated
    for name, row in rows.items():
        assert row["crossing_bytes"] == pytest.approx(
            sum(row[f"{f}_bytes"] for f in ("produce", "replicate", "consume"))
        )
        assert row["saved_bytes"] == pytest.approx(now["crossing_bytes"] - row["crossing_bytes"])
        assert row["cost"] == pytest.approx(row["crossing_bytes"] / GIB)
        assert half[name]["cost"] == pytest.approx(2 * row["cost"])
        assert row["crossing_bytes"] >= rows["least"]["crossing_bytes"] - 1e-6
    assert rows["closest replica"]["consume_bytes"] <= now["consume_bytes"]
    unsized = {row["change"]: row for row in rows_of("traffic", cluster(seed, sized=False), produced_gib=2)}
    assert unsized["now"]["replicate_bytes"] == 2 * GIB * unsized["now"]["replicate_count"]


def test_storage_is_a_count_of_replicas_and_bytes() -> None:
    view = cluster(6)
    rows = {row["topic"]: row for row in rows_of("storage", view)}
    table = view.partitions
    assert table.size_bytes is not None
    held: Counter[tuple[str, int]] = Counter()
    for place in range(table.count):
        for broker in table.replicas[place].tolist():
            if broker >= 0:
                held[view.topics[int(table.topic_index[place])].name, broker] += int(table.size_bytes[place])
    for topic, row in rows.items():
        mine = [size for (of, _), size in held.items() if of == topic]
        assert (row["broker_count"], row["size_bytes"], row["size_bytes_max"]) == (len(mine), sum(mine), max(mine))
    assert sum(row["replica_count"] for row in rows.values()) == int((table.replicas >= 0).sum())
    assert {row["size_bytes"] for row in rows_of("storage", cluster(6, sized=False))} == {None}


@pytest.mark.parametrize("name", ["consumers", "traffic", "storage"])
def test_a_cluster_that_is_listed_in_part_is_a_fault(name: str) -> None:
    view = attrs.evolve(cluster(2), partitions_complete=False)
    (row,) = rows_of(name, view)
    assert "not every partition is listed" in row["fault"]
    question = load_question(name)
    found = pa.Table.from_pylist([row | {"cluster": "c", "shape": None, "placer": "dump"}], schema=_schema(question))
    assert question.show(found, question.values()).tables[0].rows == ()


def _schema(question: Any) -> pa.Schema:
    fields = list(question.run_table.arrow_schema())[2:]
    return pa.schema([*fields, *(pa.field(name, pa.string()) for name in ("cluster", "shape", "placer"))])
