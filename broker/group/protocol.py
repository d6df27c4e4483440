"""Read and write the subscriptions and assignments that consumers exchange, in Kafka's binary form.

What it decides: how subscriptions and assignments travel inside JoinGroup and SyncGroup, where the coordinator passes
them on unread.

Constraints: written is version 3 of both, topics in Java's order; read are all there have been. Whoever claims more
than the bytes hold is refused before memory is taken. Sticky assignors keep what they remember in the user data, each
in its own form.

Example: read_subscription(Subscription(topics=("t",)).to_bytes()).topics == ("t",).

Source: ConsumerProtocolSubscription and ConsumerProtocolAssignment (JSON definitions), AbstractStickyAssignor,
StickyAssignor and CooperativeStickyAssignor, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

import attrs

from broker.group.wire import ByteReader, ByteWriter
from broker.ids import PartitionId, TopicPartition
from broker.java.string_hash import java_string_key

_VERSION: Final = 3
_INT32_BYTES: Final = 4
_STRING_BYTES_MIN: Final = 2
_TOPIC_BYTES_MIN: Final = _STRING_BYTES_MIN + _INT32_BYTES
_NULL: Final = -1
NO_GENERATION: Final = -1


@attrs.frozen(kw_only=True)
class Subscription:
    """Describe a member's subscription: topics, owned partitions with their generation, the assignor's user data."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None
    user_data: bytes = b""

    def to_bytes(self) -> bytes:
        """Return the subscription as Kafka's consumer writes it."""
        writer = ByteWriter().int16(_VERSION).int32(len(self.topics))
        for topic in sorted(self.topics, key=java_string_key):
            writer.string(topic)
        _write_user_data(writer, self.user_data)
        _write_partitions(writer, self.owned)
        return writer.int32(self.generation).string(self.rack).done()


def read_subscription(data: bytes) -> Subscription:
    """Return the subscription in `data`, of any version; raise CorruptDataError for anything else."""
    reader = ByteReader(data, what="subscription")
    version = reader.int16()
    topics = tuple(reader.string() for _ in range(reader.array_length(_STRING_BYTES_MIN)))
    user_data = reader.binary()
    owned = _read_partitions(reader) if version >= 1 else ()
    generation = reader.int32() if version >= 2 else NO_GENERATION
    rack = reader.nullable_string() if version >= 3 else None
    return Subscription(topics=topics, owned=owned, generation=generation, rack=rack, user_data=user_data)


def write_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Return the bytes of one member's assignment, as the leader sends them in SyncGroup."""
    writer = ByteWriter().int16(_VERSION)
    _write_partitions(writer, partitions)
    _write_user_data(writer, b"")
    return writer.done()


def read_assignment(data: bytes) -> frozenset[TopicPartition]:
    """Return the partitions of an assignment; raise CorruptDataError if `data` is empty or malformed."""
    reader = ByteReader(data, what="assignment")
    reader.int16()
    return frozenset(_read_partitions(reader))


def sticky_memory(held: Iterable[TopicPartition], generation: int) -> bytes:
    """Return the user data of the `sticky` assignor: the member's last assignment and its generation."""
    writer = ByteWriter()
    _write_partitions(writer, held)
    return writer.int32(generation).done()


def read_sticky_memory(data: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    """Return the assignment and generation in user data of `sticky`; neither for empty bytes."""
    if not data:
        return (), NO_GENERATION
    reader = ByteReader(data, what="memory of the sticky assignor")
    held = _read_partitions(reader)
    return held, reader.int32() if reader.left else NO_GENERATION


def _write_user_data(writer: ByteWriter, data: bytes) -> None:
    """Write an assignor's user data; null, not empty bytes, for an assignor without any."""
    if data:
        writer.binary(data)
    else:
        writer.int32(_NULL)


def _write_partitions(writer: ByteWriter, partitions: Iterable[TopicPartition]) -> None:
    """Write partitions grouped by topic, in order; Kafka uses a hash map here, and readers ignore the order."""
    topics = [(topic, list(each)) for topic, each in groupby(sorted(partitions), key=lambda one: one.topic)]
    writer.int32(len(topics))
    for topic, each in topics:
        writer.string(topic).int32(len(each))
        for one in each:
            writer.int32(one.partition)


def _read_partitions(reader: ByteReader) -> tuple[TopicPartition, ...]:
    partitions: list[TopicPartition] = []
    for _ in range(reader.array_length(_TOPIC_BYTES_MIN)):
        topic = reader.string()
        count = reader.array_length(_INT32_BYTES)
        partitions.extend(TopicPartition(topic, PartitionId(reader.int32())) for _ in range(count))
    return tuple(partitions)
