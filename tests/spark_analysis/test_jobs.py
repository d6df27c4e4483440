"""The jobs end to end: every table, the same rows however the work is split, and errors as one sentence."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from broker.errors import InputError
from spark_analysis import schemas
from spark_analysis.fleet.generate import Fleet
from spark_analysis.jobs import analyse_dumps, analyse_fleet
from spark_analysis.kernels import DumpInput, fleet_kernel
from spark_analysis.progress import progress
from spark_analysis.staging import STAGE_SCHEMA
from spark_analysis.summary import RunSummary
from spark_analysis.tables import read_table
from tests.spark_analysis.test_fleet import recipe
from tests.spark_analysis.test_kernels import DESCRIBE

QUIET = functools.partial(progress, quiet=True)
MULTIREGION = Path(__file__).parents[1] / "real_data" / "multiregion"


def rows(out: Path, table: schemas.Table) -> list[dict[str, Any]]:
    return read_table(out, table).to_pylist()


@pytest.fixture(scope="module")
def fleet_out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunSummary]:
    out = tmp_path_factory.mktemp("fleet")
    return out, analyse_fleet(spark, recipe(11), out, progress=QUIET)


def test_a_fleet_is_the_same_rows_whatever_the_partitioning(spark: SparkSession) -> None:
    """One partition and seven on Spark, and no Spark at all."""
    fleet = Fleet.of(recipe(11))
    schema = from_arrow_schema(STAGE_SCHEMA)
    made = []
    for partition_count in (1, 7):
        frame = spark.range(0, 10, 1, partition_count).mapInArrow(fleet_kernel(fleet), schema)
        made.append(sorted(frame.toArrow().to_pylist(), key=lambda row: (row["cluster_index"], row["placer"])))
    batches = fleet_kernel(fleet)([pa.RecordBatch.from_pydict({"id": list(range(10))})])
    plain = [row for batch in batches for row in batch.to_pylist()]
    assert made[0] == made[1] == plain
    assert len(plain) == 20


def test_a_fleet_writes_every_table(fleet_out: tuple[Path, RunSummary]) -> None:
    out, _ = fleet_out
    counts = {table.name: len(rows(out, table)) for table in schemas.TABLES}
    clusters = rows(out, schemas.CLUSTERS)
    assert counts["clusters"] == 20
    assert counts["brokers"] == sum(row["broker_count"] for row in clusters)
    assert counts["topics"] == sum(row["topic_count"] for row in clusters)
    assert (counts["inputs"], counts["rejects"], counts["changes"]) == (1, 0, 0)
    assert min(counts["measures"], counts["racks"], counts["violations"], counts["pairs"]) > 0
    assert sorted(row["rank"] for row in clusters) == list(range(1, 21))


def test_both_placers_placed_the_same_topics(fleet_out: tuple[Path, RunSummary]) -> None:
    out, _ = fleet_out
    of_placer = {"classic": [], "striped": []}  # type: dict[str, list[tuple[Any, ...]]]
    for row in rows(out, schemas.TOPICS):
        of_placer[row["placer"]].append((row["cluster_id"], row["topic"], row["partition_count"], row["size_bytes"]))
    assert sorted(of_placer["classic"]) == sorted(of_placer["striped"]) != []


def test_the_summary_says_what_the_tables_say(fleet_out: tuple[Path, RunSummary]) -> None:
    out, summary = fleet_out
    clusters = rows(out, schemas.CLUSTERS)
    assert (summary.title, summary.cluster_count, summary.placement_count) == ("test", 10, 20)
    assert summary.replica_count == sum(row["replica_count"] for row in clusters)
    assert summary.violation_count == sum(row["violation_count"] for row in clusters)
    assert [placer.placer for placer in summary.placers] == ["classic", "striped"]
    assert [worst.rank for worst in summary.worst] == [1, 2, 3, 4, 5]
    assert (summary.rows_in, summary.rows_analysed, summary.rows_rejected) == (10, 10, 0)
    assert summary.as_dict()["placers"][0]["cluster_count"] == 10


@pytest.mark.skipif(not MULTIREGION.is_dir(), reason="the copies of real dumps are not there yet")
def test_the_multiregion_story_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """Six dumps of one cluster: baseline, a broker lost, a region lost, an unclean election, moved, restored."""
    paths = sorted(MULTIREGION.glob("?-*.txt"))
    inputs = [DumpInput(str(path), name=path.stem, series="story") for path in paths]
    summary = analyse_dumps(spark, inputs, None, tmp_path, progress=QUIET)
    clusters = sorted(rows(tmp_path, schemas.CLUSTERS), key=lambda row: row["cluster_id"])
    assert [row["cluster"] for row in clusters] == [path.stem for path in paths]
    assert [row["leaderless_count"] > 0 for row in clusters] == [False, False, True, False, False, False]
    changes = {(row["to_cluster"][0], row["change"]) for row in rows(tmp_path, schemas.CHANGES)}
    assert {("3", "leader lost"), ("4", "unclean election")} <= changes
    assert (
        summary.rows_in
        == summary.rows_analysed + summary.rows_rejected
        == sum(row["rows_in"] for row in rows(tmp_path, schemas.INPUTS))
    )
    assert summary.rows_rejected == len(rows(tmp_path, schemas.REJECTS))


def test_an_input_that_cannot_be_used_ends_the_job_before_a_table_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text(DESCRIBE.format(1, "1,2"), encoding="utf-8")
    bad.write_text("nothing of the kind\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        analyse_dumps(spark, [DumpInput(str(good)), DumpInput(str(bad))], None, tmp_path / "out", progress=QUIET)
    assert str(caught.value).startswith(f"{bad}:1: not a dump of a known format")
    assert "Traceback" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_missing_input_is_found_before_spark_works(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.txt: cannot be read: no such file or directory$"):
        analyse_dumps(None, [DumpInput(str(tmp_path / "none.txt"))], None, tmp_path / "out")  # type: ignore[arg-type]
