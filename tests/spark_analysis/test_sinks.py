"""Answers and whole runs are written to tables of a catalog, each row with its run and day; a run replaces its own."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from broker.cli import run
from broker.errors import InputError, UsageError
from spark_analysis import sinks
from spark_analysis.answers.registry import asked_of
from spark_analysis.cli.commands import brokerside
from spark_analysis.cli.into import Sink, sink_engine
from spark_analysis.jobs import analyse_dumps
from spark_analysis.questions import balance
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.tables.schemas import TABLES
from spark_analysis.tables.write import read_table
from tests.spark_analysis.frames.test_balance import DUMPS, ONE, ONE_SCHEMA, found
from tests.spark_analysis.test_jobs import QUIET

LATE = datetime.datetime(2026, 11, 22, 23, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=-5)))
NIGHTS = [sinks.Run(f"night-{day}", datetime.datetime(2026, 11, day, tzinfo=datetime.UTC)) for day in (21, 22)]
ASKED = asked_of(("durability",), ("years=1000",))


@pytest.fixture
def schema(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    spark.sql(f"create schema history location '{tmp_path / 'history'}'")
    yield "history"
    spark.sql("drop schema history cascade")


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return balance.clusters(spark.createDataFrame(ONE, ONE_SCHEMA))


def test_each_night_is_appended_with_its_run_in_a_partition_of_its_day(
    spark: SparkSession, schema: str, rows: DataFrame, tmp_path: Path
) -> None:
    for name, night in zip((f"{schema}.clusters", f"spark_catalog.{schema}.clusters"), NIGHTS, strict=True):
        sinks.append(rows, name, run=night)
    table = spark.table(f"{schema}.clusters")
    assert table.columns == ["observed_at", *rows.columns, "day", "run_id"]
    assert sorted(str(day.name) for day in (tmp_path / "history/clusters").glob("day=*")) == [
        "day=2026-11-21", "day=2026-11-22",
    ]  # fmt: skip
    assert found(table.where("run_id = 'night-22'").drop("run_id", "observed_at", "day")) == found(rows)
    assert [row["observed_at"].astimezone(datetime.UTC) for row in table.orderBy("run_id").collect()] == [
        night.observed_at for night in NIGHTS
    ]
    assert table.schema["uneven"].metadata["comment"].startswith("Shares of replicas and of leaders")


def test_a_run_that_is_written_again_replaces_its_rows_on_whatever_day_and_no_others(
    spark: SparkSession, schema: str, rows: DataFrame
) -> None:
    odd = sinks.Run("it's {7} \\ a/b=c", NIGHTS[0].observed_at)
    for night in (*NIGHTS, odd, odd, NIGHTS[0], sinks.Run("night-22", LATE)):
        sinks.append(rows.union(rows), f"{schema}.clusters", run=night)
    counts = spark.table(f"{schema}.clusters").groupBy("run_id", "day").count().collect()
    assert sorted((row["run_id"], str(row["day"]), row["count"]) for row in counts) == [
        (odd.id, "2026-11-21", 2), ("night-21", "2026-11-21", 2), ("night-22", "2026-11-23", 2),
    ]  # fmt: skip
    sinks.append(rows.limit(0), f"{schema}.clusters", run=NIGHTS[0])
    assert spark.table(f"{schema}.clusters").where("run_id = 'night-21'").count() == 0


def test_a_write_that_is_killed_in_the_middle_is_made_whole_by_the_same_write(
    spark: SparkSession, schema: str, rows: DataFrame, tmp_path: Path
) -> None:
    """The second table fails after the first is there; of the third, files are there of which no catalog was told."""
    failing = rows.withColumn("fault", F.raise_error(F.lit("killed")).cast("string"))
    for night in NIGHTS:
        with pytest.raises(InputError, match=r"^history\.second: cannot be written: .*killed"):
            sinks.append_all(spark, {"first": rows, "second": failing}, schema, run=night)
        assert spark.table(f"{schema}.second").where(F.col("run_id") == night.id).count() == 0
        sinks.append_all(spark, {"first": rows, "second": rows}, schema, run=night)
    lost = f"day=2026-11-22/run_id={NIGHTS[1].id}"
    sinks.append(rows, f"{schema}.third", run=NIGHTS[0])
    shutil.copytree(tmp_path / "history/first" / lost, tmp_path / "history/third" / lost)
    sinks.append(rows, f"{schema}.third", run=NIGHTS[1])
    spark.sql(f"msck repair table {schema}.third")
    for name in ("first", "second", "third"):
        written = spark.table(f"{schema}.{name}")
        assert [found(written.where(F.col("run_id") == one.id).select(rows.columns)) for one in NIGHTS] == [
            found(rows)
        ] * 2


def test_a_column_more_in_the_table_is_null_in_the_rows_that_lack_it(
    spark: SparkSession, schema: str, rows: DataFrame
) -> None:
    sinks.append(rows, f"{schema}.clusters", run=NIGHTS[0])
    spark.sql(f"alter table {schema}.clusters add columns (owner string, cost double)")
    for night in (NIGHTS[1], NIGHTS[0]):
        sinks.append(rows.drop("uneven"), f"{schema}.clusters", run=night)
    table = spark.table(f"{schema}.clusters")
    assert table.select("owner", "cost", "uneven").distinct().collect() == [(None, None, None)]
    assert found(table.where("run_id = 'night-21'").select("cluster")) == found(rows.select("cluster"))


def test_a_table_whose_partitions_are_no_runs_is_refused(spark: SparkSession, schema: str, rows: DataFrame) -> None:
    sinks.with_run(rows, "old", LATE).withColumn("day", F.lit(NIGHTS[0].day)).write.partitionBy("day").saveAsTable(
        f"{schema}.clusters"
    )
    with pytest.raises(UsageError) as caught:
        sinks.append(rows, f"{schema}.clusters", run=NIGHTS[1])
    assert str(caught.value) == (
        "table history.clusters is partitioned by day; a run can be replaced where it is partitioned by day, run_id. "
        "Write to another schema, and copy the rows there"
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("add", "table history.clusters has no column 'more'; the rows to write are int"),
        ("type", "table history.clusters has a column 'fault' of type string; the rows to write are int"),
    ],
)  # fmt: skip
def test_a_table_with_other_columns_is_left_as_it_is(
    spark: SparkSession, schema: str, rows: DataFrame, change: str, sentence: str
) -> None:
    sinks.append(rows, f"{schema}.clusters", run=NIGHTS[0])
    changed = {"add": rows.withColumn("more", F.lit(1)), "type": rows.withColumn("fault", F.lit(1))}[change]
    with pytest.raises(UsageError) as caught:
        sinks.append(changed, f"{schema}.clusters", run=NIGHTS[1])
    assert str(caught.value) == sentence
    assert spark.table(f"{schema}.clusters").count() == 1


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("nosuch.clusters", "nosuch: the session has no schema 'nosuch'; "),
        ("lake.kafka.clusters", "lake.kafka: the session has no schema 'kafka' in a catalog 'lake'; "),
        ("clusters", "table 'clusters' is named without its schema; allowed is CATALOG.SCHEMA.TABLE or SCHEMA.TABLE"),
        ("a..clusters", "a schema is named CATALOG.SCHEMA or SCHEMA, not 'a.'"),
    ],
)
def test_a_schema_that_is_not_there_is_said_in_a_sentence(rows: DataFrame, table: str, sentence: str) -> None:
    with pytest.raises((UsageError, InputError)) as caught:
        sinks.append(rows, table, run=NIGHTS[0])
    assert str(caught.value).startswith(sentence)


def test_every_table_of_a_run_is_appended_as_it_was_written(
    spark: SparkSession, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "forgets", lambda spark, into: False)
    inputs = [DumpInput(str(path), name=path.stem) for path in DUMPS]
    engine = sink_engine(spark, Sink(schema, "a", LATE), ASKED)
    for _ in range(2):
        analyse_dumps(engine, inputs, None, tmp_path / "out", progress=QUIET, asked=ASKED, overwrite=True)
    tables = {table.name: table for table in (*TABLES, ASKED[0].question.run_table)}
    assert {row.name for row in spark.catalog.listTables(schema)} == set(tables)
    for name, table in tables.items():
        there = spark.table(f"{schema}.{name}").drop("run_id", "observed_at", "day")
        expected = read_table(tmp_path / "out", table)
        assert sorted(map(str, (row.asDict() for row in there.collect()))) == sorted(map(str, expected.to_pylist()))


def test_a_catalog_that_forgets_its_tables_is_refused_by_the_command(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"^--into default: Spark's own catalog is in memory here and forgets "):
        sink_engine(spark, Sink("default", "a", LATE), ())
    with pytest.raises(InputError, match=r"^lake\.kafka: the session has no schema 'kafka' in a catalog 'lake'"):
        sink_engine(spark, Sink("lake.kafka", "a", LATE), ())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--into", "a.b"), "--into needs --observed-at TIME, the time of what the tables say"),
        (("--into", "a.b", "--observed-at", "noon"),
         "--observed-at noon: allowed is a time such as 2026-11-21T18:30"),
        (("--into", "a.b", "--observed-at", "2026-11-21", "--engine", "local"),
         "--into needs Spark, which has the catalog; leave out --engine local"),
        (("--run-id", "x"), "--run-id has no effect without --into; give both, or neither"),
        (("--observed-at", "2026-11-21"), "--observed-at has no effect without --into; give both, or neither"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_one_sentence(
    options: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["report", str(DUMPS[0])], ["fleet", "demo"]):
        assert run(brokerside, "brokerside", [*words, *options]) == 2
        assert capsys.readouterr().err == f"brokerside: {sentence}\n"
