"""Keep the records of `__consumer_offsets` of one group, as a compacted partition keeps them.

What it decides: what survives a coordinator: the newest record of each key, in the order of writing.

Constraints: the form of the records is that of `replication.groups.common.journal`. Every stored record is committed.

Example: a coordinator dies after a member has joined; the next one reads the member, its target and what it holds
from the records of versions 5, 7 and 8.

Left out: batches and their log, which groups have in the cluster (`replication.groups.offsets_log`).

Source: Kafka's `__consumer_offsets` with cleanup.policy=compact.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.group.service import GroupEntry
from broker.ids import Offset
from replication.groups.common.journal import Journal, OffsetsRecord


class StoredRecords:
    """Hold the stored records of one group."""

    def __init__(self) -> None:
        self._journal = Journal()
        self._values: dict[bytes, bytes] = {}

    def append(self, entries: tuple[GroupEntry, ...]) -> None:
        """Store the records of `entries`; a record without a value deletes its key."""
        for entry in entries:
            for record in self._journal.records((entry,)):
                self._values.pop(record.key, None)
                if record.value is not None:
                    self._values[record.key] = record.value
            self._journal.written((entry,))

    def entries(self) -> Iterator[GroupEntry]:
        """Yield the stored records as entries of groups and offsets."""
        records = (
            (Offset(place), OffsetsRecord(key, value)) for place, (key, value) in enumerate(self._values.items())
        )
        for group in self._journal.read(records, Offset(len(self._values))).values():
            yield from group.entries()
