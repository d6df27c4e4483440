"""Read one replica's log from its bytes, and compare it with the committed records.

Reading is incremental: each record is read once on each replica. The same bytes are decoded once, as replicas hold the
same batches and `Decoder` remembers the last batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from broker.ids import BrokerId, Offset
from broker.values import value
from log.batches.batch_v2 import HEADER
from log.batches.in_buffer import OFFSET_AND_SIZE, batches_in
from log.codecs.compression import CODEC_MASK
from log.partition.partition_log import PartitionLog
from log.storage.checkpoints import EpochEntry
from replication.roles.replica_log import ReplicaLog
from replication.rules.partition import LeaderState

CHUNK_BYTES: Final = 1 << 20
REMEMBERED_COUNT_MAX: Final = 4_096
"""The number of batches that a decoder remembers; followers copy a batch soon after its append."""


@value
class Entry:
    """Hold one record: its leader epoch, its value, and its producer's id, sequence and epoch."""

    epoch: int
    value: int
    producer_id: int = -1
    sequence: int = -1
    producer_epoch: int = 0


Identify: TypeAlias = Callable[[int, int, bytes], int]
"""Returns what stands for the value of a record, of its leader epoch, its offset and its bytes."""


@value
class LogChange:
    """Hold the change of a log since the last reading: entries from `first_offset` on are new, `taken` were truncated.

    `is_first` says that this was the first reading of the log, which counts as a truncation too.
    """

    first_offset: int
    is_first: bool
    is_cut: bool
    taken: list[Entry]


@value
class Last:
    """Hold a producer's last sequence number in a log, its offset, and the producer's epoch."""

    sequence: int
    offset: int
    epoch: int = 0


@value
class Bounds:
    """Hold a log's start, end and high watermark."""

    start: int
    end: int
    high: int

    @classmethod
    def of(cls, log: PartitionLog) -> Bounds:
        """Return the bounds of a log as they are now."""
        return cls(log.log_start_offset, log.log_end_offset, log.high_watermark)


class Decoder:
    """Decode batches into entries, and cache the last batches, because replicas hold the same ones.

    Clients that may write the same bytes twice need an `identify`; those of the simulation write numbers, each once.
    """

    def __init__(self, identify: Identify | None = None, remembered_count_max: int = REMEMBERED_COUNT_MAX) -> None:
        self._identify = identify
        self._remembered_count_max = remembered_count_max
        self._remembered: dict[bytes, tuple[Entry, ...]] = {}

    def entries(self, data: bytes, base_offset: int) -> list[Entry]:
        """Return the entries of the whole batches in `data`, the first of which begins at `base_offset`.

        Asserts that their offsets have no gap. A batch that is cut off at the end is left out.
        """
        found: list[Entry] = []
        position, end = 0, len(data)
        while end - position >= OFFSET_AND_SIZE.size:
            offset, size_bytes = OFFSET_AND_SIZE.unpack_from(data, position)
            size_bytes += OFFSET_AND_SIZE.size
            if size_bytes > end - position:
                break
            batch = data if size_bytes == end else data[position : position + size_bytes]
            known = self._remembered.get(batch)
            if known is None:
                known = self._decoded(batch)
            assert offset == base_offset + len(found), (offset, base_offset + len(found))
            found += known
            position += size_bytes
        return found

    def _decoded(self, data: bytes) -> tuple[Entry, ...]:
        (_, _, epoch, _, _, attributes, *_, producer, producer_epoch, sequence, count) = HEADER.unpack_from(data)
        if self._identify is not None:
            entries = _entries_of(data, self._identify)
        elif attributes & CODEC_MASK or count != 1:
            entries = _entries_of(data, _number)
        else:
            entries = (Entry(epoch, _value_of_one(data), producer, sequence, producer_epoch),)
        if len(self._remembered) >= self._remembered_count_max:
            self._remembered.clear()
        self._remembered[data] = entries
        return entries


def _number(_epoch: int, _offset: int, octets: bytes) -> int:
    return int.from_bytes(octets, "big")


def _entries_of(data: bytes, identify: Identify) -> tuple[Entry, ...]:
    """Return the entries of a batch of any kind."""
    (batch,) = batches_in(data)
    records = batch.records()
    assert [record.offset - batch.base_offset for record in records] == list(range(len(records))), batch
    return tuple(
        Entry(
            batch.partition_leader_epoch,
            identify(batch.partition_leader_epoch, record.offset, record.value or b""),
            batch.producer_id,
            record.sequence,
            batch.producer_epoch,
        )
        for record in records
    )


def _value_of_one(data: bytes) -> int:
    """Return the value of the only record of an uncompressed batch, the form in which the simulated clients write."""
    _, position = _varint(data, HEADER.size)  # The record's size.
    _, position = _varint(data, position + 1)  # Its time, after the attributes.
    offset_delta, position = _varint(data, position)
    assert offset_delta == 0, offset_delta
    key_size, position = _varint(data, position)
    size, position = _varint(data, position + max(key_size, 0))
    return int.from_bytes(data[position : position + max(size, 0)], "big")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag number, and the position after it."""
    byte = data[position]
    raw, shift = byte & 0x7F, 7
    while byte & 0x80:
        position += 1
        byte = data[position]
        raw |= (byte & 0x7F) << shift
        shift += 7
    return raw >> 1 ^ -(raw & 1), position + 1


class ObservedLog:
    """Follow one replica's log in one incarnation of its broker; `former` is the log of the incarnation before."""

    def __init__(self, log: ReplicaLog, incarnation: int, broker: BrokerId, former: ObservedLog | None = None) -> None:
        self.log = log
        self.incarnation = incarnation
        self.broker = broker
        self.entries: list[Entry] = []
        self.agreed = 0
        """The number of first entries that are known to equal the committed records."""
        self.version = -1
        self.high_watermark = 0
        self.end_max = 0
        """The greatest end that the log has had."""
        self.bounds: Bounds | None = None
        """The bounds of the log as they were last read."""
        self.has_failed = False
        """Whether the log's directory has failed: what was written then, nobody knows."""
        self.opened_in = 0
        """The partition epoch in which the log was first seen."""
        self.former = former
        """The log of the incarnation before, until this one was compared with it."""
        self.fetches: dict[BrokerId, tuple[object, object, object]] = {}
        """The last fetch of each follower that was checked, with the log's state and the brokers known then."""
        self.gaps: set[int] = set()
        """The offsets whose records compaction has removed."""
        self.producers: dict[int, Last] = {}
        """The last sequence number of each producer in the log."""
        self.epochs: tuple[EpochEntry, ...] = ()
        """The epoch cache when it was last found correct."""
        self.claim: LeaderState | None = None
        """The broker's state as a leader when it was last checked."""
        self.shown_epoch = -1
        self.shown = -1
        """The leader epoch in which the broker last led, and its high watermark then."""
        self._former: list[Entry] = [] if former is None else former.entries
        self._segment_base = Offset(-1)
        self._position = 0

    def read_on(self, decoder: Decoder) -> LogChange:
        """Read the records appended and truncated since the last reading."""
        log, cut_to = self.log, self.log.cut_to
        is_cut, is_first = cut_to is not None, self.version < 0
        taken: list[Entry] = []
        if cut_to is not None:
            taken = self.entries[cut_to:]
            del self.entries[cut_to:]
            self.agreed = min(self.agreed, cut_to)
            log.seen()
        self.version = log.version
        self.high_watermark = log.log.high_watermark
        self.bounds = Bounds.of(log.log)
        self.end_max = max(self.end_max, self.bounds.end)
        before, end_offset = len(self.entries), log.log.log_end_offset
        if before < end_offset:
            active = log.log.active_segment
            if not is_cut and active.base_offset == self._segment_base:
                self.entries += decoder.entries(bytes(active.records.view()[self._position :]), before)
            else:
                self._read_through(decoder, end_offset)
            assert len(self.entries) == end_offset, (len(self.entries), end_offset)
            self._segment_base, self._position = active.base_offset, active.size_bytes
        elif is_cut:
            self._segment_base = Offset(-1)
        if self._former:
            taken, self._former = self._former[len(self.entries) :], []
        return LogChange(before, is_first, is_cut, taken)

    def _read_through(self, decoder: Decoder, end_offset: int) -> None:
        while len(self.entries) < end_offset:
            before = len(self.entries)
            self.entries += decoder.entries(bytes(self.log.log.read(Offset(before), CHUNK_BYTES).records), before)
            assert len(self.entries) > before, before

    @property
    def read_from(self) -> int:
        """Return the offset from which on the entries are those of the log itself."""
        return self.log.log.log_start_offset

    @property
    def is_undated(self) -> bool:
        """Return whether the epoch cache lacks the leader epoch of the log's first records."""
        return False

    def begins_after(self, offset: int) -> bool:
        """Return whether the log begins above an offset, so that the record that was there is not known."""
        return offset < self.log.log.log_start_offset

    def has_records(self, start: int, end: int) -> bool:
        """Return whether the log has a record at an offset from `start` to `end`, `end` not included."""
        return start < end

    def agree(self, committed: list[Entry]) -> int:
        """Return the number of first entries that equal the committed ones. Cost: linear in the new entries."""
        entries, agreed = self.entries, min(self.agreed, len(committed))
        end = min(len(entries), len(committed))
        while agreed < end:
            entry, known = entries[agreed], committed[agreed]
            if entry is not known and entry != known:
                break
            agreed += 1
        self.agreed = agreed
        return agreed
