"""Stand in for brokers around coordinators: logs of `__consumer_offsets` as lists of batches, hosts, and timers.

What it decides: offsets of what is appended; what a reader of the log sees up to an offset; when each timer is due.

Constraints: who leads a partition and how far it is replicated is set from outside. Batches get their offsets by
writing the first eight bytes, which no checksum covers.

Source: the record batch header in Kafka's documentation, and OffsetCommitKey and -Value as `broker.group.records`.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

from broker.clock import ManualClock
from broker.error_codes import ErrorCode
from broker.group.records import CommittedOffset, OffsetKey, read_committed_offset, read_key
from broker.ids import BrokerId, Offset
from broker.units import SizeBytes
from log.batches.in_buffer import batches_in
from log.record import Record
from replication.roles.hosted import HostedAppend
from replication.roles.outbox import Outbox

WALL_MS: Final = 1_000_000
_LAST_DELTA_AT: Final = 23
"""Where a batch has the offset of its last record, counted from its first."""
_FIRST_TIMESTAMP_AT: Final = 27
"""Where a batch has the time of its first record."""
_CLASSIC_VERSIONS_MAX: Final = struct.pack(">h", 2)
"""The versions of keys of offsets (0, 1) and of classic groups (2) come before those of consumer groups."""


def records_in(batch: bytes) -> Iterator[Record]:
    """Yield the records of a batch."""
    for each in batches_in(batch):
        yield from each.records()


def _group_of(key: bytes) -> str:
    """Return the group that a key names behind its version, as every key of this topic does."""
    (length,) = struct.unpack_from(">h", key, 2)
    return key[4 : 4 + length].decode()


class OffsetsLog:
    """Hold one partition's batches, whole; `high_watermark` is moved from outside."""

    def __init__(self) -> None:
        self.log_start_offset = self.high_watermark = 0
        self.batches: list[tuple[int, bytes]] = []

    @property
    def log_end_offset(self) -> int:
        """Return the offset after the last record."""
        return self.end_of(len(self.batches) - 1) if self.batches else 0

    def end_of(self, place: int) -> int:
        """Return the offset after the last record of a batch."""
        base, batch = self.batches[place]
        return base + int(struct.unpack_from(">i", batch, _LAST_DELTA_AT)[0]) + 1

    def append(self, batch: bytes) -> int:
        """Append a batch and return its first offset."""
        base = self.log_end_offset
        self.batches.append((base, struct.pack(">q", base) + batch[8:]))
        return base

    def cut(self, end_offset: int) -> None:
        """Truncate to an offset at which a batch begins."""
        self.batches = [each for each in self.batches if each[0] < end_offset]

    def read(self, offset: int, size_bytes_max: SizeBytes) -> Any:
        """Return two batches from the one with `offset` on."""
        assert size_bytes_max > 0
        ends = [self.end_of(place) for place in range(len(self.batches))]
        found = [batch for (_, batch), end in zip(self.batches, ends, strict=True) if end > offset]
        return SimpleNamespace(records=b"".join(found[:2]))

    def commits_of(self, batch: bytes) -> Iterator[tuple[int, OffsetKey, CommittedOffset | None]]:
        """Yield the commits in a batch, each with its offset."""
        for record in records_in(batch):
            key = read_key(bytes(record.key or b""))
            if isinstance(key, OffsetKey):
                value = None if record.value is None else read_committed_offset(bytes(record.value))
                yield record.offset, key, value

    def group_of(self, batch: bytes) -> str:
        """Return the group of a batch; each record's key begins with it."""
        return next(_group_of(bytes(record.key or b"")) for record in records_in(batch))

    def repeated(self, batch: bytes) -> str:
        """Return which record of a consumer group a batch writes again as the log has it already, "" for none."""
        last = {record.key: record.value for _, each in self.batches for record in records_in(each)}
        again = [record.key for record in records_in(batch) if last.get(record.key, b"-") == record.value]
        consumer = [key for key in again if key and key[:2] > _CLASSIC_VERSIONS_MAX]
        return f"{consumer} are written again as they stand in the log" if consumer else ""

    def committed(self, group_id: str, start_offset: int) -> dict[tuple[str, int], Offset]:
        """Return what a group has committed between an offset and the high watermark, by topic and partition."""
        found: dict[tuple[str, int], Offset] = {}
        for base, batch in self.batches:
            if base >= self.high_watermark:
                break
            for offset, key, value in self.commits_of(batch):
                if key.group_id == group_id and offset >= start_offset:
                    found.pop((key.topic, int(key.partition)), None)
                    if value is not None:
                        found[key.topic, int(key.partition)] = value.offset
        return found


class OffsetsHost:
    """Stand in for one broker: `leads` are the logs it leads, `refusing` the error of its next append."""

    def __init__(self, broker: int, clock: ManualClock) -> None:
        self.broker = BrokerId(broker)
        self.image: Any = SimpleNamespace(partitions={})
        self.leads: dict[int, OffsetsLog] = {}
        self.refusing = ErrorCode.NONE
        self.appended: list[tuple[int, int, int, bytes]] = []
        """The appends since this list was last cleared: partition, number, first offset, batch."""
        self.told = ""
        self._clock = clock
        self._number = 40 * (broker + 1)

    def append(self, partition: int, records: bytes, out: Outbox) -> HostedAppend:
        """Append a batch to a led partition."""
        now_ms = WALL_MS + self._clock.now_ms()
        if (dated_ms := struct.unpack_from(">q", records, _FIRST_TIMESTAMP_AT)[0]) != now_ms:
            self.told = f"a batch of {now_ms} says {dated_ms}"
        error = self.refusing if partition in self.leads else ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.refusing = ErrorCode.NONE
        if error is not ErrorCode.NONE:
            return HostedAppend(error, -1)
        log = self.leads[partition]
        self.told = self.told or log.repeated(records)
        self._number += 1
        base = self.leads[partition].append(records)
        self.appended.append((partition, self._number, base, records))
        return HostedAppend(ErrorCode.NONE, self._number)

    def led_log(self, partition: int) -> Any:
        """Return the log of a led partition."""
        return SimpleNamespace(log=self.leads[partition]) if partition in self.leads else None


class Due:
    """Keep timers in order of time, then of setting."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Any]] = []
        self._count = 0

    def add(self, now_ms: int, broker: int, out: Outbox) -> None:
        """Take the timers that a broker has set."""
        for delay_ms, message in out.woken:
            assert delay_ms >= 0, (delay_ms, message)
            self._count += 1
            heapq.heappush(self._heap, (now_ms + delay_ms, self._count, broker, message))
        out.woken = []

    def pop(self, end_ms: int) -> tuple[int, int, Any] | None:
        """Return time, broker and message of the next timer up to a time."""
        if not self._heap or self._heap[0][0] > end_ms:
            return None
        at_ms, _, broker, message = heapq.heappop(self._heap)
        return at_ms, broker, message

    def times_ms(self, broker: int, message: Any) -> list[int]:
        """Return when a broker's timers with this message are due, in any order."""
        return [each[0] for each in self._heap if each[2:] == (broker, message)]
