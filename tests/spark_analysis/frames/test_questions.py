"""Violations, outages, plans and copysets of DataFrames are those of the commands, cluster by cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
from pyspark.sql import DataFrame, SparkSession

from broker.cluster import ClusterView
from broker.errors import UsageError
from placement.formats.racks import read_racks
from placement.outages import copysets as counted
from placement.outages.look_ahead import look_ahead
from spark_analysis import register
from spark_analysis.answers.movement import cost_table
from spark_analysis.engines import LocalEngine
from spark_analysis.jobs import analyse_dumps
from spark_analysis.questions import durability, movement, outages, violations
from spark_analysis.sources.dumps import DumpInput, read_input
from spark_analysis.tables import schemas
from tests.spark_analysis.data_sources.dumps import MULTIREGION
from tests.spark_analysis.frames.test_balance import DUMPS, ONE, ONE_SCHEMA, RACKS, UNLISTED, expected, found
from tests.spark_analysis.test_jobs import QUIET

Frames: TypeAlias = tuple[DataFrame, DataFrame]
CLUSTER_COUNT = 6


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a report on six dumps, each a cluster of its own; entries put aside are left out."""
    out = tmp_path_factory.mktemp("report")
    inputs = [DumpInput(str(path), name=path.stem) for path in DUMPS]
    analyse_dumps(LocalEngine(), inputs, read_racks(RACKS.read_bytes(), source="racks"), out, progress=QUIET,
                  min_insync_replicas_default=2)  # fmt: skip
    return out


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Frames:
    register(spark)
    reader = spark.read.format("kafka_cluster").options(racks=str(RACKS), mode="DROPMALFORMED")
    load = f"{MULTIREGION}/*.txt"
    return reader.load(load), reader.option("table", "brokers").load(load)


def views() -> Iterator[tuple[str, ClusterView]]:
    racks = read_racks(RACKS.read_bytes(), source="racks")
    for path in DUMPS:
        (view,) = read_input(str(path), name=path.stem).clusters
        yield path.stem, view.with_racks(racks.for_cluster(path.stem))


def test_violations_are_those_of_a_report(frames: Frames, report: Path) -> None:
    rows = found(violations.violations(*frames, min_insync_replicas=2), "source", "fault")
    assert rows == expected(report, schemas.VIOLATIONS, list(rows[0]))
    assert len({row["constraint"] for row in rows}) > 2


def test_partitions_with_their_states_are_those_of_a_report(frames: Frames, report: Path) -> None:
    rows = found(violations.partitions(*frames, min_insync_replicas=2), "source", "fault")
    assert rows == expected(report, schemas.PARTITIONS, list(rows[0]))
    assert any("leaderless" in row["broken"] for row in rows)


def test_the_worst_outages_are_those_of_a_report_and_the_others_those_of_the_command(
    frames: Frames, report: Path
) -> None:
    rows = found(outages.outages(*frames, min_insync_replicas=2), "source", "fault")
    worst = [
        {name: value for name, value in row.items() if name != "severity_rank"}
        for row in rows
        if row["severity_rank"] == 1
    ]
    assert whole(worst) == expected(report, schemas.OUTAGES, list(worst[0]))
    for name, view in views():
        sweep = look_ahead(attrs.evolve(view, topics=tuple(with_default(view))), pairs=False).brokers
        of = {row["broker_id"]: row for row in rows if row["cluster"] == name and row["scope"] == "broker"}
        assert sorted(of) == view.broker_ids.tolist()
        assert sorted(row["severity_rank"] for row in of.values()) == list(range(1, len(of) + 1))
        for column in ("leaderless_count", "at_risk_count", "lost_leader_count", "under_min_isr_count"):
            counted_there = sweep.columns[column]
            assert counted_there is not None
            assert [of[number][column] for number in sorted(of)] == counted_there.tolist()


@pytest.mark.parametrize("scope", ["rack", "broker"])
def test_partitions_that_a_loss_hits_are_those_that_outages_count(frames: Frames, scope: str) -> None:
    losses = found(outages.outages(*frames, min_insync_replicas=2).where(f"scope = '{scope}'"), "source", "fault")
    hit = found(outages.partitions(*frames, scope=scope, min_insync_replicas=2), "source", "fault")
    counted_there = 0
    for loss in losses:
        rows = [row for row in hit if (row["cluster"], row["broker_id"], row["rack"]) ==
                (loss["cluster"], loss["broker_id"], loss["rack"])]  # fmt: skip
        for state, name in (("is_leaderless", "leaderless_count"), ("is_under_min_isr", "under_min_isr_count"),
                            ("has_no_replica", "no_replica_count"), ("is_at_risk", "at_risk_count")):  # fmt: skip
            # What was so before and comes into another state is listed, too.
            more = loss[name] - loss[f"{name}_now"]
            assert more <= sum(bool(row[state]) for row in rows) <= loss[name]
            counted_there += more
        assert all(any(row[name] for name in row if name.startswith(("is_", "has_"))) for row in rows)
    assert counted_there > 0
    assert {row["scope"] for row in hit} == {scope}


def test_a_rack_is_lost_only_where_racks_are_known(spark: SparkSession, frames: Frames) -> None:
    (row,) = outages.partitions(spark.createDataFrame(ONE, ONE_SCHEMA)).collect()
    assert row["fault"] == "no broker of cluster 'c' is in a known rack, so that no rack can be lost"
    with pytest.raises(UsageError, match=r"^scope is 'zone'; allowed are rack and broker$"):
        outages.partitions(*frames, scope="zone")


def whole(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of clusters of which each partition is listed; a report neither plans nor loses brokers of the others.

    A DataFrame does not have the partitions that a dump declares and does not list.
    """
    return [row for row in rows if row["cluster"] not in UNLISTED]


def with_default(view: ClusterView) -> Iterator[Any]:
    for topic in view.topics:
        yield attrs.evolve(topic, min_insync_replicas=topic.min_insync_replicas or 2)


def test_plans_are_those_of_a_report_and_only_the_goals_asked_for(frames: Frames, report: Path) -> None:
    rows = found(movement.plans(*frames), "source", "fault")
    assert whole(rows) == expected(report, schemas.PLANS, list(rows[0]))
    assert {row["goal"] for row in rows} == {"balance", "leaders", "racks"}
    assert any(row["moved_count"] for row in rows)
    one = found(movement.plans(*frames, goals=["leaders"]), "source", "fault")
    assert one == [row for row in rows if row["goal"] == "leaders"]
    assert len(one) == CLUSTER_COUNT
    with pytest.raises(UsageError) as caught:
        movement.plans(*frames, goals=["speed"])
    assert str(caught.value) == "there is no goal 'speed'; goals are balance, bytes, leaders, racks"


@pytest.mark.parametrize("goal", ["balance", "leaders", "racks"])
def test_moves_are_what_plans_count_and_lead_to_what_the_plan_reaches(frames: Frames, goal: str) -> None:
    plans = {row["cluster"]: row for row in found(movement.plans(*frames, goals=[goal]), "source", "fault")}
    rows = found(movement.moves(*frames, goal=goal), "source", "fault")
    for name, view in views():
        mine = {(row["topic"], row["partition"]): row for row in rows if row["cluster"] == name}
        plan = plans.get(name)
        if plan is None:
            assert not mine
            continue
        assert len(mine) == plan["changed_partition_count"]
        assert sum(row["added_count"] for row in mine.values()) == plan["moved_count"]
        before = {(view.topics[topic].name, number): [one for one in held if one >= 0]
                  for topic, number, held in zip(view.partitions.topic_index.tolist(),
                                                 view.partitions.partition_ids.tolist(),
                                                 view.partitions.replicas.tolist(), strict=True)}  # fmt: skip
        for place, row in mine.items():
            assert row["replicas"] == before[place] != row["target_replicas"]
            assert goal != "leaders" or row["added_count"] == 0
            assert row["added_count"] == len(set(row["target_replicas"]) - set(row["replicas"]))
            assert row["target_leader"] == row["target_replicas"][0]
            before[place] = row["target_replicas"]
        loads = Counter(one for held in before.values() for one in held)
        shares = [loads[number] for number in view.broker_ids.tolist()]
        assert goal != "balance" or view.racks or max(shares) - min(shares) <= 1
    assert rows


def test_costs_are_those_of_the_question(frames: Frames) -> None:
    rows = found(movement.costs(*frames, joining=2), "source", "fault")
    expected_rows = [{"cluster": name} | row for name, view in views() if name not in UNLISTED
                     for row in cost_table(view, 2).to_pylist()]  # fmt: skip
    assert whole(rows) == sorted(expected_rows, key=str)
    assert {row["change"] for row in rows} == {"balance", "add", "drain", "rack"}
    with pytest.raises(UsageError) as caught:
        movement.costs(*frames, joining=0)
    assert str(caught.value) == "joining is 0; allowed are 1 to 1000"


def test_copysets_are_those_of_the_command(frames: Frames) -> None:
    rows = found(durability.copysets(*frames), "source", "fault")
    of_command = [{"cluster": name} | attrs.asdict(one) for name, view in views() for one in counted.copysets(view)]
    assert rows == sorted(of_command, key=str)
    assert len(rows) > CLUSTER_COUNT
