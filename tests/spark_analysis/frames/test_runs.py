"""A history's rows say which run made them and when; questions take both as keys."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from broker.errors import UsageError
from spark_analysis.questions import balance
from spark_analysis.sinks import with_run
from tests.spark_analysis.frames.test_balance import ONE, ONE_SCHEMA

NIGHT = datetime.datetime(2026, 11, 21, 23, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))


def test_every_row_has_its_run_and_its_instant(spark: SparkSession) -> None:
    frame = with_run(spark.createDataFrame(ONE, ONE_SCHEMA), "night-1", NIGHT)
    assert frame.columns[:3] == ["run_id", "observed_at", "cluster"]
    rows = frame.select("run_id", F.unix_seconds("observed_at").alias("seconds")).collect()
    assert [tuple(row) for row in rows] == [("night-1", int(NIGHT.timestamp()))] * 2
    measures = balance.measures(frame)
    assert measures.columns[:3] == ["run_id", "observed_at", "cluster"]
    assert measures.select("run_id", F.unix_seconds("observed_at")).distinct().collect() == rows[:1]


@pytest.mark.parametrize(
    ("run_id", "when", "sentence"),
    [
        ("", NIGHT, "run_id is empty; a name of the run is needed"),
        (
            "a",
            NIGHT.replace(tzinfo=None),
            "observed_at is 2026-11-21 23:30:00, without a time zone; one is needed, such as UTC",
        ),
    ],
)
def test_a_run_has_a_name_and_an_instant(spark: SparkSession, run_id: str, when: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_run(spark.range(1), run_id, when)
    assert str(caught.value) == sentence


def test_a_row_is_stamped_once(spark: SparkSession) -> None:
    stamped = with_run(spark.range(1).toDF("n"), "a", NIGHT)
    with pytest.raises(UsageError, match="the DataFrame has a column 'run_id' already"):
        with_run(stamped, "b", NIGHT)
