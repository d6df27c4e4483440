"""The data source kafka_cluster in a session: paths, tables, schemas, and faults that do not end the job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis import register
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.tables.schemas import CLUSTER_TABLES
from tests.spark_analysis.data_sources.dumps import KRAFT, MULTIREGION, describe, write

FILES = 300


def load(spark: SparkSession, *paths: object, **options: str) -> DataFrame:
    register(spark)
    given: Any = [str(path) for path in paths]
    return spark.read.format("kafka_cluster").options(**options).load(given if len(given) > 1 else given[0])


def test_one_corrupt_file_of_300_is_one_fault_row(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(FILES):
        write(tmp_path / f"cluster-{number:03d}.txt", describe(2))
    write(tmp_path / "cluster-150.txt", "\x00\x01 no dump at all\n")
    found = load(spark, tmp_path / "*.txt", task_bytes="16384").groupBy(F.col("fault").isNull().alias("good"))
    counts = {
        row["good"]: row for row in found.agg(F.count("*").alias("n"), F.countDistinct("cluster").alias("k")).collect()
    }
    assert (counts[True]["n"], counts[True]["k"]) == (2 * (FILES - 1), FILES - 1)
    assert (counts[False]["n"], counts[False]["k"]) == (1, 0)
    account = load(spark, tmp_path, table="inputs").agg(
        F.sum("rows_in"), F.sum("rows_analysed"), F.sum("rows_rejected")
    )
    assert tuple(account.collect()[0]) == (3 * (FILES - 1) + 1, 3 * (FILES - 1), 1)
    with pytest.raises(PySparkException, match=r"cluster-150\.txt:1: not a dump of a known format"):
        load(spark, tmp_path, mode="FAILFAST").count()


def test_a_placeholder_that_is_not_known_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    east = write(tmp_path / "east" / "prod.txt", describe(1))
    with pytest.raises(PySparkException, match=r"allowed in braces are \{file\} and \{folder\}, not \{foldr\}"):
        load(spark, east, cluster="{foldr}-{file}").count()


def test_a_metadata_log_is_read_at_its_end_beside_dumps(spark: SparkSession) -> None:
    found = load(spark, KRAFT / "__cluster_metadata-0", MULTIREGION / "1-baseline.txt")
    by_cluster = {row["cluster"]: row["count"] for row in found.groupBy("cluster").count().collect()}
    assert by_cluster == {"kraft": 19, "1-baseline": 7}
    racks = {rack for row in found.where("cluster = 'kraft'").collect() for rack in row["racks"]}
    assert racks == {"east", "north", "west"}


@pytest.mark.parametrize("table", CLUSTER_TABLES, ids=lambda table: table.name)
def test_each_table_has_the_documented_columns_with_their_meaning(spark: SparkSession, table: Any) -> None:
    frame = load(spark, MULTIREGION / "6-region-restored.txt", table=table.name)
    assert frame.schema == spark_schema_of(table)
    assert all(field.metadata["comment"] for field in frame.schema.fields)
    assert frame.toArrow().num_rows > 0


def test_a_schema_of_the_user_chooses_columns_and_a_wrong_one_is_one_sentence(spark: SparkSession) -> None:
    register(spark)
    path = str(MULTIREGION / "1-baseline.txt")
    chosen = spark.read.format("kafka_cluster").schema("partition int, topic string").load(path)
    assert chosen.where("topic = 'single-region'").collect() == [(0, "single-region")]
    for schema, sentence in (
        ("topics string", "the table 'partitions' of kafka_cluster has no column 'topics'; it has cluster, topic, "),
        ("leader string", "column 'leader' of kafka_cluster is int; the schema asks for string"),
    ):
        with pytest.raises(PySparkException, match=sentence):
            spark.read.format("kafka_cluster").schema(schema).load(path).count()


def test_a_path_that_is_not_there_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="cannot be read: no such file or directory"):
        load(spark, tmp_path / "none.txt").count()


def clusters(frame: DataFrame) -> list[str]:
    return [row["cluster"] for row in frame.select("cluster").distinct().orderBy("cluster").collect()]
