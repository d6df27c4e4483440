"""Answers and whole runs are appended to tables of a catalog, each row with its run and its day, and none twice."""

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
from spark_analysis.cli.into import Sink, append_tables, check_sink
from spark_analysis.engines import LocalEngine, SparkEngine
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
    assert table.columns == ["run_id", "observed_at", *rows.columns, "day"]
    assert sorted(str(day.name) for day in (tmp_path / "history/clusters").glob("day=*")) == [
        "day=2026-11-21", "day=2026-11-22",
    ]  # fmt: skip
    assert found(table.where("run_id = 'night-22'").drop("run_id", "observed_at", "day")) == found(rows)
    assert [row["observed_at"].astimezone(datetime.UTC) for row in table.orderBy("run_id").collect()] == [
        night.observed_at for night in NIGHTS
    ]
    assert table.schema["uneven"].metadata["comment"].startswith("Shares of replicas and of leaders")


def test_a_run_is_appended_once(spark: SparkSession, schema: str, rows: DataFrame) -> None:
    tables = {"first": rows, "second": rows}
    sinks.append(rows, f"{schema}.second", run=NIGHTS[0])
    with pytest.raises(UsageError) as caught:
        sinks.append_all(spark, tables, schema, run=NIGHTS[0])
    assert str(caught.value) == (
        "table history.second has rows of run 'night-21' on 2026-11-21 already; nothing was appended. If an append of "
        "this run ended early, delete its rows there, and repeat it"
    )
    assert not spark.catalog.tableExists("history.first")
    assert spark.table("history.second").count() == 1


def test_files_of_an_append_that_was_killed_before_the_catalog_knew_their_day_are_not_doubled(
    spark: SparkSession, schema: str, rows: DataFrame, tmp_path: Path
) -> None:
    """Spark moves the files of a partition into the table first, and then tells the catalog of the partition."""
    sinks.append(rows, f"{schema}.clusters", run=NIGHTS[0])
    sinks.append(rows, f"{schema}.other", run=NIGHTS[1])
    folder, day = tmp_path / "history", "day=2026-11-22"
    shutil.copytree(folder / "other" / day, folder / "clusters" / day)
    with pytest.raises(UsageError, match=r"has rows of run 'night-22' on 2026-11-22 already; nothing was appended"):
        sinks.append(rows, f"{schema}.clusters", run=NIGHTS[1])
    assert spark.table(f"{schema}.clusters").where("run_id = 'night-22'").count() == 1
    spark.sql(f"alter table {schema}.clusters drop partition (day = date'2026-11-22')")
    sinks.append(rows, f"{schema}.clusters", run=NIGHTS[1])
    assert spark.table(f"{schema}.clusters").groupBy("run_id").count().count() == 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("drop",
         "table history.clusters has a column 'fault' of type string; the rows to append have none of that name"),
        ("add", "table history.clusters has no column 'more'; the rows to append are int"),
        ("type", "table history.clusters has a column 'fault' of type string; the rows to append are int"),
    ],
)  # fmt: skip
def test_a_table_with_other_columns_is_left_as_it_is(
    spark: SparkSession, schema: str, rows: DataFrame, change: str, sentence: str
) -> None:
    sinks.append(rows, f"{schema}.clusters", run=NIGHTS[0])
    changed = {"drop": rows.drop("fault"), "add": rows.withColumn("more", F.lit(1)),
               "type": rows.withColumn("fault", F.lit(1))}[change]  # fmt: skip
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


def test_the_catalog_knows_every_table_before_rows_are_written(
    spark: SparkSession, schema: str, rows: DataFrame
) -> None:
    """Of a table whose first rows Spark is killed in, nothing but a folder would be left, which no append may take."""
    failing = rows.withColumn("fault", F.raise_error(F.lit("killed")).cast("string"))
    with pytest.raises(InputError, match=r"^history\.first: cannot be written: .*killed"):
        sinks.append_all(spark, {"first": failing, "second": rows}, schema, run=NIGHTS[0])
    assert [spark.table(f"{schema}.{name}").count() for name in ("first", "second")] == [0, 0]
    sinks.append_all(spark, {"first": rows, "second": rows}, schema, run=NIGHTS[0])
    assert [spark.table(f"{schema}.{name}").count() for name in ("first", "second")] == [1, 1]


def test_the_command_refuses_a_run_that_is_there_before_its_job_runs(
    spark: SparkSession, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "forgets", lambda spark, into: False)
    analyse_dumps(LocalEngine(), [DumpInput(str(DUMPS[0]))], None, tmp_path / "out", progress=QUIET, asked=ASKED)
    run_a, run_b = Sink(schema, "a", LATE), Sink(schema, "b", LATE)
    check_sink(SparkEngine(spark), run_a, ASKED)
    append_tables(SparkEngine(spark), run_a, tmp_path / "out", ASKED)
    with pytest.raises(
        UsageError, match=r"^tables clusters, .* of history have rows of run 'a' on 2026-11-23 already; "
    ):
        check_sink(SparkEngine(spark), run_a, ASKED)
    check_sink(SparkEngine(spark), run_b, ASKED)


def test_every_table_of_a_run_is_appended_as_it_was_written(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    inputs = [DumpInput(str(path), name=path.stem) for path in DUMPS]
    analyse_dumps(LocalEngine(), inputs, None, tmp_path / "out", progress=QUIET, asked=ASKED)
    append_tables(SparkEngine(spark), Sink(schema, "a", LATE), tmp_path / "out", ASKED)
    tables = {table.name: table for table in (*TABLES, ASKED[0].question.run_table)}
    assert {row.name for row in spark.catalog.listTables(schema)} == set(tables)
    for name, table in tables.items():
        there = spark.table(f"{schema}.{name}").drop("run_id", "observed_at", "day")
        expected = read_table(tmp_path / "out", table)
        assert sorted(map(str, (row.asDict() for row in there.collect()))) == sorted(map(str, expected.to_pylist()))


def test_a_catalog_that_forgets_its_tables_is_refused_by_the_command(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"^--into default: Spark's own catalog is in memory here and forgets "):
        check_sink(SparkEngine(spark), Sink("default", "a", LATE), ())
    with pytest.raises(InputError, match=r"^lake\.kafka: the session has no schema 'kafka' in a catalog 'lake'"):
        check_sink(SparkEngine(spark), Sink("lake.kafka", "a", LATE), ())


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
