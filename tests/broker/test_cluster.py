"""A view of a cluster is checked when it is made, never changes, and invents nothing."""

from __future__ import annotations

import re

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_the_example_of_the_docstring() -> None:
    built = view(table(replicas=[[1, 2], [2, 1]]))
    assert built.broker_ids.tolist() == [1, 2]
    assert (built.partitions.count, built.partitions.replica_count) == (2, 4)


def test_columns_become_contiguous_int32() -> None:
    partitions = table(replicas=np.asfortranarray([[1, 2], [2, 1]]), isr=[[1], [2]], size_bytes=[2**40, -1])
    assert (partitions.replicas.dtype, partitions.replicas.flags.c_contiguous) == (np.dtype(np.int32), True)
    assert partitions.isr is not None
    assert partitions.size_bytes is not None
    assert partitions.size_bytes.tolist() == [2**40, -1]


def test_what_is_not_said_is_none() -> None:
    partitions = table()
    said = {"topic_index", "partition_ids", "replicas"}
    assert {field.name for field in attrs.fields(PartitionTable) if getattr(partitions, field.name) is not None} == said


def test_pads_are_no_replicas() -> None:
    assert table().replica_count == 3


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


def test_a_leader_is_a_broker_and_no_leader_is_not() -> None:
    assert view(table(leader=[7, -1])).broker_ids.tolist() == [1, 2, 7]
    assert view(table(leader=[-2, -1])).broker_ids.tolist() == [1, 2]


@pytest.mark.parametrize("greatest", [2**20 - 1, 2**20, 2**31 - 1])
def test_brokers_of_any_id_are_found_and_pads_are_not(greatest: int) -> None:
    built = view(table(replicas=[[greatest, -1], [3, -1]], leader=[-1, -2]))
    assert built.broker_ids.tolist() == [3, greatest]


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


def test_racks_come_sorted_once_each() -> None:
    listed = [BrokerView(id=BrokerId(one), rack=rack) for one, rack in enumerate(["b", None, "a", "b"])]
    assert view(PartitionTable.empty(), brokers=listed).racks == ("a", "b")


def test_racks_are_given_without_changing_the_first_view() -> None:
    first = view(table())
    second = first.with_racks([(BrokerId(2), "r"), (BrokerId(9), "s")])
    assert [(one.id, one.rack) for one in second.brokers] == [(1, None), (2, "r"), (9, "s")]
    assert [(one.id, one.rack) for one in first.brokers] == [(1, None), (2, None)]
    assert second.partitions is first.partitions


def test_totals_move_with_their_brokers_when_racks_add_one() -> None:
    totals = BrokerTotals(replica_count=[10, 20], size_bytes=None)
    first = ClusterView(name="d", source="s", format="f", brokers=brokers(1, 3), totals=totals)
    second = first.with_racks([(BrokerId(2), "r")])
    assert second.totals is not None
    assert second.totals.replica_count is not None
    assert second.totals.replica_count.tolist() == [10, 0, 20]
    assert second.totals.size_bytes is None


def test_a_view_cannot_be_changed() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        view(table()).name = "other"  # type: ignore[misc] # wrong on purpose.


def test_strings_sort_as_java_sorts_them_by_utf_16_unit() -> None:
    # U+1F600 is two units from D83D on, which stand before U+FF5E; by code point it stands after.
    assert sorted(["\uff5e", "\U0001f600"], key=java_string_key) == ["\U0001f600", "\uff5e"]


@given(st.lists(st.text(alphabet=st.characters(max_codepoint=0xD7FF))))
def test_below_the_surrogates_java_sorts_as_python_does(texts: list[str]) -> None:
    assert sorted(texts, key=java_string_key) == sorted(texts)


@pytest.mark.parametrize("largest", [0, 7, (1 << 20) - 1, 1 << 20, 2**31 - 1])
def test_brokers_of_any_id_are_seen_in_every_column(largest: int) -> None:
    table = PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[largest, -1]], leader=[-2], isr=[[-1]])
    assert table.broker_ids().tolist() == [largest]


def test_a_column_that_never_says_names_no_broker() -> None:
    table = PartitionTable(topic_index=[0, 0], partition_ids=[0, 1], replicas=[[-1], [-1]], leader=[-2, -2])
    assert table.broker_ids().tolist() == []
