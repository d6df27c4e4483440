"""Identifiers: ranges are checked where other people's numbers come in, and partitions sort as Kafka prints them."""

from __future__ import annotations

import re

import pytest

from broker.errors import UsageError
from broker.ids import INT32_MAX, PartitionId, TopicPartition, broker_id


@pytest.mark.parametrize("value", [-1, INT32_MAX + 1, 10**12, True, 1.0, "1", None])
def test_anything_else_is_refused_with_the_place_and_the_range(value: object) -> None:
    message = f"line 3 is {value!r}; allowed are whole numbers from 0 to 2147483647"
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        broker_id(value, where="line 3")  # type: ignore[arg-type] # wrong on purpose.


def test_partitions_sort_by_topic_then_by_number() -> None:
    def at(topic: str, number: int) -> TopicPartition:
        return TopicPartition(topic, PartitionId(number))

    assert sorted([at("b", 0), at("a", 10), at("a", 2)]) == [at("a", 2), at("a", 10), at("b", 0)]


def test_a_partition_reads_as_its_directory_is_called() -> None:
    assert str(TopicPartition("my-topic", PartitionId(7))) == "my-topic-7"
