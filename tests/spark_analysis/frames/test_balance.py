"""The transformations of balance give the figures of a report's tables, whatever rows they take."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from placement.formats.racks import read_racks
from spark_analysis import register
from spark_analysis.engines import LocalEngine
from spark_analysis.jobs import analyse_dumps, analyse_fleet
from spark_analysis.questions import balance
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.tables import schemas
from spark_analysis.tables.write import read_table
from tests.spark_analysis.data_sources.dumps import MULTIREGION, REAL, describe, write
from tests.spark_analysis.fleet.test_fleet import recipe
from tests.spark_analysis.test_jobs import QUIET

RACKS = REAL / "multiregion-racks.csv"
DUMPS = sorted(MULTIREGION.glob("?-*.txt"))
UNLISTED = ("5-placement-switched", "6-region-restored")
ONE = [("c", "t", 0, [1, 2]), ("c", "t", 1, [2, 1])]
ONE_SCHEMA = "cluster string, topic string, partition int, replicas array<int>"


def found(frame: DataFrame, *left_out: str) -> list[dict[str, Any]]:
    """The rows, sorted; without `fault` they have no `rejected_count` either."""
    left_out += ("rejected_count",) if "fault" in left_out else ()
    rows = [{name: value for name, value in row.asDict().items() if name not in left_out} for row in frame.collect()]
    return sorted(rows, key=str)


def expected(out: Path, table: Any, names: list[str]) -> list[dict[str, Any]]:
    """The rows that a job wrote, keyed by the name of the cluster."""
    of = {(row["cluster_id"], row["placer"]): row["cluster"] for row in read_table(out, schemas.CLUSTERS).to_pylist()}
    rows = read_table(out, table).to_pylist()
    named = ({"cluster": of[row["cluster_id"], row["placer"]]} | row for row in rows)
    return sorted(({name: row[name] for name in names} for row in named), key=str)


def test_measures_and_clusters_of_real_dumps_are_those_of_a_report(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    inputs = [DumpInput(str(path), name=path.stem) for path in DUMPS]
    analyse_dumps(LocalEngine(), inputs, read_racks(RACKS.read_bytes(), source="racks"), tmp_path, progress=QUIET,
                  min_insync_replicas_default=2)  # fmt: skip
    reader = spark.read.format("kafka_cluster").options(racks=str(RACKS), mode="DROPMALFORMED")
    partitions = reader.load(f"{MULTIREGION}/*.txt")
    brokers = reader.option("table", "brokers").load(f"{MULTIREGION}/*.txt")
    measures = balance.measures(partitions, brokers)
    assert measures.columns[:2] == ["cluster", "source"]
    rows = found(measures, "source", "fault")
    differ = [
        (row, other)
        for row, other in zip(rows, expected(tmp_path, schemas.MEASURES, list(rows[0])), strict=True)
        if row != other
    ]
    # A topic is declared there, but none of its partitions is listed: no row names it.
    assert [(row["cluster"], row["scope"], other["group_count"] - row["group_count"]) for row, other in differ] == [
        (name, "topic", 1) for name in UNLISTED for _ in range(2)
    ]
    assert {row["scope"] for row in rows} == {"broker", "rack", "topic"}
    rows = found(balance.clusters(partitions, brokers, min_insync_replicas=2), "source", "fault", "uneven")
    others = expected(tmp_path, schemas.CLUSTERS, list(rows[0]))
    for row, other in zip(rows, others, strict=True):
        known, of_report = json.loads(row.pop("known")), json.loads(other.pop("known"))
        assert (known.pop("racks_given_count"), of_report.pop("racks_given_count")) == (0, 4)  # From a file there.
        assert (known.pop("partial") is None, of_report.pop("partial") is None) == (
            True,
            row["cluster"] not in UNLISTED,
        )
        for counts, one in ((known, row), (of_report, other)):
            assert sum(counts.pop("min_insync_replicas").values()) == one["topic_count"]
        assert known == of_report
        assert row | {"topic_count": row["topic_count"] + (row["cluster"] in UNLISTED)} == other
    assert len(rows) == 6


def test_measures_of_a_fleet_are_those_of_its_job(spark: SparkSession, tmp_path: Path) -> None:
    """Fenced brokers, those that hold nothing, uneven racks; a cluster is told by its number and placer."""
    register(spark)
    analyse_fleet(LocalEngine(), recipe(5, fenced=0.3), tmp_path / "out", progress=QUIET, partitions=True)
    lake = spark.read.parquet(str(tmp_path / "out/tables/partitions"))
    listed = spark.read.parquet(str(tmp_path / "out/tables/brokers"))
    measures = balance.measures(lake, listed.drop("replica_count"), by=["cluster_id", "placer"])
    rows = found(measures, "fault")
    assert rows == expected(tmp_path / "out", schemas.MEASURES, list(rows[0]))
    assert len({(row["cluster_id"], row["placer"]) for row in rows}) >= 5


def test_only_the_needed_columns_are_needed_and_wider_numbers_are_taken(spark: SparkSession) -> None:
    wide = "cluster string, topic string, partition bigint, replicas array<bigint>"
    rows = [found(balance.measures(spark.createDataFrame(ONE, schema))) for schema in (ONE_SCHEMA, wide)]
    assert rows[0] == rows[1]
    assert {(row["scope"], row["quantity"], row["total"], row["fault"]) for row in rows[0]} == {
        ("broker", "replicas", 4, None),
        ("topic", "replicas", 4, None),
    }


def test_brokers_add_those_that_hold_nothing_and_racks(spark: SparkSession) -> None:
    partitions = spark.createDataFrame(ONE, ONE_SCHEMA)
    brokers = spark.sql("select 'c' cluster, id + 1 broker_id, if(id < 2, 'a', 'b') rack from range(4)")
    rows = {row["scope"]: row for row in found(balance.measures(partitions, brokers))}
    assert (rows["broker"]["group_count"], rows["broker"]["moves"]) == (4, 2)
    assert (rows["rack"]["group_count"], rows["rack"]["max_group"]) == (2, "a")


def test_two_clusters_of_one_name_are_two_if_read_from_two_files_else_a_fault(
    spark: SparkSession, tmp_path: Path
) -> None:
    for night in ("mon", "tue"):
        write(tmp_path / night / "prod.txt", describe(3 if night == "mon" else 5))
    register(spark)
    frame = reduce(
        DataFrame.union, (spark.read.format("kafka_cluster").load(str(tmp_path / n)) for n in ("mon", "tue"))
    )
    assert [row["partition_count"] for row in found(balance.clusters(frame))] == [3, 5]
    (row,) = found(balance.clusters(frame.drop("source")))
    assert row["partition_count"] is None
    assert row["fault"] == (
        "partition 0 of topic 'orders' is listed twice in cluster 'prod'; if these are several clusters or moments, "
        "give the columns that tell them apart as by"
    )
    assert [row["partition_count"] for row in found(balance.clusters(frame, by=["cluster", "source"]))] == [3, 5]


def test_rows_that_cannot_be_used_are_counted_in_a_fault(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    write(tmp_path / "good.txt", describe(3))
    write(tmp_path / "bad.txt", "nothing of Kafka\n")
    reader = spark.read.format("kafka_cluster")
    partitions, brokers = (reader.option("table", name).load(str(tmp_path)) for name in ("partitions", "brokers"))
    for frame in (balance.clusters(partitions), balance.clusters(partitions, brokers)):
        bad, good = sorted(frame.collect(), key=lambda row: row["cluster"] or "")
        assert (good["cluster"], good["partition_count"], good["fault"]) == ("good", 3, None)
        assert (bad["cluster"], bad["partition_count"]) == (None, None)
        assert "bad.txt" in bad["fault"]
    lacking = spark.createDataFrame([*ONE, ("c", "t", 2, None), ("c", None, 3, [1])], ONE_SCHEMA)
    rows = balance.clusters(lacking).collect()
    assert sorted((row["partition_count"], row["fault"]) for row in rows if row["fault"] is None) == [(2, None)]
    assert [row["fault"] for row in rows if row["fault"]] == [
        "2 rows cannot be used; one of them: 2 without topic or replicas"
    ]


def test_partitions_of_one_topic_are_counted_alone_beside_the_brokers_of_the_cluster(
    spark: SparkSession, tmp_path: Path
) -> None:
    register(spark)
    write(tmp_path / "prod.txt", describe(5) + describe(3, topic="audit"))
    reader = spark.read.format("kafka_cluster")
    partitions, brokers = (reader.option("table", name).load(str(tmp_path)) for name in ("partitions", "brokers"))
    some = partitions.where("topic = 'audit'")
    rows = found(balance.measures(some, brokers))
    assert rows == found(balance.measures(some, brokers.drop("replica_count", "leader_count", "size_bytes")))
    held = {row["quantity"]: row["total"] for row in rows if row["scope"] == "broker"}
    assert held["replicas"] == some.selectExpr("sum(size(replicas))").first()[0]
    everything = {row["quantity"]: row["total"] for row in found(balance.measures(some, brokers, totals=True))}
    assert everything["replicas"] == partitions.selectExpr("sum(size(replicas))").first()[0]
    (row,) = found(balance.clusters(partitions.union(some.selectExpr(*_moved(some))), brokers, totals=True))
    assert row["fault"] == "the brokers of cluster 'prod' hold 24 replicas in all; its partitions list 33"


def _moved(frame: DataFrame) -> list[str]:
    """The columns of a frame, its partitions under other numbers."""
    return ["partition + 100 as partition" if name == "partition" else f"`{name}`" for name in frame.columns]


def test_a_null_in_one_row_costs_that_row_and_no_other(spark: SparkSession) -> None:
    """A left join leaves such a row: the others' states are counted all the same."""
    rows = [("c", "t", 0, [1, 2], [1]), ("c", "t", 1, [2, 1], [2, 1]), ("c", "t", 2, [1, 2], None)]
    frame = spark.createDataFrame(rows, ONE_SCHEMA + ", isr array<int>")
    fault, row = sorted(found(balance.clusters(frame)), key=lambda row: row["fault"] is None)
    assert (fault["fault"], fault["rejected_count"]) == ("1 without isr", 1)
    assert (row["partition_count"], row["under_replicated_count"]) == (2, 1)
    assert row["violation_count"] > 0


def test_clusters_are_spread_over_as_many_tasks_as_spark_is_told_to_use(spark: SparkSession) -> None:
    """Adaptive execution would put these few bytes into one task."""
    frame = spark.range(60).selectExpr("cast(id as string) cluster", "'t' topic", "0 partition", "array(1, 2) replicas")
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        rows = balance.measures(frame)
        assert rows.rdd.getNumPartitions() == 3
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert "measures" in rows._jdf.queryExecution().toString()
