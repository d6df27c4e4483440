"""Read and write the subscriptions and assignments that consumers exchange, in Kafka's binary form.

Example: read_subscription(Subscription(topics=("t",)).to_bytes()).topics == ("t",).

Source: ConsumerProtocolSubscription and ConsumerProtocolAssignment (JSON definitions), AbstractStickyAssignor,
StickyAssignor and CooperativeStickyAssignor, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

import attrs

from broker.group.schemas import ASSIGNMENT, STICKY_MEMORY, SUBSCRIPTION
from broker.ids import PartitionId, TopicPartition
from broker.java.string_hash import java_string_key
from broker.wire.fields import Fields, Kind, Message
from broker.wire.reading import Reader, read_message
from broker.wire.writing import write_message, write_versioned

_VERSION: Final = 3
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
        fields = {
            "topics": sorted(self.topics, key=java_string_key),
            "userData": self.user_data or None,  # Null, not empty bytes, of an assignor without any.
            "ownedPartitions": _by_topic(self.owned),
            "generationId": self.generation,
            "rackId": self.rack,
        }
        return write_versioned(SUBSCRIPTION, fields, version=_VERSION)


def read_subscription(data: bytes) -> Subscription:
    """Return the subscription in `data`, of any version; raise CorruptDataError for anything else."""
    fields = _read(SUBSCRIPTION, data, "subscription")
    return Subscription(
        topics=fields["topics"],
        owned=_partitions(fields.get("ownedPartitions", ())),
        generation=fields.get("generationId", NO_GENERATION),
        rack=fields.get("rackId"),
        user_data=fields["userData"] or b"",
    )


def read_topics(data: bytes) -> tuple[str, ...]:
    """Return the topics of a subscription, as a coordinator reads them: nothing behind version 0 is looked at."""
    reader = Reader(data, source="subscription")
    reader.number(Kind.INT16)
    topics: tuple[str, ...] = read_message(SUBSCRIPTION, reader, version=0)["topics"]
    return topics


def write_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Return the bytes of one member's assignment, as the leader sends them in SyncGroup."""
    return write_versioned(ASSIGNMENT, {"assignedPartitions": _by_topic(partitions)}, version=_VERSION)


def read_assignment(data: bytes) -> frozenset[TopicPartition]:
    """Return the partitions of an assignment; raise CorruptDataError if `data` is empty or malformed."""
    return frozenset(_partitions(_read(ASSIGNMENT, data, "assignment")["assignedPartitions"]))


def sticky_memory(held: Iterable[TopicPartition], generation: int) -> bytes:
    """Return the user data of the `sticky` assignor: the member's last assignment and its generation."""
    return write_message(STICKY_MEMORY, {"previousAssignment": _by_topic(held), "generation": generation}, version=1)


def read_sticky_memory(data: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    """Return the assignment and generation in user data of `sticky`; neither for empty bytes."""
    if not data:
        return (), NO_GENERATION
    reader = Reader(data, source="memory of the sticky assignor")
    held = _partitions(read_message(STICKY_MEMORY, reader, version=0)["previousAssignment"])
    return held, reader.number(Kind.INT32) if reader.left else NO_GENERATION


def _read(message: Message, data: bytes, source: str) -> Fields:
    """Return the fields behind a version; a later version than the newest known is read as that."""
    reader = Reader(data, source=source)
    version = reader.number(Kind.INT16)
    return read_message(message, reader, version=max(0, min(version, message.version_max)))


def _by_topic(partitions: Iterable[TopicPartition]) -> list[Fields]:
    """Return partitions grouped by topic, in order; Kafka uses a hash map here, and readers ignore the order."""
    grouped = groupby(sorted(partitions), key=lambda one: one.topic)
    return [{"topic": topic, "partitions": [one.partition for one in each]} for topic, each in grouped]


def _partitions(topics: Iterable[Fields]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each["topic"], PartitionId(number)) for each in topics for number in each["partitions"])
