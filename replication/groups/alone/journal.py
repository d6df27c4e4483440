"""What is stored of a group in its partition of `__consumer_offsets`, and read back by another coordinator.

Decides what survives a coordinator: what goes through Kafka's binary form and back, of both protocols and of offsets.

Constraints: kept is the newest value of each key, as a compacted partition keeps it, in the order of writing. A
consumer group is written as what has changed since it was written last, so the journal must see every append.

Example: a coordinator dies after a member has joined; the next one reads the member, its target and what it holds
from the records of versions 5, 7 and 8.

Left out: batches and their log, which groups have in a simulated cluster (`replication.groups`).

Source: Kafka's `__consumer_offsets`; broker.group.records and broker.group.consumer.records.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.group.consumer import ConsumerGroup
from broker.group.consumer.records import (
    ConsumerGroupRecord,
    TopicIds,
    applied,
    changes,
    read_consumer_key,
)
from broker.group.members import GroupRecord
from broker.group.records import GroupKey, OffsetKey, read_committed_offset, read_group, read_key, write_group
from broker.group.service import GroupEntry, OffsetRecord
from placement.consumer.topic_ids import topic_id


class Journal:
    """What is stored of one group."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._group: ConsumerGroup | None = None
        """The consumer group as it was written last."""
        self._topics: dict[str, bytes] = {}
        """The ids of the topics that were ever written of."""

    def append(self, entries: tuple[GroupEntry, ...]) -> None:
        """Store entries."""
        for entry in entries:
            match entry:
                case GroupRecord():
                    self._put(GroupKey(entry.group_id).to_bytes(), write_group(entry))
                case OffsetRecord():
                    self._put(entry.key.to_bytes(), None if entry.value is None else entry.value.to_bytes())
                case ConsumerGroup():
                    self._put_consumer(entry)

    def entries(self) -> Iterator[GroupEntry]:
        """Yield what is there, oldest first, and the consumer group last."""
        group: ConsumerGroup | None = None
        ids = TopicIds(self._topics)
        for key_bytes, value in self._values.items():
            consumer_key = read_consumer_key(key_bytes)
            if consumer_key is not None:
                known = ConsumerGroup(group_id=consumer_key.group_id) if group is None else group
                group = applied(known, ConsumerGroupRecord(consumer_key, value), ids)
                continue
            key = read_key(key_bytes)
            if isinstance(key, OffsetKey):
                yield OffsetRecord(key, read_committed_offset(value))
            elif isinstance(key, GroupKey):
                yield read_group(key.group_id, value)
        if group is not None:
            yield group

    def _put_consumer(self, group: ConsumerGroup) -> None:
        for topic in sorted(group.topics):
            self._topics.setdefault(topic, topic_id(topic, None))
        before = ConsumerGroup(group_id=group.group_id) if self._group is None else self._group
        for record in changes(before, group, TopicIds(self._topics)):
            self._put(record.key.to_bytes(), record.value)
        self._group = group

    def _put(self, key: bytes, value: bytes | None) -> None:
        self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
