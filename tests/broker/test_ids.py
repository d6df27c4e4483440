"""Identifiers: ranges are checked where other people's numbers come in, and partitions sort as Kafka prints them."""

from __future__ import annotations

import re

import attrs
import pytest

from broker.errors import UsageError
from broker.ids import INT32_MAX, NO_LEADER, TOPIC_NAME_LENGTH_MAX, PartitionId, TopicPartition, broker_id, partition_id


@pytest.mark.parametrize("check", [broker_id, partition_id])
@pytest.mark.parametrize("value", [0, 1, INT32_MAX])
def test_every_number_that_kafka_can_hold_is_an_id(check: object, value: int) -> None:
    assert callable(check)
    assert check(value) == value


@pytest.mark.parametrize("value", [-1, INT32_MAX + 1, 10**12, True, 1.0, "1", None])
def test_anything_else_is_refused_with_the_place_and_the_range(value: object) -> None:
    message = f"line 3 is {value!r}; allowed are whole numbers from 0 to 2147483647"
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        broker_id(value, where="line 3")  # type: ignore[arg-type] # wrong on purpose.


def test_the_place_has_a_name_when_none_is_given() -> None:
    with pytest.raises(UsageError, match=r"^broker id is -5; "):
        broker_id(-5)
    with pytest.raises(UsageError, match=r"^partition is -5; "):
        partition_id(-5)


def test_partitions_sort_by_topic_then_by_number() -> None:
    def at(topic: str, number: int) -> TopicPartition:
        return TopicPartition(topic, PartitionId(number))

    assert sorted([at("b", 0), at("a", 10), at("a", 2)]) == [at("a", 2), at("a", 10), at("b", 0)]


def test_a_partition_reads_as_its_directory_is_called() -> None:
    assert str(TopicPartition("my-topic", PartitionId(7))) == "my-topic-7"


def test_a_partition_is_a_value() -> None:
    one = TopicPartition("t", PartitionId(0))
    assert {one: 1}[TopicPartition("t", PartitionId(0))] == 1
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.topic = "other"  # type: ignore[misc] # wrong on purpose.


def test_a_topics_directory_fits_in_a_file_name() -> None:
    assert len("-" + str(99_999)) + TOPIC_NAME_LENGTH_MAX == 255
    assert NO_LEADER == -1
