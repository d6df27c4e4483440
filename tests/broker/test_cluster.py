"""A view of a cluster is checked when it is made, never changes, and invents nothing."""

from __future__ import annotations

import re

import pytest

from broker.cluster import MATRIX_COLUMNS, BrokerTotals, BrokerView, ClusterView, PartitionTable, TopicView
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.java.string_hash import java_string_key


def brokers(*ids: int) -> tuple[BrokerView, ...]:
    return tuple(BrokerView(id=BrokerId(one)) for one in ids)


def table(**columns: object) -> PartitionTable:
    base: dict[str, object] = {"topic_index": [0, 0], "partition_ids": [0, 1], "replicas": [[1, 2], [2, -1]]}
    return PartitionTable(**(base | columns))


def view(partitions: PartitionTable, **rest: object) -> ClusterView:
    arguments: dict[str, object] = {
        "name": "demo",
        "source": "inline",
        "format": "example",
        "topics": (TopicView("t"),),
    }
    return ClusterView.build(partitions=partitions, **(arguments | rest))  # type: ignore[arg-type] # by field name.


def test_an_empty_table_has_nothing() -> None:
    empty = PartitionTable.empty()
    assert (empty.count, empty.replica_count, empty.broker_ids().tolist()) == (0, 0, [])
    assert view(empty, topics=()).broker_ids.tolist() == []


@pytest.mark.parametrize("column", ["partition_ids", "leader", "size_bytes"])
def test_a_column_of_the_wrong_length_is_refused(column: str) -> None:
    message = f"column {column} has shape (3,); 2 partitions need (2,)"
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        table(**{column: [1, 2, 3]})


@pytest.mark.parametrize("column", MATRIX_COLUMNS)
def test_a_matrix_of_the_wrong_shape_is_refused(column: str) -> None:
    with pytest.raises(UsageError, match=rf"^column {column} has shape \(2,\); 2 partitions need \(2, any width\)$"):
        table(**{column: [1, 2]})
    with pytest.raises(UsageError, match=rf"^column {column} has shape \(3, 1\); 2 partitions need \(2, any width\)$"):
        table(**{column: [[1], [2], [3]]})


@pytest.mark.parametrize("column", [name for name in MATRIX_COLUMNS if name != "replicas"])
def test_brokers_are_found_in_every_column(column: str) -> None:
    assert view(table(**{column: [[9], [-1]]})).broker_ids.tolist() == [1, 2, 9]


def test_listed_brokers_keep_what_is_known_of_them() -> None:
    built = view(table(), brokers=[BrokerView(id=BrokerId(2), rack="b", fenced=True), BrokerView(id=BrokerId(5))])
    assert [(one.id, one.rack, one.fenced) for one in built.brokers] == [
        (1, None, False),
        (2, "b", True),
        (5, None, False),
    ]


@pytest.mark.parametrize("ids", [(2, 1), (1, 1)])
def test_brokers_out_of_order_or_twice_are_refused(ids: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match=r"^brokers of demo are not in ascending order of id, once each$"):
        ClusterView(name="demo", source="s", format="f", brokers=brokers(*ids))


def test_a_replica_on_an_unknown_broker_is_refused() -> None:
    message = "partitions of demo stand on brokers [2] that the view does not list"
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        ClusterView(
            name="demo", source="s", format="f", brokers=brokers(1), topics=(TopicView("t"),), partitions=table()
        )


@pytest.mark.parametrize("topic_index", [[0, 1], [-1, 0]])
def test_a_partition_of_an_unknown_topic_is_refused(topic_index: list[int]) -> None:
    with pytest.raises(UsageError, match=r"^a partition of demo points at a topic outside 0\.\.0$"):
        view(table(topic_index=topic_index))


def test_racks_are_given_without_changing_the_first_view() -> None:
    first = view(table())
    second = first.with_racks([(BrokerId(2), "r"), (BrokerId(9), "s")])
    assert [(one.id, one.rack) for one in second.brokers] == [(1, None), (2, "r")]
    assert second.unlisted == (9,)
    third = second.with_empty({BrokerId(9): None, BrokerId(2): "other", BrokerId(10): "t"})
    assert [(one.id, one.rack) for one in third.brokers] == [(1, None), (2, "r"), (9, "s"), (10, "t")]
    assert [(one.id, one.rack) for one in first.brokers] == [(1, None), (2, None)]
    assert second.partitions is first.partitions


def test_totals_move_with_their_brokers_when_one_joins() -> None:
    totals = BrokerTotals(replica_count=[10, 20], size_bytes=None)
    first = ClusterView(name="d", source="s", format="f", brokers=brokers(1, 3), totals=totals)
    second = first.with_empty({BrokerId(2): "r"})
    assert second.totals is not None
    assert second.totals.replica_count is not None
    assert second.totals.replica_count.tolist() == [10, 0, 20]
    assert second.totals.size_bytes is None


def test_strings_sort_as_java_sorts_them_by_utf_16_unit() -> None:
    # U+1F600 is two units from D83D on, which stand before U+FF5E; by code point it stands after.
    assert sorted(["\uff5e", "\U0001f600"], key=java_string_key) == ["\U0001f600", "\uff5e"]


@pytest.mark.parametrize("largest", [0, 7, (1 << 20) - 1, 1 << 20, 2**31 - 1])
def test_brokers_of_any_id_are_seen_in_every_column(largest: int) -> None:
    table = PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[largest, -1]], leader=[-2], isr=[[-1]])
    assert table.broker_ids().tolist() == [largest]
