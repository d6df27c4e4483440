"""Public functions of DataFrames name the column that is missing or of another type, and put aside a null cluster."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from broker.errors import UsageError
from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.frames.per_group import MEMBER_NEEDED, MEMBER_OPTIONAL
from spark_analysis.frames.views import BROKER_NEEDED, BROKER_OPTIONAL, PARTITION_NEEDED, TOTALS
from spark_analysis.questions import (
    availability,
    balance,
    durability,
    groups,
    movement,
    outages,
    storage,
    traffic,
    violations,
)
from spark_analysis.tables import schemas
from tests.spark_analysis.answer_columns import answers

MODULES: Final = (availability, balance, durability, groups, movement, outages, storage, traffic, violations)
TABLES: Final = {
    "partitions": schemas.CLUSTER_PARTITIONS,
    "brokers": schemas.CLUSTER_BROKERS,
    "members": schemas.MEMBERS,
    "offsets": schemas.OFFSETS,
    "batches": schemas.LOG_BATCHES,
    "records": schemas.LOG_RECORDS,
    "segments": schemas.LOG_SEGMENTS,
}
"""The table of each DataFrame that a function takes, by the name of its parameter."""
NEEDED: Final = {
    "partitions": ("cluster", *PARTITION_NEEDED),
    "brokers": ("cluster", *BROKER_NEEDED),
    "members": ("cluster", *MEMBER_NEEDED),
    "offsets": ("group", "topic", "partition", "current_offset", "log_end_offset"),
    "batches": ("topic", "partition", "record_count", "magic", "codec", "size_bytes"),
    "records": ("topic", "key"),
    "segments": ("topic", "partition", "base_offset", "source"),
}
READ_TOO: Final = {
    "brokers": BROKER_OPTIONAL,
    "members": MEMBER_OPTIONAL,
    "offsets": ("fault",),
    "batches": ("unpacked_bytes", "min_timestamp_ms", "max_timestamp_ms", "fault"),
    "records": ("is_control", "timestamp_ms", "value_size_bytes", "fault"),
    "segments": ("fault",),
}
MORE: Final = {
    "states": ("elr", "last_known_elr", "observers", "offline", "adding", "removing", "racks"),
    "sizes": ("size_bytes", "replica_size_bytes"),
    "min.insync.replicas": ("min_insync_replicas",),
    "racks": ("racks",),
}
READS: Final[dict[str, tuple[str, ...]]] = {
    "balance.measures": ("states", "sizes"),
    "balance.clusters": ("states", "sizes", "min.insync.replicas"),
    "violations.violations": ("states", "min.insync.replicas"),
    "violations.partitions": ("states", "sizes", "min.insync.replicas"),
    "outages.outages": ("states", "sizes", "min.insync.replicas"),
    "outages.partitions": ("states", "min.insync.replicas"),
    "movement.plans": ("states", "sizes"),
    "movement.moves": ("states", "sizes"),
    "movement.costs": ("states", "sizes"),
    "durability.copysets": (),
    "durability.durability": ("states",),
    "availability.availability": ("states", "min.insync.replicas"),
    "storage.held": ("sizes",),
    "groups.assignments": ("racks", "sizes"),
    "groups.balance": ("racks", "sizes"),
    "groups.moves": ("racks", "sizes"),
    "traffic.groups": ("racks", "sizes"),
    "traffic.clusters": ("racks", "sizes"),
}
"""What each function reads of partitions beside the columns by which a row is judged."""
GIVEN: Final = {"assignor": "range", "now_ms": 0}


def functions_of(module: ModuleType) -> dict[str, Callable[..., DataFrame]]:
    """The functions that a module defines, take DataFrames and return one, by their full names."""
    short = module.__name__.rpartition(".")[2]
    return {
        f"{short}.{name}": function
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and inspect.signature(function).return_annotation == "DataFrame"
    }


FUNCTIONS: Final = {name: function for module in MODULES for name, function in functions_of(module).items()}


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    """A DataFrame of each table without a row, and with a column `cluster`."""
    empty = {name: spark.createDataFrame([], spark_schema_of(table)) for name, table in TABLES.items()}
    return {name: frame.withColumn("cluster", F.lit("c")) for name, frame in empty.items()}


def taken(name: str) -> list[str]:
    """The names of the DataFrames that a function takes, those of brokers too."""
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    return [one.name for one in parameters if str(one.annotation).startswith("DataFrame")]


def read_of_partitions(name: str) -> tuple[str, ...]:
    """The optional columns of partitions that a function reads."""
    return ("leader", "isr", *(column for more in READS[name] for column in MORE[more]), "fault")


def read(name: str, what: str) -> list[str]:
    """The columns that a function reads of a DataFrame; brokers' totals only where it can be asked for them."""
    unread = TOTALS if what == "brokers" and "totals" not in inspect.signature(FUNCTIONS[name]).parameters else ()
    more = read_of_partitions(name) if what == "partitions" else READ_TOO[what]
    return [column for column in (*NEEDED[what], *more) if column not in ("cluster", *unread)]


def ask(name: str, frames: dict[str, DataFrame], *, totals: bool = False, **changed: DataFrame) -> DataFrame:
    """Ask a function about these DataFrames, some of them changed."""
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    more: dict[str, Any] = {key: value for key, value in (GIVEN | {"totals": totals}).items() if key in parameters}
    return FUNCTIONS[name](**{one: changed.get(one, frames[one]) for one in taken(name)}, **more)


def test_every_function_is_asked() -> None:
    assert sorted(FUNCTIONS) == sorted(answers())
    assert {one for name in FUNCTIONS for one in taken(name)} == set(TABLES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_needed_column_that_is_missing_is_named(frames: dict[str, DataFrame], name: str) -> None:
    for what in taken(name):
        for column in NEEDED[what]:
            with pytest.raises(UsageError) as caught:
                ask(name, frames, **{what: frames[what].drop(column)})
            has = ", ".join(one for one in frames[what].columns if one != column)
            assert str(caught.value) == f"the DataFrame of {what} has no column {column!r}; it has {has}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_path_in_the_place_of_a_dataframe_is_named(frames: dict[str, DataFrame], name: str) -> None:
    path: Any = "dumps/*.txt"
    for what in taken(name):
        with pytest.raises(UsageError) as caught:
            ask(name, frames, **{what: path})
        assert str(caught.value) == (f"a DataFrame of {what} is needed, such as spark.read gives; this is of type str")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_column_of_another_type_is_named(frames: dict[str, DataFrame], name: str) -> None:
    for what in taken(name):
        for column in read(name, what):
            wanted = frames[what].schema[column].dataType
            other = F.lit(7) if isinstance(wanted, StringType) else F.lit("seven")
            with pytest.raises(UsageError) as caught:
                ask(name, frames, totals=True, **{what: frames[what].withColumn(column, other)})
            found = "int" if isinstance(wanted, StringType) else "string"
            assert str(caught.value) == (
                f"column {column!r} of the DataFrame of {what} is {found}; {wanted.simpleString()} is needed"
            )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_cluster_that_is_a_map_is_named(frames: dict[str, DataFrame], name: str) -> None:
    for what in taken(name):
        with pytest.raises(UsageError) as caught:
            ask(name, frames, **{what: frames[what].withColumn("cluster", F.create_map(F.lit("a"), F.lit(1)))})
        assert str(caught.value) == (
            f"column 'cluster' of the DataFrame of {what} is map<string,int>; it cannot tell clusters apart"
        )
