"""What got worse in a history: rises, and clusters that are missing or could not be read, which nobody else reports."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from broker.errors import UsageError
from spark_analysis.history import got_worse

SCHEMA = (
    "cluster string, observed_at timestamp, leaderless_count bigint, under_min_isr_count bigint, "
    "under_replicated_count bigint, fault string"
)


def night(day: int) -> datetime.datetime:
    return datetime.datetime(2026, 11, day, 23, tzinfo=datetime.UTC)


def row(cluster: str | None, day: int, *counts: int | None, fault: str | None = None) -> tuple[Any, ...]:
    return (cluster, night(day), *(counts or (None, None, None)), fault)


@pytest.fixture
def history(spark: SparkSession) -> DataFrame:
    """Over four nights: `worse` worsens twice, `gone` vanishes and returns, `torn` cannot be read once."""
    rows = [
        *(row("calm", day, 0, 0, 1) for day in (20, 21, 22, 23)),
        *(row("worse", day, count, 0, 0) for day, count in ((20, 0), (21, 2), (22, 1), (23, 3))),
        row("gone", 20, 0, 0, 0), row("gone", 22, 0, 0, 0),
        row("torn", 20, 0, 0, 0), row("torn", 21, fault="cut off"), row("torn", 22, 0, 0, 0), row("torn", 23, 0, 1, 0),
        row("torn", 23, fault="one row of several"), row(None, 22, fault="x.txt: nothing of Kafka"),
    ]  # fmt: skip
    return spark.createDataFrame(rows, SCHEMA)


def found(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [
        (each["cluster"], each["observed_at"].astimezone(datetime.UTC).day, each["change"],
         each["leaderless_count_more"], each["under_min_isr_count_more"], each["fault"])
        for each in frame.collect()
    ]  # fmt: skip


def test_each_night_is_compared_with_the_one_before(history: DataFrame) -> None:
    assert found(got_worse(history)) == [
        ("gone", 21, "vanished", None, None, None),
        ("torn", 21, "unreadable", None, None, "cut off"),
        ("worse", 21, "worse", 2, 0, None),
        (None, 22, "unreadable", None, None, "x.txt: nothing of Kafka"),
        ("gone", 23, "vanished", None, None, None),
        ("torn", 23, "worse", 0, 1, None),
        ("worse", 23, "worse", 2, 0, None),
    ]


def test_since_a_time_the_last_night_is_compared_with_that_of_then(history: DataFrame) -> None:
    """`torn` could not be read on the 21st: its row of the night before stands for it."""
    assert found(got_worse(history, since=night(21))) == [
        ("gone", 23, "vanished", None, None, None),
        ("torn", 23, "worse", 0, 1, None),
        ("worse", 23, "worse", 1, 0, None),
    ]
    assert found(got_worse(history, since=night(23))) == []


def test_a_cluster_whose_files_have_dates_in_their_names_is_one_cluster_over_the_nights(spark: SparkSession) -> None:
    rows = [
        row("eu/north-2026-11-20", 20, 0, 0, 0), row("eu/north-2026-11-21", 21, 1, 0, 0),
        row("south-2026-11-20", 20, 0, 0, 0), row("kafka-2", 20, 0, 0, 0), row("kafka-2", 21, 0, 0, 0),
        # Two moments in one run: it was worse in the morning, and is as it was the night before.
        row("west_20261120T0800", 20, 1, 0, 0), row("west_20261121T0800", 21, 5, 0, 0),
        row("west_20261121T2000", 21, 1, 0, 0),
    ]  # fmt: skip
    for since in (None, night(20)):
        assert found(got_worse(spark.createDataFrame(rows, SCHEMA), since=since)) == [
            ("eu/north", 21, "worse", 1, 0, None),
            ("south", 21, "vanished", None, None, None),
        ]


def test_a_history_without_its_columns_or_zone_is_refused(spark: SparkSession, history: DataFrame) -> None:
    for frame, since, text in (
        (history.drop("observed_at"), None, "the DataFrame of history has no column 'observed_at'"),
        (history, datetime.datetime(2026, 11, 27), "since is 2026-11-27 00:00:00, without a time zone"),
    ):
        with pytest.raises(UsageError, match=text):
            got_worse(frame, since=since)
