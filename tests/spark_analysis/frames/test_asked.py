"""Questions of `--ask` put to DataFrames give the rows of the commands, however rows are partitioned."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from broker.errors import UsageError
from placement.formats.racks import read_racks
from spark_analysis.answers.registry import asked_of
from spark_analysis.engines import LocalEngine
from spark_analysis.jobs import analyse_dumps
from spark_analysis.questions import availability, durability
from spark_analysis.sources.dumps import DumpInput
from tests.spark_analysis.frames.test_balance import DUMPS, ONE, ONE_SCHEMA, RACKS, expected, found
from tests.spark_analysis.frames.test_questions import frames as frames
from tests.spark_analysis.frames.test_questions import whole
from tests.spark_analysis.test_jobs import QUIET

Frames = tuple[DataFrame, DataFrame]
ASKED = asked_of(("availability", "durability"), ("draws=256", "seed=5", "years=5000"))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    inputs = [DumpInput(str(path), name=path.stem) for path in DUMPS]
    analyse_dumps(LocalEngine(), inputs, read_racks(RACKS.read_bytes(), source="racks"), out, progress=QUIET,
                  min_insync_replicas_default=2, asked=ASKED)  # fmt: skip
    return out


def test_risks_are_those_of_the_command_in_any_partitioning(frames: Frames, report: Path) -> None:
    given = {"draws": 256.0, "seed": 5.0}
    for partitions in (frames[0], frames[0].repartition(7, "partition")):
        asked = availability.availability(partitions, frames[1], min_insync_replicas=2, assume=given)
        rows = found(asked, "source", "fault")
        assert whole(rows) == whole(expected(report, ASKED[0].question.run_table, list(rows[0])))
        assert {row["event"] for row in rows} == {"moment", "rack", "power cut"}


def test_losses_are_those_of_the_command(frames: Frames, report: Path) -> None:
    rows = found(durability.durability(*frames, assume={"years": 5_000.0, "seed": 5.0}), "source", "fault")
    assert whole(rows) == whole(expected(report, ASKED[1].question.run_table, list(rows[0])))
    assert all(row["losses_per_year_closed_form"] > 0 for row in rows)


def test_an_assumption_is_checked_before_any_job(spark: SparkSession) -> None:
    partitions = spark.createDataFrame(ONE, ONE_SCHEMA)
    with pytest.raises(UsageError, match=r"^assumption draws is 3\.0; allowed is a whole number from 64 to"):
        availability.availability(partitions, assume={"draws": 3.0})
    with pytest.raises(UsageError, match=r"^availability has no assumption 'speed'; it has draws, seed, "):
        availability.availability(partitions, assume={"speed": 3.0})
