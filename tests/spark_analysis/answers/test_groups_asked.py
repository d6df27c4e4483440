"""What `--ask` says of consumers, traffic and storage is a loop over partitions and drawn groups."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import pyarrow as pa
import pytest

from broker.cluster import ClusterView
from broker.units import GIB
from placement.consumer.registry import KAFKAS
from placement.traffic import Consumers, GroupPlan, ZonedPartitions, sample_groups
from spark_analysis.answers.consumers import _counted
from spark_analysis.answers.question import Shown
from spark_analysis.answers.registry import load_question
from spark_analysis.answers.traffic import _changed
from tests.placement.traffic.naive import Plain, cluster

PLAN = {"groups": 4, "members": 3, "topics": 2, "seed": 5}


def rows_of(name: str, view: Any, **more: float) -> list[dict[str, Any]]:
    question = load_question(name)
    given = {key: value for key, value in {**PLAN, **more}.items() if key in {a.name for a in question.assumptions}}
    return question.rows(view, question.values(given)).to_pylist()


@pytest.mark.parametrize("seed", range(3))
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


@pytest.mark.parametrize("seed", range(3))
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


@pytest.mark.parametrize("name", ["consumers", "traffic", "storage"])
def test_a_cluster_that_is_listed_in_part_is_a_fault(name: str) -> None:
    view = attrs.evolve(cluster(2), partitions_complete=False)
    (row,) = rows_of(name, view)
    assert "not every partition is listed" in row["fault"]
    question = load_question(name)
    found = pa.Table.from_pylist([row | {"cluster": "c", "shape": None, "placer": "dump"}], schema=_schema(question))
    assert question.show(found, question.values()).tables[0].rows == ()


def without_zones(seed: int) -> ClusterView:
    """The cluster of this seed, of which no broker's rack is known."""
    view = cluster(seed)
    return attrs.evolve(view, brokers=tuple(attrs.evolve(broker, rack=None) for broker in view.brokers))


def test_traffic_without_zones_is_not_known_and_never_zero() -> None:
    (row,) = rows_of("traffic", without_zones(3))
    fault = "no broker of cluster 'c' has a rack, so that nothing is known of zones"
    assert row.pop("fault") == fault
    assert set(row.values()) == {None}


def test_fetches_across_zones_are_not_known_without_zones() -> None:
    for row in rows_of("consumers", without_zones(3)):
        assert (row["crossing_count"], row["closest_count"], row["least_count"]) == (None, None, None)
        assert row["fetched_count"] > 0


def test_what_given_members_hold_may_not_be_known_in_this_process_either() -> None:
    partitions = ZonedPartitions.of(cluster(3))
    (name, members), *_ = sample_groups(partitions, GroupPlan(1, 3, 2), seed=5)
    unknown = Consumers.of(name, members, partitions, is_held_known=False)
    fault = f"group {name!r}: what the members hold is not known: a member has no held"
    counted = _counted(partitions, [unknown], ("now", "range"), lambda _, found: found.moved_count).to_pylist()
    assert [(row["assignor"], row["fault"], row["moved_count"]) for row in counted] == [
        ("now", fault, None),
        ("range", None, None),
    ]
    assert counted[1]["fetched_count"] > 0
    values = load_question("traffic").values({})
    rows = {
        row["change"]: row
        for row in _changed(partitions, [unknown], {"now": "now", "range": "range"}, values).to_pylist()
    }
    assert rows["now"]["fault"] == fault
    assert (rows["range"]["saved_bytes"], rows["range"]["fault"]) == (None, None)
    assert rows["range"]["crossing_bytes"] > 0


def shown(name: str, views: dict[str, ClusterView]) -> Shown:
    """What is shown of clusters, a placement each, their names being placers."""
    question = load_question(name)
    values = question.values({key: PLAN[key] for key in PLAN if key in {one.name for one in question.assumptions}})
    rows = [
        row | {"cluster": "c", "shape": "s", "placer": placer}
        for placer, view in views.items()
        for row in question.rows(view, values).to_pylist()
    ]
    return question.show(pa.Table.from_pylist(rows, schema=_schema(question)), values)


def test_what_is_now_comes_first_and_the_least_last() -> None:
    names = [row[2] for row in shown("traffic", {"classic": cluster(1), "striped": cluster(2)}).tables[0].rows]
    half = len(names) // 2
    assert names[:half] == names[half:]
    assert (names[0], names[half - 1]) == ("now", "least")
    assert names[1 : half - 1] == sorted(names[1 : half - 1])


def _schema(question: Any) -> pa.Schema:
    fields = list(question.run_table.arrow_schema())[2:]
    return pa.schema([*fields, *(pa.field(name, pa.string()) for name in ("cluster", "shape", "placer"))])
