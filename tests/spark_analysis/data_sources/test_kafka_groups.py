"""The data source kafka_groups in a session: its tables feed the questions about groups and traffic."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_analysis import register
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.questions import groups, traffic
from spark_analysis.tables.schemas import GROUP_TABLES
from tests.placement.formats.test_group_tables import printed, rows_of

TOPICS = {"orders": 6, "eu-west-1.payments": 3}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of clusters: prod in three files, one compressed, and stage in one that says all."""
    (tmp_path / "prod").mkdir()
    (tmp_path / "stage").mkdir()
    for form in ("members", "state"):
        (tmp_path / "prod" / f"{form}.txt").write_text(printed(form))
    (tmp_path / "prod" / "offsets.txt.gz").write_bytes(gzip.compress(printed("offsets").encode()))
    (tmp_path / "stage" / "members.txt").write_text(printed("members-verbose"))
    return tmp_path


def load(spark: SparkSession, path: object, **options: str) -> DataFrame:
    register(spark)
    return spark.read.format("kafka_groups").options(recursiveFileLookup="true", **options).load(str(path))


def partitions(spark: SparkSession) -> DataFrame:
    racks = ["east", "west"]
    rows: list[Any] = [
        (cluster, topic, number, number % 2, [number % 2, 1 - number % 2], [racks[number % 2], racks[1 - number % 2]])
        for cluster in ("prod", "stage")
        for topic, count in TOPICS.items()
        for number in range(count)
    ]
    schema = "cluster string, topic string, partition int, leader int, replicas array<int>, racks array<string>"
    return spark.createDataFrame(rows, schema)


@pytest.mark.parametrize("table", GROUP_TABLES, ids=lambda table: table.name)
def test_each_table_has_the_documented_columns_with_their_meaning(
    spark: SparkSession, folder: Path, table: Any
) -> None:
    frame = load(spark, folder, table=table.name, cluster="{folder}")
    assert frame.schema == spark_schema_of(table)
    assert (frame.count() > 0) is (table.name != "rejects")


def test_groups_are_balanced_and_their_traffic_is_counted(spark: SparkSession, folder: Path) -> None:
    zones = folder.parent / "zones.csv"
    zones.write_text("b-1,east\nn-1,east\nb-2,west\nn-2,west\n")
    members = load(spark, folder, cluster="{folder}", zones=str(zones), task_bytes="1").cache()
    assert members.where("fault is null").count() == 2 * 4
    found = groups.balance(members, partitions(spark), assignors=["now", "uniform"]).collect()
    assert {row["fault"] for row in found} == {None}
    now = {(row["cluster"], row["group"]): row for row in found if row["assignor"] == "now"}
    assert set(now) == {
        (cluster, group) for cluster in ("prod", "stage") for group in ("billing group", "new-protocol")
    }
    assert all((row["assigned_count"], row["size_min"], row["size_max"]) == (9, 4, 5) for row in now.values())
    crossing = {
        (row["cluster"], row["group"]): row["crossing_count"]
        for row in traffic.groups(members, partitions(spark), assignors=["now"]).collect()
    }
    # By hand: leaders of even partitions are in the east. b-1 holds payments-2 and orders-3, 4, 5; n-1 orders-2 to 5.
    assert crossing["prod", "billing group"] == crossing["stage", "billing group"] == 2 + 3
    assert crossing["prod", "new-protocol"] == crossing["stage", "new-protocol"] == 2 + 3


def test_lag_is_summed_from_offsets(spark: SparkSession, folder: Path) -> None:
    offsets = load(spark, folder, table="offsets", cluster="{folder}")
    assert offsets.count() == len(rows_of(printed("offsets")))
    rows = {row["group"]: row for row in groups.lag(offsets).collect()}
    expected = sum(row["lag"] for row in offsets.collect() if row["group"] == "new-protocol")
    assert rows["new-protocol"]["lag"] == expected > 0
    assert rows["billing group"]["lag"] == 0


def test_without_a_cluster_each_file_is_one(spark: SparkSession, folder: Path) -> None:
    names = {row["cluster"] for row in load(spark, folder, table="inputs").selectExpr("source as cluster").collect()}
    assert len(names) == 4
    rows = load(spark, folder).where("fault is null").select("cluster").distinct().collect()
    assert {row["cluster"] for row in rows} == {"stage/members", "prod/offsets"}
    with pytest.raises(
        PySparkException, match="kafka_groups has no option 'racks'; it has table, mode, cluster, zones"
    ):
        load(spark, folder, racks="x").count()
