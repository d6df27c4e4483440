"""One call registers every data source; each gives its default table in a session of one's own."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_analysis import register
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.tables.schemas import FLEET_TABLES, METADATA_TABLES
from tests.spark_analysis.data_sources.dumps import KRAFT

LOG = str(KRAFT / "__cluster_metadata-0")


@pytest.mark.parametrize("table", METADATA_TABLES, ids=lambda table: table.name)
def test_each_table_of_a_metadata_log_has_its_documented_columns(spark: SparkSession, table: Any) -> None:
    register(spark)
    frame = spark.read.format("kafka_metadata").option("table", table.name).load(LOG)
    assert frame.schema == spark_schema_of(table)
    assert (frame.count() > 0) is (table.name != "rejects")


def test_unclean_elections_are_found_by_sql(spark: SparkSession) -> None:
    register(spark)
    events = spark.read.format("kafka_metadata").option("table", "events").load(LOG)
    unclean = events.where("what = 'unclean election'").select("topic", "partition", "offset").collect()
    assert [tuple(row) for row in unclean] == [
        ("audit", 1, 123),
        ("audit", 0, 165),
        ("clicks", 0, 170),
        ("clicks", 1, 171),
    ]


def test_moments_are_chosen_by_one_of_two_options(spark: SparkSession) -> None:
    register(spark)
    reader = spark.read.format("kafka_metadata").option("at", "168,2026-11-21T18:30:49.039Z")
    leaderless = reader.load(LOG).where("leader = -1").groupBy("offset").count()
    assert [tuple(row) for row in leaderless.collect()] == [(168, 2)]
    with pytest.raises(
        PySparkException, match="options 'at' and 'by_brokers' of kafka_metadata both choose the moments"
    ):
        reader.option("by_brokers", "true").load(LOG).count()


@pytest.mark.parametrize("table", FLEET_TABLES, ids=lambda table: table.name)
def test_each_table_of_a_fleet_has_its_documented_columns(spark: SparkSession, table: Any) -> None:
    register(spark)
    frame = spark.read.format("kafka_fleet").options(table=table.name, clusters="3").load("uneven-racks")
    assert frame.schema == spark_schema_of(table)
    found = frame.agg(F.countDistinct("cluster_id", "placer").alias("n"), F.max("cluster_id").alias("last")).collect()
    assert tuple(found[0]) == (6, 2)
