"""A log as a plain list of batches: what a reader of Kafka's documentation would write down.

No files, no segments, no indexes. Tests compare the real log with it after every operation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs


@attrs.frozen
class PlainRecord:
    """A record; a marker has neither key nor value."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


@attrs.frozen
class PlainBatch:
    """Records, the offset after the last one that was written, and the transaction that they belong to or end."""

    records: tuple[PlainRecord, ...]
    first_offset: int
    end_offset: int
    producer: int | None = None
    is_abort: bool | None = None
    """Of a marker whether it aborts; None for data."""
    epoch: int = 0
    """The epoch of the leader that wrote it."""


class PlainLog:
    """Batches in order; what lies below `start_offset` is not to be read any more."""

    def __init__(self) -> None:
        self.batches: list[PlainBatch] = []
        self.start_offset = 0
        self.end_offset = 0
        self.high_watermark = 0
        self.epoch = 0
        """The epoch of the leader that writes next."""

    def append(
        self, pairs: Sequence[tuple[bytes | None, bytes | None]], timestamp: int, *, producer: int | None = None
    ) -> int:
        """Add a batch and return its first offset; `producer` is whose transaction it belongs to."""
        return self._add(pairs, timestamp, producer, None)

    def end_transaction(self, producer: int, timestamp: int, *, is_abort: bool) -> int:
        """Add a marker and return its offset."""
        return self._add([(None, None)], timestamp, producer, is_abort)

    def _add(
        self,
        pairs: Sequence[tuple[bytes | None, bytes | None]],
        timestamp: int,
        producer: int | None,
        is_abort: bool | None,
    ) -> int:
        first_offset = self.end_offset
        records = tuple(
            PlainRecord(offset, key, value, timestamp) for offset, (key, value) in enumerate(pairs, start=first_offset)
        )
        self.end_offset += len(records)
        self.batches.append(PlainBatch(records, first_offset, self.end_offset, producer, is_abort, self.epoch))
        return first_offset

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that reaches beyond `offset`; the next one begins at `offset`."""
        if offset < self.end_offset:
            self.batches = [batch for batch in self.batches if batch.end_offset <= offset]
            self.end_offset = offset
            self.start_offset = min(self.start_offset, offset)
            self.high_watermark = min(self.high_watermark, offset)

    def raise_high_watermark(self, offset: int) -> None:
        """Let consumers see more, or less, within the log."""
        self.high_watermark = max(self.start_offset, min(offset, self.end_offset))

    def begin_at(self, offset: int) -> bool:
        """Forget what lies below `offset`; return whether that is allowed."""
        if offset > self.high_watermark:
            return False
        self.start_offset = max(self.start_offset, offset)
        return True

    def reopen(self) -> None:
        """Close and open: the high watermark is not known any more."""
        self.high_watermark = self.start_offset

    def keep(self, offsets: Collection[int]) -> None:
        """Lose all other records, as compaction and power loss may; batches go on ending where they did."""
        self.batches = [
            attrs.evolve(batch, records=tuple(record for record in batch.records if record.offset in offsets))
            for batch in self.batches
        ]

    def readable(self) -> list[PlainRecord]:
        """Every record that can be read, markers included."""
        return [record for batch in self.batches for record in batch.records if record.offset >= self.start_offset]

    def epochs(self) -> dict[int, int]:
        """Return the leader epoch of each record that can be read, by the record's offset."""
        return {
            record.offset: batch.epoch
            for batch in self.batches
            for record in batch.records
            if record.offset >= self.start_offset
        }

    def abort_markers(self) -> set[int]:
        """Return the offsets of the markers that abort a transaction."""
        return {batch.first_offset for batch in self.batches if batch.is_abort}

    def first_open_offset(self) -> int | None:
        """Where the first transaction begins that has not ended."""
        first_offsets: dict[int, int] = {}
        for batch in self.batches:
            if batch.producer is not None and batch.is_abort is None:
                first_offsets.setdefault(batch.producer, batch.first_offset)
            elif batch.producer is not None:
                first_offsets.pop(batch.producer, None)
        return min(first_offsets.values(), default=None)

    def aborted_offsets(self) -> set[int]:
        """Offsets of the records of transactions that were aborted."""
        pending: dict[int, set[int]] = {}
        aborted: set[int] = set()
        for batch in self.batches:
            if batch.producer is None:
                continue
            if batch.is_abort is None:
                pending.setdefault(batch.producer, set()).update(range(batch.first_offset, batch.end_offset))
            else:
                ended = pending.pop(batch.producer, set())
                aborted |= ended if batch.is_abort else set()
        return aborted
