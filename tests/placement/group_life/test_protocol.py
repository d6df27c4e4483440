"""Subscriptions and assignments in Kafka's binary form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

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
    topics=st.lists(TOPICS, unique=True).map(tuple),
    owned=PARTITIONS,
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | st.just("r1"),
    user_data=st.binary(max_size=9),
)
def test_a_subscription_is_read_as_it_was_written(
    topics: tuple[str, ...], owned: frozenset[TopicPartition], generation: int, rack: str | None, user_data: bytes
) -> None:
    told = Subscription(
        topics=topics, owned=tuple(sorted(owned)), generation=generation, rack=rack, user_data=user_data
    )
    assert read_subscription(told.to_bytes()) == told


@given(partitions=PARTITIONS, generation=st.integers(-1, 2**31 - 1))
def test_assignments_and_memories_are_read_as_they_were_written(
    partitions: frozenset[TopicPartition], generation: int
) -> None:
    assert read_assignment(write_assignment(partitions)) == partitions
    assert read_sticky_memory(sticky_memory(partitions, generation)) == (tuple(sorted(partitions)), generation)


def test_what_another_client_writes_is_read() -> None:
    theirs = RangePartitionAssignor.metadata({"t", "u"}).encode()
    assert sorted(read_subscription(theirs).topics) == ["t", "u"]
    assignment = ConsumerProtocolMemberAssignment(0, [("t", [0, 2])], b"").encode()
    assert read_assignment(assignment) == {TopicPartition("t", PartitionId(0)), TopicPartition("t", PartitionId(2))}


def test_what_is_written_another_client_reads() -> None:
    written = write_assignment([TopicPartition("t", PartitionId(2)), TopicPartition("t", PartitionId(0))])
    theirs = ConsumerProtocolMemberAssignment.decode(written)
    assert theirs.partition_assignment == [("t", [0, 2])] or theirs.assignment == [("t", [0, 2])]
    told = ConsumerProtocolMemberMetadata.decode(Subscription(topics=("t", "u")).to_bytes())
    assert told.subscription == ["t", "u"] or told.topics == ["t", "u"]


def test_no_memory_is_none_of_no_generation() -> None:
    assert read_sticky_memory(b"") == ((), NO_GENERATION)


@pytest.mark.parametrize("end", range(12))
def test_a_subscription_cut_short_is_corrupt(end: int) -> None:
    data = Subscription(topics=("topic",)).to_bytes()[:end]
    with pytest.raises(CorruptDataError, match="subscription at byte"):
        read_subscription(data)


def test_a_length_beyond_the_bytes_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(CorruptDataError, match="an array of 2147483647 elements"):
        read_subscription(b"\x00\x03\x7f\xff\xff\xff")
