"""The shipped examples read the tables of a run, each with its own engine."""

from __future__ import annotations

import datetime
import runpy
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_analysis import register, sinks
from spark_analysis.cli.into import Sink, sink_engine
from spark_analysis.examples import (
    bytes_by_key,
    dumps_to_table,
)
from spark_analysis.examples.with_duckdb import distances
from spark_analysis.examples.with_spark import overloaded_brokers
from spark_analysis.history import got_worse
from spark_analysis.jobs import analyse_dumps
from spark_analysis.sources.dumps import DumpInput
from spark_analysis.tables.place import TABLES_FOLDER
from tests.log.samples import write_sample
from tests.spark_analysis.data_sources.dumps import MULTIREGION, write
from tests.spark_analysis.report import samples
from tests.spark_analysis.test_jobs import QUIET


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = samples.fleet_rows(4, pairs_of=0, brokers_max=12)
    return samples.write_tables(tmp_path_factory.mktemp("examples"), rows)


def test_duckdb_finds_the_median_share_to_move_of_each_placer(out: Path) -> None:
    found = distances(out)
    assert [(placer, quantity, count) for placer, quantity, count, _ in found] == [
        (placer, quantity, 4) for quantity in ("bytes", "leaders", "replicas") for placer in ("classic", "striped")
    ]


@pytest.mark.spark
def test_spark_finds_the_brokers_above_their_share(out: Path, spark: SparkSession) -> None:
    assert (out / TABLES_FOLDER / "brokers").is_dir()
    found = [row.asDict() for row in overloaded_brokers(spark, out, times=1.1).collect()]
    assert found
    assert all(row["times_the_mean"] >= 1.1 for row in found)
    assert found == sorted(found, key=lambda row: (-row["times_the_mean"], row["cluster_id"], row["placer"]))


@pytest.mark.spark
def test_a_folder_of_dumps_becomes_a_table_of_what_is_wrong(tmp_path: Path, spark: SparkSession) -> None:
    dumps_to_table.main(f"{MULTIREGION}/*.txt", str(tmp_path / "health"))
    dumps_to_table.main(f"{MULTIREGION}/3-*.txt", str(tmp_path / "health"))
    found = [row.asDict() for row in spark.read.parquet(str(tmp_path / "health")).collect()]
    stopped = [row for row in found if row["cluster"] == "3-west-region-stopped"]
    assert len(found) == 6 + 1 + 1  # An entry that was put aside belongs to no cluster.
    assert [(row["partition_count"], row["leaderless_count"], row["out_of_sync_count"]) for row in stopped] == [
        (7, 4, 7)
    ] * 2
    faults = {row["cluster"]: row["first_fault"] for row in found if row["first_fault"] is not None}
    assert sorted(map(str, faults)) == ["5-placement-switched", "6-region-restored", "None"]
    assert "already described" in faults[None]
    assert faults["6-region-restored"] == "multi-region-default declares 1 partition, 0 are listed"


@pytest.mark.spark
def test_bytes_by_key_prefix_and_day_need_no_broker(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sample("zstd", tmp_path)
    register(spark)
    found = bytes_by_key.bytes_by_key(spark.read.format("kafka_log").load(str(tmp_path))).collect()
    assert [(str(row["day"]), row["prefix"], row["record_count"]) for row in found] == [("2023-11-14", "key", 180)]
    bytes_by_key.main(str(tmp_path), "topic,other")
    assert f"|2023-11-14|key   |180         |{found[0]['size_bytes']}" in capsys.readouterr().out


@pytest.mark.spark
def test_nights_of_reports_into_a_catalog_tell_which_clusters_got_worse(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A region of `prod` is stopped on the second night and back on the third; `test` stays as it is, and is late."""
    monkeypatch.setattr(sinks, "forgets", lambda spark, into: False)
    first, stopped = (next(MULTIREGION.glob(f"{number}-*.txt")).read_text(encoding="utf-8") for number in (1, 3))
    nights = {"20": {"prod": first}, "21": {"prod": stopped, "test": first}, "22": {"prod": first, "test": first}}
    spark.sql(f"create schema nights location '{tmp_path / 'lake'}'")
    try:
        for day, dumps in nights.items():
            inputs = [
                DumpInput(str(write(tmp_path / day / f"{name}.txt", text)), name=name) for name, text in dumps.items()
            ]
            observed_at = datetime.datetime(2026, 11, int(day), 23, tzinfo=datetime.UTC)
            engine = sink_engine(spark, Sink("nights", day, observed_at), ())
            analyse_dumps(engine, inputs, None, tmp_path / day / "out", progress=QUIET)
        (worse,) = got_worse(spark.table("nights.clusters")).collect()
        assert (worse["cluster"], worse["placer"], worse["leaderless_count_more"]) == ("prod", "dump", 4)
        assert (worse["change"], worse["observed_at"].astimezone(datetime.UTC).day) == ("worse", 21)
    finally:
        spark.sql("drop schema nights cascade")


@pytest.mark.parametrize(
    ("name", "words", "usage"),
    [
        ("dumps_to_table", ["dumps"], "DUMPS OUT"),
        ("nightly_history", [], "DUMPS OBSERVED_AT HISTORY"),
        ("with_duckdb", [], "OUT"),
        ("with_pandas", [], "OUT"),
        ("with_spark", [], "OUT"),
    ],
)
def test_an_example_says_which_words_it_takes(
    name: str,
    words: list[str],
    usage: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *words])
    monkeypatch.delitem(sys.modules, f"spark_analysis.examples.{name}", raising=False)
    with pytest.raises(SystemExit) as caught:
        runpy.run_module(f"spark_analysis.examples.{name}", run_name="__main__", alter_sys=False)
    assert (caught.value.code, capsys.readouterr().err) == (2, f"usage: {name}.py {usage}\n")
