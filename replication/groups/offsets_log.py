"""Write groups and offsets as records of `__consumer_offsets`, and read the log of such a partition.

Constraints: a consumer group is written as what has changed since it was written last, so the journal must see every
append that succeeds. A group is written after the tombstones of an empty one of the other protocol. The entries of one
append are one batch. A partition is read to its end, beyond the high watermark, as its leader will commit those records
too, or lose them.

Source: Kafka CoordinatorLoaderImpl, CoordinatorPartitionWriter and GroupCoordinatorRecordHelpers, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import attrs

from broker.group.classic import GroupRecord
from broker.group.consumer import ConsumerGroup
from broker.group.consumer.records import (
    EPOCH,
    ConsumerGroupKey,
    ConsumerGroupRecord,
    TopicIds,
    applied,
    changes,
    group_keys,
    read_consumer_key,
)
from broker.group.records import GroupKey, OffsetKey, read_committed_offset, read_group, read_key, write_group
from broker.group.service import GroupEntry, GroupRemoval, OffsetRecord
from broker.ids import Offset
from broker.units import MIB, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.batches.in_buffer import batches_in
from log.partition.partition_log import PartitionLog
from log.record import Record
from placement.consumer.topic_ids import topic_id


@attrs.frozen
class OffsetsRecord:
    """Hold one record of `__consumer_offsets`; a value of None deletes the key."""

    key: bytes
    value: bytes | None


@attrs.frozen
class Uncommitted:
    """Hold an offset commit whose record stands at `offset`, at or above the high watermark."""

    offset: Offset
    entry: OffsetRecord


@attrs.define
class StoredGroup:
    """Hold one group's records in a partition: the newest value of each kind, and the uncommitted offsets."""

    classic: GroupRecord | None = None
    consumer: ConsumerGroup | None = None
    offsets: dict[OffsetKey, OffsetRecord] = attrs.field(factory=dict)
    uncommitted: list[Uncommitted] = attrs.field(factory=list)

    def entries(self) -> Iterator[GroupEntry]:
        """Yield the group as last written, and its committed offsets."""
        if self.classic is not None:
            yield self.classic
        if self.consumer is not None:
            yield self.consumer
        yield from self.offsets.values()


class Journal:
    """Write and read the records of one partition of `__consumer_offsets`.

    `topics` are those known from the start; the topics of a group that is written are added.
    """

    def __init__(self, topics: Collection[str] = ()) -> None:
        self._topics = set(topics)
        self._ids = _ids_of(self._topics)
        self._written: dict[str, ConsumerGroup] = {}
        self._classic: set[str] = set()

    def records(self, entries: tuple[GroupEntry, ...]) -> tuple[OffsetsRecord, ...]:
        """Return the records that write `entries`; none if nothing has changed."""
        return tuple(record for entry in entries for record in self._records_of(entry))

    def written(self, entries: tuple[GroupEntry, ...]) -> None:
        """Record that the records of `entries` stand in the partition."""
        for entry in entries:
            match entry:
                case ConsumerGroup():
                    self._written[entry.group_id] = entry
                    self._classic.discard(entry.group_id)
                case GroupRecord():
                    self._written.pop(entry.group_id, None)
                    self._classic.add(entry.group_id)
                case GroupRemoval():
                    self._written.pop(entry.group_id, None)
                    self._classic.discard(entry.group_id)

    def read(self, records: Iterable[tuple[Offset, OffsetsRecord]], high_watermark: Offset) -> dict[str, StoredGroup]:
        """Return the groups in the records, by group id; raise CorruptDataError for a record in another form."""
        groups: dict[str, StoredGroup] = {}
        for offset, record in records:
            self._read_one(groups, record, offset, is_committed=offset < high_watermark)
        self._written = {name: each.consumer for name, each in groups.items() if each.consumer is not None}
        self._classic = {name for name, each in groups.items() if each.classic is not None}
        return groups

    def _read_one(
        self, groups: dict[str, StoredGroup], record: OffsetsRecord, offset: Offset, *, is_committed: bool
    ) -> None:
        consumer_key = read_consumer_key(record.key)
        if consumer_key is not None:
            self._read_consumer(groups, consumer_key, record.value)
            return
        key = read_key(record.key)
        if isinstance(key, GroupKey):
            group = groups.setdefault(key.group_id, StoredGroup())
            group.classic = None if record.value is None else read_group(key.group_id, record.value)
        elif isinstance(key, OffsetKey):
            group = groups.setdefault(key.group_id, StoredGroup())
            entry = OffsetRecord(key, None if record.value is None else read_committed_offset(record.value))
            if is_committed:
                group.offsets[key] = entry
            else:
                group.uncommitted.append(Uncommitted(offset, entry))

    def _read_consumer(self, groups: dict[str, StoredGroup], key: ConsumerGroupKey, value: bytes | None) -> None:
        group = groups.setdefault(key.group_id, StoredGroup())
        known = group.consumer if group.consumer is not None else ConsumerGroup(group_id=key.group_id)
        is_gone = key.version == EPOCH and value is None
        group.consumer = None if is_gone else applied(known, ConsumerGroupRecord(key, value), self._ids)

    def _records_of(self, entry: GroupEntry) -> Iterator[OffsetsRecord]:
        match entry:
            case GroupRecord():
                yield from self._tombstones(entry.group_id)
                yield OffsetsRecord(GroupKey(entry.group_id).to_bytes(), write_group(entry))
            case OffsetRecord():
                yield OffsetsRecord(entry.key.to_bytes(), None if entry.value is None else entry.value.to_bytes())
            case GroupRemoval():
                yield OffsetsRecord(GroupKey(entry.group_id).to_bytes(), None)
                yield from self._tombstones(entry.group_id)
            case ConsumerGroup():
                if entry.group_id in self._classic:
                    yield OffsetsRecord(GroupKey(entry.group_id).to_bytes(), None)
                self._add_topics(entry.topics)
                before = self._written.get(entry.group_id, ConsumerGroup(group_id=entry.group_id))
                for record in changes(before, entry, self._ids):
                    yield OffsetsRecord(record.key.to_bytes(), record.value)

    def _tombstones(self, group_id: str) -> Iterator[OffsetsRecord]:
        if group_id in self._written:
            yield from (OffsetsRecord(key.to_bytes(), None) for key in group_keys(group_id))

    def _add_topics(self, topics: Collection[str]) -> None:
        if not self._topics.issuperset(topics):
            self._topics.update(topics)
            self._ids = _ids_of(self._topics)


def _ids_of(topics: Iterable[str]) -> TopicIds:
    return TopicIds({topic: topic_id(topic, None) for topic in sorted(topics)})


_READ_BYTES: Final = MIB


def batch_of(records: Iterable[OffsetsRecord], now_ms: TimeMs) -> bytes:
    """Return the records as one batch; empty for no records."""
    rows = [Record(Offset(place), now_ms, record.key, record.value) for place, record in enumerate(records)]
    return build_batch(BatchSpec(), rows) if rows else b""


def records_of(log: PartitionLog) -> Iterator[tuple[Offset, OffsetsRecord]]:
    """Yield every record up to the end of a log, with its offset."""
    position = log.log_start_offset
    while position < log.log_end_offset:
        for batch in batches_in(log.read(position, _READ_BYTES).records):
            for record in batch.records():
                if record.offset >= position:
                    assert record.key is not None, "a record of __consumer_offsets has a key"
                    yield record.offset, OffsetsRecord(record.key, record.value)
            position = Offset(batch.last_offset + 1)


def read_groups(journal: Journal, log: PartitionLog) -> dict[str, StoredGroup]:
    """Return the groups stored in a log, by group id; `journal` reads the records."""
    return journal.read(records_of(log), log.high_watermark)
