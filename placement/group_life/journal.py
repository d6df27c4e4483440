"""What is stored of a group in its partition of `__consumer_offsets`, and read back by another coordinator.

Decides what survives a coordinator. Groups of the classic protocol and offsets go through Kafka's binary form and back.

Constraints: kept is the newest value of each key, as a compacted partition keeps it, in the order of writing.

Left out: the binary form of consumer groups (KIP-848), which are kept as values.

Source: Kafka's `__consumer_offsets`; broker.group.records.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.group.consumer import ConsumerGroup
from broker.group.members import GroupRecord
from broker.group.records import GroupKey, OffsetKey, read_committed_offset, read_group, read_key, write_group
from broker.group.service import GroupEntry, OffsetRecord


class Journal:
    """What is stored of one group."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._group: ConsumerGroup | None = None

    def append(self, entries: tuple[GroupEntry, ...]) -> None:
        """Store entries."""
        for entry in entries:
            match entry:
                case GroupRecord():
                    self._put(GroupKey(entry.group_id).to_bytes(), write_group(entry))
                case OffsetRecord():
                    self._put(entry.key.to_bytes(), None if entry.value is None else entry.value.to_bytes())
                case ConsumerGroup():
                    self._group = entry

    def entries(self) -> Iterator[GroupEntry]:
        """Yield what is there, oldest first."""
        for key_bytes, value in self._values.items():
            key = read_key(key_bytes)
            if isinstance(key, OffsetKey):
                yield OffsetRecord(key, read_committed_offset(value))
            elif isinstance(key, GroupKey):
                yield read_group(key.group_id, value)
        if self._group is not None:
            yield self._group

    def _put(self, key: bytes, value: bytes | None) -> None:
        self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
