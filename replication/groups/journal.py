"""A partition of `__consumer_offsets`: what coordinators write there, and what another reads.

It decides the records of an entry, and what a log of records comes to.

Goals, most important first
1. Whoever reads a log has what was written there, in Kafka's binary form.
2. What is not yet committed is told apart: offsets are shown when the high watermark has passed them.

Constraints: an entry, or several, are one batch. A consumer group is written as what has changed since the end of the
log, so the journal must see every append that succeeds. A partition is read to its end, beyond the high watermark, as
the leader will commit or lose that too.

How: of classic groups and of offsets the newest value of a key holds; consumer groups are put together record by
record.

Example: an offset committed twice is read once, as what it was last.

Left out: transactions, deletion of groups.

Source: Kafka CoordinatorLoaderImpl, GroupCoordinatorRecordHelpers, CoordinatorRuntime; trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from broker.group.classic import GroupRecord
from broker.group.consumer import ConsumerGroup
from broker.group.consumer.records import (
    ConsumerGroupKey,
    ConsumerGroupRecord,
    TopicIds,
    applied,
    changes,
    read_consumer_key,
)
from broker.group.records import GroupKey, OffsetKey, read_committed_offset, read_group, read_key, write_group
from broker.group.service import GroupEntry, OffsetRecord
from broker.ids import Offset
from broker.units import MIB, TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.partition.partition_log import PartitionLog
from log.record import Record

_READ_BYTES: Final = MIB


@attrs.frozen
class Uncommitted:
    """An offset's record that was read, or given up, before it was committed; `offset` is the record's."""

    offset: Offset
    entry: OffsetRecord


@attrs.define
class GroupRead:
    """What a log holds of one group: the newest of each kind, and what is not yet committed."""

    classic: GroupRecord | None = None
    consumer: ConsumerGroup | None = None
    offsets: dict[OffsetKey, OffsetRecord] = attrs.field(factory=dict)
    uncommitted: list[Uncommitted] = attrs.field(factory=list)

    def entries(self) -> Iterator[GroupEntry]:
        """Yield what is committed, and the group as it was written last."""
        if self.classic is not None:
            yield self.classic
        if self.consumer is not None:
            yield self.consumer
        yield from self.offsets.values()


class Journal:
    """What stands in one partition's log of each consumer group, up to its end."""

    def __init__(self, ids: TopicIds) -> None:
        self._ids = ids
        self._written: dict[str, ConsumerGroup] = {}

    def batch(self, entries: tuple[GroupEntry, ...], now_ms: TimeMs) -> bytes:
        """Return the records of entries as one batch; nothing if nothing has to be written."""
        pairs = [pair for entry in entries for pair in self._pairs(entry)]
        records = [Record(Offset(place), now_ms, key, value) for place, (key, value) in enumerate(pairs)]
        return build_batch(BatchSpec(), records) if records else b""

    def written(self, entries: tuple[GroupEntry, ...]) -> None:
        """Learn that a batch stands in the log."""
        for entry in entries:
            if isinstance(entry, ConsumerGroup):
                self._written[entry.group_id] = entry

    def read(self, log: PartitionLog) -> dict[str, GroupRead]:
        """Return what a log holds, by group; raises CorruptDataError for records that are none."""
        groups: dict[str, GroupRead] = {}
        for offset, key, value in records_of(log):
            self._take(groups, key, value, offset, log.high_watermark)
        self._written = {name: each.consumer for name, each in groups.items() if each.consumer is not None}
        return groups

    def _take(
        self, groups: dict[str, GroupRead], key_bytes: bytes, value: bytes | None, offset: Offset, high: Offset
    ) -> None:
        consumer_key = read_consumer_key(key_bytes)
        if consumer_key is not None:
            self._take_consumer(groups, consumer_key, value)
            return
        key = read_key(key_bytes)
        if isinstance(key, GroupKey):
            assert value is not None, "nobody deletes groups"
            groups.setdefault(key.group_id, GroupRead()).classic = read_group(key.group_id, value)
        elif isinstance(key, OffsetKey):
            group = groups.setdefault(key.group_id, GroupRead())
            entry = OffsetRecord(key, None if value is None else read_committed_offset(value))
            if offset < high:
                group.offsets[key] = entry
            else:
                group.uncommitted.append(Uncommitted(offset, entry))

    def _take_consumer(self, groups: dict[str, GroupRead], key: ConsumerGroupKey, value: bytes | None) -> None:
        group = groups.setdefault(key.group_id, GroupRead())
        known = group.consumer if group.consumer is not None else ConsumerGroup(group_id=key.group_id)
        group.consumer = applied(known, ConsumerGroupRecord(key, value), self._ids)

    def _pairs(self, entry: GroupEntry) -> Iterator[tuple[bytes, bytes | None]]:
        match entry:
            case GroupRecord():
                yield GroupKey(entry.group_id).to_bytes(), write_group(entry)
            case OffsetRecord():
                yield entry.key.to_bytes(), None if entry.value is None else entry.value.to_bytes()
            case ConsumerGroup():
                before = self._written.get(entry.group_id, ConsumerGroup(group_id=entry.group_id))
                for record in changes(before, entry, self._ids):
                    yield record.key.to_bytes(), record.value


def records_of(log: PartitionLog) -> Iterator[tuple[Offset, bytes, bytes | None]]:
    """Yield offset, key and value of every record up to the end of a log."""
    position = log.log_start_offset
    while position < log.log_end_offset:
        for batch in batches_in(log.read(position, _READ_BYTES).records):
            for record in batch.records():
                if record.offset >= position:
                    assert record.key is not None, "a record of __consumer_offsets has a key"
                    yield record.offset, record.key, record.value
            position = Offset(batch.last_offset + 1)
