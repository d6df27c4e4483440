"""What Spark's plan of a question says: which columns are shuffled, how often, and under which name kernels run."""

from __future__ import annotations

import contextlib
import io
import random
import re
import sys
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_analysis.data_sources.spark_types import spark_schema_of
from spark_analysis.frames.answering import Work, answer_table
from spark_analysis.frames.per_cluster import NULL_LIST, with_null_lists, without_null_lists
from spark_analysis.frames.views import PARTITION_NEEDED, PARTITION_OPTIONAL
from spark_analysis.questions import balance
from spark_analysis.tables.columns import Table
from spark_analysis.tables.schemas import CLUSTER_PARTITIONS
from tests.spark_analysis.answer_columns import OF_CLUSTERS
from tests.spark_analysis.frames.test_columns import FUNCTIONS, NEEDED, read_of_partitions

LISTS: Final = {column.name for column in CLUSTER_PARTITIONS.columns if column.type.endswith("s")}


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.fixture
def listed(spark: SparkSession) -> DataFrame:
    """Twenty clusters of two partitions each."""
    return spark.range(40).selectExpr(
        "cast(id % 20 as string) cluster", "'t' topic", "cast(id div 20 as int) partition", "array(1, 2) replicas"
    )


def test_rows_already_spread_by_their_keys_are_not_shuffled_again(listed: DataFrame) -> None:
    spread = listed.repartition(7, "cluster")
    asked = balance.measures(spread.where("partition >= 0").withColumn("leader", F.lit(1)))
    assert len(re.findall(r"Exchange ", plan_of(asked))) == 1
    assert asked.rdd.getNumPartitions() == 7
    assert sorted(map(str, asked.collect())) == sorted(
        map(str, balance.measures(listed.withColumn("leader", F.lit(1))).collect())
    )
    both = listed.withColumn("source", F.lit("s")).repartition(7, "cluster")
    assert len(re.findall(r"Exchange ", plan_of(balance.measures(both)))) == 1


SPREAD_OTHERWISE: Final[dict[str, Callable[[DataFrame], DataFrame]]] = {
    "by nothing": lambda rows: rows.repartition(7),
    "by another column": lambda rows: rows.repartition(7, "partition"),
    "by an expression": lambda rows: rows.repartition(7, F.upper("cluster")),
    "then other keys": lambda rows: rows.repartition(7, "cluster").withColumn("cluster", F.lit("one")),
    "then a limit": lambda rows: rows.repartition(7, "cluster").limit(30),
    "then more rows": lambda rows: rows.repartition(7, "cluster").unionByName(rows),
}


@pytest.mark.parametrize("spread", SPREAD_OTHERWISE.values(), ids=SPREAD_OTHERWISE)
def test_rows_spread_otherwise_are_shuffled(listed: DataFrame, spread: Callable[[DataFrame], DataFrame]) -> None:
    asked = balance.measures(spread(listed), by=["cluster"])
    assert asked.rdd.getNumPartitions() == 1  # As spark.sql.shuffle.partitions says.


# --- null lists -------------------------------------------------------------------------------------------------------


def test_no_null_list_goes_to_python_and_each_is_null_again_there(spark: SparkSession) -> None:
    """With Spark's own settings a question about 60 clusters of the demo took five times the CPU otherwise."""
    rows = [(1, [1], ["a", None]), (2, None, []), (3, [], None), (4, None, None), (5, [None], ["b"])]
    given = spark.createDataFrame(rows, "id long, isr array<int>, racks array<string>")
    sent = without_null_lists(given)
    assert sent.where("isr is null or racks is null").count() == 0
    found = [with_null_lists(batch).to_pylist() for batch in sent.toArrow().to_batches()]
    assert [row for batch in found for row in batch] == given.toArrow().to_pylist()


@pytest.mark.parametrize("name", OF_CLUSTERS)
def test_every_question_tells_null_lists_apart(spark: SparkSession, name: str) -> None:
    rows = spark.createDataFrame([], spark_schema_of(CLUSTER_PARTITIONS))
    asked = FUNCTIONS[name](rows, by=["cluster"])
    lists = {"replicas", *(each for each in read_of_partitions(name) if each in LISTS)}
    sent = asked._jdf.queryExecution().analyzed().child().schema().fieldNames()
    assert {str(column).removeprefix(NULL_LIST) for column in sent if column.startswith(NULL_LIST)} == lists


# --- columns ----------------------------------------------------------------------------------------------------------


def shuffled(frame: DataFrame) -> list[set[str]]:
    """The columns that each exchange of a plan sends."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        frame.explain("formatted")
    found = re.findall(r"\) Exchange\nInput \[\d+\]: \[(.*)\]\n", printed.getvalue())
    return [set(re.findall(r"(\w+)#\d+", columns)) for columns in found]


@pytest.mark.parametrize("name", OF_CLUSTERS)
def test_only_the_columns_that_a_question_reads_are_shuffled_and_its_kernel_has_a_name(
    spark: SparkSession, name: str
) -> None:
    rows = spark.createDataFrame([], spark_schema_of(CLUSTER_PARTITIONS)).withColumn("mine", F.lit(1))
    asked = FUNCTIONS[name](rows, by=["cluster"])
    assert shuffled(asked) == [{"cluster", *NEEDED["partitions"], *read_of_partitions(name)}]
    assert re.search(rf"MapInArrow {OF_CLUSTERS[name].name}\(", plan_of(asked)), plan_of(asked)


@pytest.mark.parametrize("name", OF_CLUSTERS)
def test_an_answer_depends_on_no_column_that_is_not_shuffled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer on clusters with all columns is that on the columns that are read."""
    given: list[Any] = []

    def capture(_: Any, table: Table, kernel: Any = None, *, many: Any = None, reads: Any = PARTITION_OPTIONAL) -> Any:
        given.extend((table, kernel, many, (*reads, "fault")))

    monkeypatch.setattr(sys.modules[FUNCTIONS[name].__module__], "per_cluster", capture)
    more: dict[str, Any] = {"durability.durability": {"assume": {"years": 1_000}},
                            "availability.availability": {"assume": {"draws": 64}}}  # fmt: skip
    FUNCTIONS[name](None, **more.get(name, {}))
    table, kernel, many, reads = given
    rows = every_column(40)
    unread = [column for column in PARTITION_OPTIONAL if column not in reads]
    work = Work(("cluster",), ("cluster",), answer_table(table, ("cluster",)), kernel, many)
    one, other = (
        [row for batch in work.answers(some.to_batches()) for row in batch.to_pylist()]
        for some in (rows, rows.drop_columns(unread))
    )
    assert sorted(map(str, one)) == sorted(map(str, other))
    assert sum(row["fault"] is None for row in one) > 20


def every_column(count: int) -> pa.Table:
    """Clusters that say most columns, whole columns each."""
    drawn, rows = random.Random(7), []
    for cluster in range(count):
        ids = list(range(drawn.randint(3, 8)))
        racks = {broker: f"r{drawn.randrange(3)}" for broker in ids}
        said = {name for name in PARTITION_OPTIONAL if drawn.random() < 0.7}
        down = drawn.sample(ids, drawn.choice((0, 0, 1)))
        for number in range(drawn.randint(2, 18)):
            replicas = drawn.sample(ids, 1 + number % 3)
            isr = drawn.sample(replicas, drawn.randint(0, len(replicas)))
            others = [broker for broker in replicas if broker not in isr]
            row = {
                "leader": drawn.choice(isr) if isr else -1, "isr": isr, "elr": others[:1], "last_known_elr": others[1:],
                "observers": replicas[2:], "offline": [broker for broker in replicas if broker in down],
                "adding": replicas[1:2] if number == 4 else [], "removing": replicas[:1] if number == 4 else [],
                "racks": [racks[broker] for broker in replicas], "min_insync_replicas": 1 + number % 2,
                "size_bytes": 100 * number, "replica_size_bytes": [7 * number + broker for broker in replicas],
            }  # fmt: skip
            of = {"cluster": f"c{cluster}", "topic": f"t{number % 3}", "partition": number, "replicas": replicas}
            rows.append(of | {name: value for name, value in row.items() if name in said})
    schema = CLUSTER_PARTITIONS.arrow_schema()
    names = ("cluster", *PARTITION_NEEDED, *PARTITION_OPTIONAL)
    return pa.Table.from_pylist(rows, schema=pa.schema([schema.field(name) for name in names]))
