"""The one Spark session of a test run. A test that asks for `spark` is marked so by that alone.

A test that needs other settings, or another end of the session, runs a process of its own:
Spark has one JVM per process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from pyspark.sql import SparkSession

from spark_analysis.session.settings import Option
from spark_analysis.session.spark_session import spark_session

# Together: half of the usual start-up, and a tenth to two tenths of a second a job.
FAST: Final = (
    Option("spark.sql.shuffle.partitions", "1", "Test tables have tens of rows: more partitions only cost start-up."),
    Option("spark.default.parallelism", "1", "The same, for spark.range."),
    Option("spark.sql.adaptive.enabled", "false", "Nothing to adapt to; planning again costs more than it saves."),
    Option("spark.shuffle.compress", "false", "No codec to load."),
    Option("spark.driver.memory", "1g", "Leaves the memory to what else the run starts."),
    Option(
        "spark.driver.extraJavaOptions",
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "Compiles once and fast, collects on one thread: the run is over before better code pays.",
    ),
)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session on one core for all tests."""
    with spark_session(app_name="tests", master="local[1]", options={o.key: o.value for o in FAST}) as session:
        yield session


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
