"""The measures of many clusters are those of each alone and of an oracle; ranks are in the order documented."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.entropy import SplitMix64
from broker.ids import BrokerId
from placement.balance.measures import TOLERANCE
from spark_analysis.tables import schemas
from spark_analysis.tables.cluster_rows import ranked
from spark_analysis.tables.view_rows import describe_view
from tests.spark_analysis.test_kernels import tables_of

CLUSTER_COUNT = 12


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


def measured_rows(views: list[ClusterView]) -> list[dict[str, Any]]:
    """The rows that a task writes of these clusters."""
    tables = tables_of([describe_view(view) for view in views])
    return tables[schemas.MEASURES].to_pylist() if schemas.MEASURES in tables else []


def facts(views: list[ClusterView], **columns: list[Any]) -> pa.Table:
    """The facts of these clusters, some of their columns replaced."""
    table = tables_of([describe_view(view) for view in views])[schemas.FACTS]
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))
    return table


def test_clusters_that_are_measured_together_have_the_measures_of_each_alone() -> None:
    views = [random_view(seed) for seed in range(CLUSTER_COUNT)]
    found = [{**row, "cluster_id": 0} for row in measured_rows(views)]
    assert found == [row for view in views for row in measured_rows([view])]
    assert {row["quantity"] for row in found} == {"replicas", "leaders", "bytes"}


@pytest.mark.parametrize(
    "columns",
    [
        {"leaderless_count": [0, 1, None], "under_min_isr_count": [9, 1, 9], "fewer_racks_count": [9, 0, 9]},
        {"leaderless_count": [0, 0, None], "under_min_isr_count": [1, 2, 1], "fewer_racks_count": [9, 0, 9]},
        {"leaderless_count": [0, 0, 0], "under_min_isr_count": [1, 1, 1], "fewer_racks_count": [0, 3, None]},
    ],
)
def test_ranks_compare_leaderless_then_under_min_isr_then_racks(columns: dict[str, list[int | None]]) -> None:
    assert ranked(facts([random_view(1)] * 3, **columns))["rank"].to_pylist() == [2, 1, 3]


def test_equals_are_ranked_by_the_shares_to_move_and_then_by_number_and_placer() -> None:
    views = [random_view(1)] * 4
    assert ranked(facts(views, uneven=[0.5, 0.25, 0.75, 0.5]))["rank"].to_pylist() == [2, 4, 1, 3]
    again = facts(views, uneven=[0.5] * 4, cluster_id=[7, 3, 7, 3], placer=["b", "b", "a", "a"])
    rows = ranked(again).select(["cluster_id", "placer", "rank"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(3, "a", 1), (3, "b", 2), (7, "a", 3), (7, "b", 4)]


def test_the_shares_to_move_are_those_of_the_measures() -> None:
    views = [random_view(seed) for seed in range(CLUSTER_COUNT)]
    expected = [0.0] * CLUSTER_COUNT
    for row in measured_rows(views):
        if row["scope"] == "broker" and row["quantity"] != "bytes" and row["moves_share"] > TOLERANCE:
            expected[row["cluster_id"]] += row["moves_share"]
    assert facts(views)["uneven"].to_pylist() == expected
    assert max(expected) > 0
