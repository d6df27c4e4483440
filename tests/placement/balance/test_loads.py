"""What brokers, racks and topics hold is counted from what the view says, and only from that."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from broker.broker_rows import broker_rows
from broker.cluster import BrokerTotals, BrokerView, ClusterView, PartitionTable, TopicView
from broker.errors import UsageError
from broker.ids import BrokerId
from placement.balance.loads import GroupLoads, loads
from placement.balance.measures import measures
from placement.strategies import views

RACKS = {1: "a", 2: "b", 3: "a", 4: None}


def view(**columns: object) -> ClusterView:
    return ClusterView(
        name="demo",
        source="inline",
        format="example",
        brokers=tuple(BrokerView(id=BrokerId(number), rack=rack) for number, rack in RACKS.items()),
        topics=(TopicView("s"), TopicView("t")),
        partitions=PartitionTable(
            topic_index=[0, 0, 1], partition_ids=[0, 1, 0], replicas=[[1, 2], [2, 1], [2, 3]], **columns
        ),
    )


def of_group(group: GroupLoads | None, quantity: str) -> dict[str | None, int]:
    assert group is not None
    shares = getattr(group, quantity)
    return dict(zip(group.names, shares.tolist(), strict=True))


def test_unknown_leaders_and_sizes_are_none_and_not_zero() -> None:
    found = loads(view())
    assert found.brokers.leader_count is None
    assert found.brokers.size_bytes is None
    assert loads(view(size_bytes=[5, -1, 5])).brokers.size_bytes is None
    assert loads(view(leader=[1, -2, 2])).brokers.leader_count is None


def test_a_leaderless_partition_is_led_by_nobody() -> None:
    found = loads(view(leader=[2, -1, 2]), assume_preferred=True)
    assert of_group(found.brokers, "leader_count") == {"1": 0, "2": 2, "3": 0, "4": 0}


def test_bytes_above_what_a_float_counts_stay_exact() -> None:
    found = loads(view(size_bytes=[2**53 + 1, 0, 2**60]))
    assert of_group(found.brokers, "size_bytes") == {"1": 2**53 + 1, "2": 2**60 + 2**53 + 1, "3": 2**60, "4": 0}
    assert of_group(found.topics, "size_bytes") == {"s": 2 * (2**53 + 1), "t": 2**61}


def test_brokers_without_a_rack_are_gathered_under_none() -> None:
    found = loads(view())
    assert of_group(found.racks, "replica_count") == {"a": 3, "b": 3, None: 0}


def test_brokers_without_a_rack_are_no_rack_in_the_measures() -> None:
    (over_racks,) = [measure for measure in measures(view()) if measure.scope == "rack"]
    assert over_racks.distribution.group_count == 2


def test_the_first_of_equal_brokers_is_the_one_of_the_lowest_number() -> None:
    two = ClusterView(
        name="demo",
        source="inline",
        format="example",
        brokers=(BrokerView(id=BrokerId(9)), BrokerView(id=BrokerId(10))),
        topics=(TopicView("z"), TopicView("a")),
        partitions=PartitionTable(topic_index=[0, 1], partition_ids=[0, 0], replicas=[[9], [10]]),
    )
    firsts = {measure.scope: measure.distribution.max_group for measure in measures(two)}
    assert firsts == {"broker": "9", "topic": "a"}


def test_totals_speak_where_partitions_are_not_all_listed() -> None:
    partial = ClusterView(
        name="demo",
        source="inline",
        format="example",
        brokers=(BrokerView(id=BrokerId(1)), BrokerView(id=BrokerId(2))),
        totals=BrokerTotals(replica_count=[7, 9]),
        partitions_complete=False,
    )
    found = loads(partial)
    assert of_group(found.brokers, "replica_count") == {"1": 7, "2": 9}
    assert (found.brokers.leader_count, found.topics, found.racks) == (None, None, None)
    assert [(measure.scope, measure.quantity) for measure in measures(partial)] == [("broker", "replicas")]


@settings(max_examples=30)
@given(views())
def test_counts_are_those_of_a_plain_loop(drawn: ClusterView) -> None:
    rows = [[number for number in row if number >= 0] for row in drawn.partitions.replicas.tolist()]
    held = Counter(number for row in rows for number in row)
    led = Counter(row[0] for row in rows)
    found = loads(attrs_without_leader(drawn), assume_preferred=True)
    ids = [broker.id for broker in drawn.brokers]
    assert of_group(found.brokers, "replica_count") == {str(number): held[number] for number in ids}
    assert of_group(found.brokers, "leader_count") == {str(number): led[number] for number in ids}
    for quantity in ("replica_count", "leader_count", "size_bytes"):
        sums = {
            group.scope: int(shares.sum())
            for group in (found.brokers, found.racks, found.topics)
            if group is not None and (shares := getattr(group, quantity)) is not None
        }
        assert len(set(sums.values())) <= 1, sums


def attrs_without_leader(drawn: ClusterView) -> ClusterView:
    table = drawn.partitions
    bare = PartitionTable(
        topic_index=table.topic_index,
        partition_ids=table.partition_ids,
        replicas=table.replicas,
        size_bytes=table.size_bytes,
    )
    return ClusterView(name="bare", source="", format="", brokers=drawn.brokers, topics=drawn.topics, partitions=bare)


def test_a_replica_on_no_broker_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^broker 7 is not one of the 2 brokers given$"):
        broker_rows(np.array([1, 9], dtype=np.int32), np.array([[1, 7]], dtype=np.int32))
    with pytest.raises(UsageError, match=r"^replicas are given, but no broker is$"):
        broker_rows(np.array([], dtype=np.int32), np.array([[1]], dtype=np.int32))


@pytest.mark.parametrize("largest", [9, 1 << 24])
def test_ids_are_found_among_few_and_many(largest: int) -> None:
    """Small ids are looked up in a table, large ones by bisection; ids to both sides of the table are none of them."""
    ids = np.array([0, 3, largest], dtype=np.int32)
    values = np.array([[0, -1], [largest, 3], [3, np.iinfo(np.int32).min]] * 10, dtype=np.int32)
    assert broker_rows(ids, values).tolist() == [[0, -1], [2, 1], [1, -1]] * 10
    for wrong in (1, largest - 1, largest + 1, largest + 2, np.iinfo(np.int32).max):
        values[4, 1] = wrong
        with pytest.raises(UsageError, match=f"^broker {wrong} is not one of the 3 brokers given$"):
            broker_rows(ids, values)
