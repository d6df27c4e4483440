"""The data source kafka_log in a session: filters that reach it, filters that do not, damage, schemas of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis import register
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.tables.schemas import LOG_TABLES
from tests.log.samples import DIRECTORY, write_sample
from tests.spark_analysis.data_sources.logs import rows, tier

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log directory of one partition in several segments."""
    root = tmp_path_factory.mktemp("log")
    write_sample("none", root)
    return root


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    """Return the session while filters may reach data sources."""
    before = spark.conf.get(PUSHDOWN)
    spark.conf.set(PUSHDOWN, "true")
    yield spark
    spark.conf.set(PUSHDOWN, str(before))


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    register(spark)
    return spark.read.format("kafka_log").options(**options).load(str(path))


def asked(frame: DataFrame) -> DataFrame:
    return frame.where("topic = 'topic' and partition in (0, 3) and offset between 40 and 79 and timestamp_ms > 0")


def test_a_query_gives_the_same_rows_however_its_filter_is_given(pushing: SparkSession, log: Path) -> None:
    wanted = [row for row in rows(log) if 40 <= row["offset"] <= 79]
    by_options = load(pushing, log, task_bytes="1", start_offset="40", end_offset="80", topics="topic")
    pushed, plain = (asked(load(pushing, log, task_bytes="1", pushdown=flag)) for flag in ("true", "false"))
    for frame in (by_options, pushed, plain):
        assert [row.asDict(recursive=True) for row in frame.orderBy("offset").collect()] == wanted
    counts = [frame.rdd.getNumPartitions() for frame in (by_options, pushed, plain)]
    assert counts[0] == counts[1] < counts[2] == len(list((log / DIRECTORY).glob("*.log")))
    assert load(pushing, log, topics="other").count() == 0


def test_spark_names_the_setting_that_pushdown_needs(spark: SparkSession, log: Path) -> None:
    with pytest.raises(PySparkException, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
        load(spark, log, pushdown="true").count()


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_a_filter_treats_the_row_of_a_fault_as_any_row(pushing: SparkSession, tmp_path: Path, pushdown: str) -> None:
    write_sample("none", tmp_path)
    path = sorted((tmp_path / DIRECTORY).glob("*.log"))[-1]
    path.write_bytes(path.read_bytes()[:-5])
    for condition, count in (("true", 1), ("partition = 0", 1), ("offset >= 0", 0)):
        frame = load(pushing, tmp_path, pushdown=pushdown)
        assert frame.where(f"{condition} and fault is not null").count() == count
    with pytest.raises(PySparkException, match="an incomplete batch stands at the end"):
        load(pushing, tmp_path, mode="FAILFAST").count()


@pytest.mark.parametrize("table", LOG_TABLES, ids=lambda table: table.name)
def test_each_table_has_the_documented_columns_with_their_meaning(spark: SparkSession, log: Path, table: Any) -> None:
    frame = load(spark, log, table=table.name)
    assert frame.schema == spark_schema_of(table)
    assert frame.collect() == [] if table.name == "damage" else frame.count() > 0


def test_bytes_by_topic_of_tiered_storage_are_those_of_the_log(spark: SparkSession, log: Path, tmp_path: Path) -> None:
    tier(log / DIRECTORY, tmp_path)
    asked = [F.count("*"), F.sum("size_bytes"), F.sum(F.length("value")), F.max("timestamp_ms")]
    local, remote = (load(spark, path).groupBy("topic").agg(*asked).collect() for path in (log, tmp_path))
    assert local == remote


def test_a_schema_of_the_user_reads_no_more_than_it_names(spark: SparkSession, log: Path) -> None:
    register(spark)
    chosen = spark.read.format("kafka_log").schema("offset bigint, key binary").load(str(log))
    assert [tuple(row) for row in chosen.orderBy("offset").take(2)] == [(0, b"key-0"), (1, b"key-1")]
    with pytest.raises(PySparkException, match="option 'start_offset' of kafka_log is '-1'"):
        load(spark, log, start_offset="-1").count()
