"""What a fault says of bad rows, and which odd rows are none (test_matrix.py: each fault in every question)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_analysis.questions import (
    availability,
    balance,
    durability,
    movement,
    outages,
    storage,
    traffic,
    violations,
)
from tests.spark_analysis.frames.test_balance import found

Ask: TypeAlias = Callable[..., DataFrame]
COLUMNS: Final = (
    "cluster string, topic string, partition int, leader int, replicas array<int>, isr array<int>, racks array<string>"
)
MEMBERS: Final = "cluster string, group string, member_id string, topics array<string>, rack string, held array<string>"
ASKED: Final[dict[str, Ask]] = {
    "measures": balance.measures,
    "clusters": balance.clusters,
    "violations": violations.violations,
    "partitions": violations.partitions,
    "outages": outages.outages,
    "hit by a broker": lambda *rows: outages.partitions(*rows, scope="broker"),
    "plans": movement.plans,
    "moves": movement.moves,
    "costs": movement.costs,
    "copysets": durability.copysets,
    "durability": lambda rows, *more: durability.durability(rows, *more, assume={"years": 1_000}),
    "held": storage.held,
    "availability": lambda rows, *more: availability.availability(rows, *more, assume={"draws": 64}),
}


def row(cluster: str | None = "c", **other: Any) -> tuple[Any, ...]:
    """A row of partitions that can be used, but for what is given."""
    values = {"cluster": cluster, "topic": "t", "partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1, 2],
              "racks": ["a", "b"], **other}  # fmt: skip
    return tuple(values[name.split()[0]] for name in COLUMNS.split(", "))


GOOD: Final = [row("good", partition=0), row("good", partition=1, leader=2, replicas=[2, 1], racks=["b", "a"])]
NULL: Final = "a list in column {!r} has a null in it"
BAD: Final = {
    "null replicas": ([row(replicas=None)], "1 without replicas"),
    "null topic": ([row(topic=None), row(partition=1, topic=None)],
                   "2 rows cannot be used; one of them: 2 without topic"),
    "null partition": ([row(partition=None)], "1 without partition"),
    "null in replicas": ([row(replicas=[1, None])], NULL.format("replicas")),
    "null in isr": ([row(isr=[1, None]), row(partition=1)], NULL.format("isr")),
    "negative replica": ([row(replicas=[1, -5])], "a list in column 'replicas' has the value -5; allowed is 0 or more"),
    "racks for some": ([row(racks=["a"])], "a list in column 'racks' has another length than the partition's replicas"),
    "leader below -1": ([row(leader=-7)],
                        "column 'leader' has the value -7; allowed are -1 for none, and ids of brokers"),
    "negative partition": ([row(partition=-4)],
                           "topic 't': partition is -4; allowed are whole numbers from 0 to 10000000"),
    "huge partition": ([row(partition=10_000_001)],
                       "topic 't': partition is 10000001; allowed are whole numbers from 0 to 10000000"),
    "leader outside the replicas": ([row(leader=99)], "partition 0 of topic 't': Leader 99 is no replica (1,2)"),
    "isr outside the replicas": ([row(isr=[1, 77])],
                                 "partition 0 of topic 't': isr names broker 77, which is no replica (1,2)"),
    "listed twice": ([row(), row()], "partition 0 of topic 't' is listed twice in cluster 'c'; if these are several "
                     "clusters or moments, give the columns that tell them apart as by"),
}  # fmt: skip
ODD: Final = {
    "no leader said": [row(leader=None), row(partition=1)],
    "isr not said": [row(isr=None), row(isr=None, partition=1)],
    "no replica": [row(replicas=[], isr=[], racks=[], leader=None)],
    "no replica, no broker": [row(replicas=[], isr=[], racks=[], leader=-1)],
    "a replica twice": [row(replicas=[1, 1], racks=["a", "a"], isr=[1])],
    "the largest numbers": [row(partition=10_000_000, replicas=[2**31 - 1, 1], leader=2**31 - 1, isr=[1])],
    "racks not known": [row(racks=["", None])],
    "names that are empty": [row("", topic="")],
}


@pytest.fixture(scope="module")
def bad(spark: SparkSession) -> DataFrame:
    """A good cluster, and a bad one of each kind."""
    rows = [(kind, *one[1:]) for kind, (some, _) in BAD.items() for one in some]
    return spark.createDataFrame([*GOOD, *rows], COLUMNS).cache()


@pytest.fixture(scope="module")
def odd(spark: SparkSession) -> DataFrame:
    """A cluster of each odd kind."""
    rows = [(kind if one[0] else one[0], *one[1:]) for kind, some in ODD.items() for one in some]
    return spark.createDataFrame(rows, COLUMNS).cache()


@pytest.fixture(scope="module")
def members(spark: SparkSession) -> DataFrame:
    """A group in every cluster."""
    return spark.createDataFrame([(name, "g", "m", ["t"], "a", []) for name in ("good", *BAD, *ODD)], MEMBERS).cache()


def faults_of(rows: list[dict[str, Any]]) -> dict[str, tuple[str, int]]:
    return {row["cluster"]: (row["fault"], row["rejected_count"]) for row in rows if row["fault"] is not None}


def test_rows_in_are_rows_analysed_and_rows_rejected(spark: SparkSession, bad: DataFrame, odd: DataFrame) -> None:
    mixed = [row("mixed"), row("mixed", partition=1, topic=None), row("mixed", partition=2, replicas=None)]
    frame = bad.unionByName(odd).unionByName(spark.createDataFrame(mixed, COLUMNS))
    rows = found(balance.clusters(frame))
    analysed = sum(row["partition_count"] for row in rows if row["fault"] is None)
    assert analysed + sum(row["rejected_count"] for row in rows if row["fault"] is not None) == frame.count()
    expected = {kind: (fault.replace("'c'", repr(kind)), len(some)) for kind, (some, fault) in BAD.items()}
    assert faults_of(rows) == expected | {
        "mixed": ("2 rows cannot be used; one of them: 2 without topic or replicas", 2)
    }
    every = found(violations.partitions(frame))
    assert sum(row["fault"] is None for row in every) == analysed


@pytest.mark.parametrize("name", ASKED)
def test_odd_rows_are_no_faults_and_end_no_job(odd: DataFrame, name: str) -> None:
    assert faults_of(found(ASKED[name](odd))) == {}


def test_traffic_of_a_cluster_without_racks_is_not_known_instead_of_none(bad: DataFrame, members: DataFrame) -> None:
    (one,) = traffic.clusters(members.where("cluster = 'good'"), bad.where("cluster = 'good'").drop("racks")).collect()
    fault = "no replica of cluster 'good' is in a known rack, so that nothing is known of zones"
    assert (one["fault"], one["rejected_count"], one["produce_count"]) == (fault, 2, None)
