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


IN_FAST_TIER: Final = frozenset(
    {
        "session/test_session.py::test_the_session_runs_in_utc_with_the_options_of_the_table",
        "session/test_session.py::test_a_kernels_error_is_told_in_one_line_and_its_trace_in_a_note",
        "session/test_session.py::test_a_second_session_in_one_process_is_refused_and_harms_nothing",
        "session/test_session.py::test_starting_leaves_the_environment_as_it_was",
        "data_sources/test_registry.py::test_unclean_elections_are_found_by_sql",
        "data_sources/test_kafka_cluster.py::test_two_clusters_of_one_name_stay_apart",
        "data_sources/test_kafka_cluster.py::test_a_path_that_is_not_there_is_one_sentence",
        "data_sources/test_kafka_log.py::test_a_schema_of_the_user_reads_no_more_than_it_names",
        "data_sources/test_kafka_groups.py::test_lag_is_summed_from_offsets",
        "frames/test_balance.py::test_rows_that_cannot_be_used_are_counted_in_a_fault",
        "frames/test_balance.py::test_partitions_of_one_topic_are_counted_alone_beside_the_brokers_of_the_cluster",
        "frames/test_balance.py::test_a_null_in_one_row_costs_that_row_and_no_other",
        "frames/test_balance.py::test_brokers_add_those_that_hold_nothing_and_racks",
        "frames/test_storage.py::test_codecs_are_those_of_log_stats",
        "test_functions.py::test_sql_has_both_functions",
        "test_sinks.py::test_a_run_is_appended_once",
        "test_engines.py::test_the_tables_and_pages_of_both_engines_are_equal[damaged]",
    }
)
"""The Spark tests of the fast tier; every other one is deep."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            name = item.nodeid.removeprefix("tests/spark_analysis/")
            if not {name, name.partition("[")[0]} & IN_FAST_TIER:
                item.add_marker(pytest.mark.deep)
