"""Subscriptions and assignments in Kafka's binary form."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import CorruptDataError
from broker.group.protocol import (
    NO_GENERATION,
    Subscription,
    read_assignment,
    read_sticky_memory,
    read_subscription,
    sticky_memory,
    write_assignment,
)
from broker.ids import PartitionId, TopicPartition

TOPICS = st.sampled_from(["a", "b", "topic"])
PARTITIONS = st.frozensets(st.builds(TopicPartition, TOPICS, st.integers(0, 50).map(PartitionId)), max_size=20)


@given(
    topics=st.frozensets(TOPICS).map(sorted).map(tuple),
    owned=PARTITIONS,
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | st.just("r1"),
    user_data=st.binary(max_size=9),
)
def test_a_subscription_is_read_as_it_was_written(
    topics: tuple[str, ...], owned: frozenset[TopicPartition], generation: int, rack: str | None, user_data: bytes
) -> None:
    written = Subscription(
        topics=topics, owned=tuple(sorted(owned)), generation=generation, rack=rack, user_data=user_data
    )
    assert read_subscription(written.to_bytes()) == written


@given(partitions=PARTITIONS, generation=st.integers(-1, 2**31 - 1))
def test_assignments_and_memories_are_read_as_they_were_written(
    partitions: frozenset[TopicPartition], generation: int
) -> None:
    assert read_assignment(write_assignment(partitions)) == partitions
    assert read_sticky_memory(sticky_memory(partitions, generation)) == (tuple(sorted(partitions)), generation)


def partitions_of(topic: str, *numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, PartitionId(number)) for number in numbers)


FULL = Subscription(
    topics=("audit", "orders"), owned=partitions_of("orders", 0, 2), generation=7, rack="r1", user_data=b"\x09"
)
# Printed by ConsumerProtocol of kafka-clients 4.0.1.
FULL_BYTES = (
    "0003000000020005617564697400066f726465727300000001090000000100066f7264657273"
    "0000000200000000000000020000000700027231"
)


def test_subscriptions_are_written_as_java_writes_them() -> None:
    assert FULL.to_bytes().hex() == FULL_BYTES
    assert attrs.evolve(FULL, topics=("orders", "audit")).to_bytes().hex() == FULL_BYTES
    assert Subscription(topics=("t",)).to_bytes().hex() == "000300000001000174ffffffff00000000ffffffffffff"


def test_assignments_and_the_memory_of_the_sticky_assignor_are_written_as_java_writes_them() -> None:
    held = partitions_of("t", 0, 2)
    assert write_assignment(held).hex() == "000300000001000174000000020000000000000002ffffffff"
    assert sticky_memory(held, 5).hex() == "0000000100017400000002000000000000000200000005"


@pytest.mark.parametrize(
    ("data", "owned", "generation"),
    [
        ("000000000001000174ffffffff", (), NO_GENERATION),
        ("000100000001000174ffffffff000000010001740000000100000001", partitions_of("t", 1), NO_GENERATION),
        ("000200000001000174ffffffff00000001000174000000010000000100000003", partitions_of("t", 1), 3),
    ],
)
def test_older_versions_of_java_s_subscriptions_are_read(
    data: str, owned: tuple[TopicPartition, ...], generation: int
) -> None:
    expected = Subscription(topics=("t",), owned=owned, generation=generation)
    assert read_subscription(bytes.fromhex(data)) == expected


@pytest.mark.parametrize("end", range(12))
def test_a_subscription_cut_short_is_corrupt(end: int) -> None:
    data = Subscription(topics=("topic",)).to_bytes()[:end]
    with pytest.raises(CorruptDataError, match="subscription at byte"):
        read_subscription(data)
