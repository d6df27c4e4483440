"""The measures in SQL are those of placement/balance/measures.py; ranks are in the order documented."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.entropy import SplitMix64
from broker.ids import BrokerId
from placement.balance import measures as measured
from placement.balance.measures import measures
from spark_analysis import balance
from spark_analysis.tables import schemas
from spark_analysis.tables.view_rows import describe_view
from spark_analysis.tables.write import spark_schema
from tests.spark_analysis.test_tasks import tables_of

TOLERANCE = 1e-12
CLUSTER_COUNT = 40


def random_view(seed: int) -> ClusterView:
    """A small cluster: some brokers hold nothing, have no rack or are fenced; sizes and leaders are known or not."""
    source = SplitMix64(seed)
    broker_count = 1 + source.next_int_bound(7)
    factor = 1 + source.next_int_bound(min(3, broker_count))
    racks = [None, "b", "a", "ü"][: 1 + source.next_int_bound(4)]
    brokers = [
        BrokerView(
            id=BrokerId(3 * number),
            rack=racks[source.next_int_bound(len(racks))],
            fenced=source.next_int_bound(5) == 0,
        )
        for number in range(broker_count)
    ]
    topic_count = 1 + source.next_int_bound(4)
    partition_count = source.next_int_bound(30)
    rows = []
    for _ in range(partition_count):
        ids = [broker.id for broker in brokers]
        source.shuffle(ids)  # type: ignore[arg-type]  # Broker ids are whole numbers.
        rows.append(ids[:factor])
    replicas = np.array(rows, dtype=np.int32).reshape(partition_count, factor)
    huge = 10 ** source.next_int_bound(14)
    sizes = [source.next_int_bound(1000) * huge for _ in range(partition_count)]
    return ClusterView(
        name=f"c{seed}",
        source="test",
        format="test",
        brokers=tuple(brokers),
        topics=tuple(TopicView(f"t{9 - number}") for number in range(topic_count)),
        partitions=PartitionTable(
            topic_index=[source.next_int_bound(topic_count) for _ in range(partition_count)],
            partition_ids=np.arange(partition_count),
            replicas=replicas,
            leader=replicas[:, 0] if source.next_int_bound(4) else None,
            size_bytes=sizes if source.next_int_bound(2) else None,
        ),
    )


def sums(spark: SparkSession, views: list[ClusterView]) -> DataFrame:
    table = tables_of([describe_view(view) for view in views])[schemas.SUMS]
    return spark.createDataFrame(table, spark_schema(schemas.SUMS))


def facts(spark: SparkSession, views: list[ClusterView], **columns: list[Any]) -> DataFrame:
    table = tables_of([describe_view(view) for view in views])[schemas.FACTS]
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))
    return spark.createDataFrame(table, spark_schema(schemas.FACTS))


def close(found: float, expected: float) -> bool:
    return math.isclose(found, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def test_the_measures_are_the_oracles_on_random_clusters(spark: SparkSession) -> None:
    views = [random_view(seed) for seed in range(CLUSTER_COUNT)]
    found = {
        (row["cluster_id"], row["scope"], row["quantity"]): row.asDict()
        for row in balance.measures(sums(spark, views)).collect()
    }
    expected = {
        (number, measure.scope, measure.quantity): measure.distribution
        for number, view in enumerate(views)
        for measure in measures(view)
    }
    assert sorted(found) == sorted(expected)
    assert {quantity for _, _, quantity in found} == {"replicas", "leaders", "bytes"}
    for key, distribution in expected.items():
        for name in schemas.MEASURES.column_names[4:]:
            value, oracle = found[key][name], getattr(distribution, name)
            same = close(value, oracle) if isinstance(oracle, float) and value is not None else value == oracle
            assert same, (key, name, value, oracle)


def test_the_measures_of_shares_that_sql_could_get_wrong(spark: SparkSession) -> None:
    """Nearly equal shares of 10^15 bytes: a naive sum of squares would lose every digit."""
    brokers = tuple(BrokerView(id=BrokerId(number)) for number in range(3))
    view = ClusterView(
        name="c",
        source="test",
        format="test",
        brokers=brokers,
        topics=(TopicView("t"),),
        partitions=PartitionTable(
            topic_index=[0, 0, 0],
            partition_ids=[0, 1, 2],
            replicas=[[0], [1], [2]],
            size_bytes=[10**15, 10**15 + 1, 10**15 + 3],
        ),
    )
    row = balance.measures(sums(spark, [view])).where("scope = 'broker' and quantity = 'bytes'").collect()[0]
    assert close(row["stdev"], math.sqrt(14) / 3)
    assert row["moves"] == 1
    assert row["max_group"] == "2"


def test_measures_and_clusters_have_the_columns_of_the_schema(spark: SparkSession) -> None:
    views = [random_view(1)]
    assert tuple(balance.measures(sums(spark, views)).columns) == schemas.MEASURES.column_names
    assert tuple(balance.clusters(facts(spark, views)).columns) == schemas.CLUSTERS.column_names


def test_a_cluster_without_racks_and_topics_has_no_such_measure(spark: SparkSession) -> None:
    view = ClusterView(name="c", source="test", format="test", brokers=(BrokerView(id=BrokerId(1)),))
    scopes = {row["scope"] for row in balance.measures(sums(spark, [view])).collect()}
    assert scopes == {"broker"}


@pytest.mark.parametrize(
    "columns",
    [
        {"leaderless_count": [0, 1, None], "under_min_isr_count": [9, 1, 9], "fewer_racks_count": [9, 0, 9]},
        {"leaderless_count": [0, 0, None], "under_min_isr_count": [1, 2, 1], "fewer_racks_count": [9, 0, 9]},
        {"leaderless_count": [0, 0, 0], "under_min_isr_count": [1, 1, 1], "fewer_racks_count": [0, 3, None]},
    ],
)
def test_ranks_compare_leaderless_then_under_min_isr_then_racks(
    spark: SparkSession, columns: dict[str, list[int | None]]
) -> None:
    views = [random_view(1)] * 3
    rows = balance.clusters(facts(spark, views, **columns)).collect()
    assert sorted((row["rank"], row["cluster_id"]) for row in rows) == [(1, 1), (2, 0), (3, 2)]


def test_equals_are_ranked_by_the_shares_to_move_and_then_by_number(spark: SparkSession) -> None:
    views = [random_view(1)] * 4
    rows = balance.clusters(facts(spark, views, uneven=[0.5, 0.25, 0.75, 0.5])).collect()
    assert [row["cluster_id"] for row in sorted(rows, key=lambda row: row["rank"])] == [2, 0, 3, 1]


def test_the_shares_to_move_are_those_of_the_measures(spark: SparkSession) -> None:
    views = [random_view(seed) for seed in range(CLUSTER_COUNT)]
    found = [row["uneven"] for row in facts(spark, views).orderBy("cluster_id").collect()]
    expected = [
        sum(
            share
            for measure in measures(view)
            if measure.scope == "broker"
            and measure.quantity != "bytes"
            and (share := measure.distribution.moves_share or 0.0) > measured.TOLERANCE
        )
        for view in views
    ]
    assert found == expected
    assert max(found) > 0


def test_measures_are_made_row_by_row(spark: SparkSession) -> None:
    """No aggregate, no shuffle, no sort: executors have summed already."""
    plan = balance.measures(sums(spark, [random_view(1)]))._jdf.queryExecution().executedPlan().toString()
    assert [word for word in ("Aggregate", "Exchange", "Sort", "Window") if word in plan] == []
