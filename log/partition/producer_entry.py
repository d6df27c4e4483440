"""Hold the state of an idempotent or transactional producer in a log, and read and write snapshots of producers.

Source: Kafka storage/org.apache.kafka.storage.internals.log.{ProducerStateEntry, BatchMetadata,
ProducerStateManager}, ProducerSnapshot.json, 4.0 (KIP-98).
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from typing import Final

from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import MIB, TimeMs
from broker.values import value
from log.batches.batch import NO_PRODUCER_EPOCH, RecordBatch
from log.codecs.crc import crc32c
from log.errors import CorruptSnapshotError, MissingFileError
from log.record import NO_SEQUENCE, NO_TIMESTAMP
from log.segments.file_names import DELETED, PRODUCER_SNAPSHOT, base_offset_of, file_name
from log.storage.protocol import Buffer, Storage

_BIN_COUNT_MIN: Final = 16
_BIN_SIZE_MAX: Final = 8  # HashMap.TREEIFY_THRESHOLD.
_TREE_TABLE_SIZE_MIN: Final = 64  # HashMap.MIN_TREEIFY_CAPACITY.


class ProducerTable:
    """Hold producers by id, in the iteration order of java.util.HashMap."""

    __slots__ = ("_bin_count", "_by_id")

    def __init__(self) -> None:
        self._by_id: dict[ProducerId, ProducerEntry] = {}
        self._bin_count = _BIN_COUNT_MIN

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, producer_id: ProducerId) -> ProducerEntry | None:
        """Return a producer's entry, None if it is unknown."""
        return self._by_id.get(producer_id)

    def put(self, entry: ProducerEntry) -> None:
        """Add an entry, or replace the producer's old one."""
        is_new = entry.producer_id not in self._by_id
        self._by_id[entry.producer_id] = entry
        if is_new and self._bin_count < _TREE_TABLE_SIZE_MIN and self._crowd(entry.producer_id) > _BIN_SIZE_MAX:
            self._bin_count *= 2
        if len(self._by_id) > self._bin_count // 4 * 3:
            self._bin_count *= 2

    def remove(self, producer_ids: Iterable[ProducerId]) -> None:
        """Remove some producers; the table keeps its number of bins, as in Java."""
        for producer_id in producer_ids:
            del self._by_id[producer_id]

    def clear(self) -> None:
        """Remove all producers; the table keeps its number of bins, as in Java."""
        self._by_id.clear()

    def entries(self) -> tuple[ProducerEntry, ...]:
        """Return the entries bin by bin, within a bin in insertion order."""
        return tuple(sorted(self._by_id.values(), key=lambda entry: self._bin(entry.producer_id)))

    def _bin(self, producer_id: ProducerId) -> int:
        return _java_hash(producer_id) & self._bin_count - 1

    def _crowd(self, producer_id: ProducerId) -> int:
        """Return how many producers are in the bin of one; few are looked at, as it is asked of small tables only."""
        return sum(self._bin(other) == self._bin(producer_id) for other in self._by_id)


def _java_hash(producer_id: int) -> int:
    """Return Java's scrambled hash of a long, of which the low bits are the bin."""
    unsigned = producer_id % 2**64
    folded = (unsigned ^ unsigned >> 32) % 2**32
    return folded ^ folded >> 16


RETAINED_BATCH_COUNT: Final = 5
"""As many as a producer may have on the way at once (max.in.flight.requests.per.connection)."""

NO_COORDINATOR_EPOCH: Final = -1
_SEQUENCE_COUNT: Final = 2**31


@value
class BatchMetadata:
    """Describe an appended batch; `offset_delta` is the last offset minus the first, as with sequences."""

    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp: TimeMs

    @property
    def first_sequence(self) -> int:
        """Return the sequence number of the first record."""
        return (self.last_sequence - self.offset_delta) % _SEQUENCE_COUNT

    @property
    def first_offset(self) -> Offset:
        """Return the offset of the first record."""
        return Offset(self.last_offset - self.offset_delta)


class ProducerEntry:
    """Hold the mutable state of one producer: epoch, last batches, open transaction."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: ProducerId,
        *,
        producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        last_timestamp: TimeMs = NO_TIMESTAMP,
        current_txn_first_offset: Offset | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        self.batches: deque[BatchMetadata] = deque(maxlen=RETAINED_BATCH_COUNT)

    def __repr__(self) -> str:
        return (
            f"ProducerEntry({self.producer_id}, epoch {self.producer_epoch}, sequence {self.last_sequence}, "
            f"transaction from {self.current_txn_first_offset})"
        )

    @property
    def last_sequence(self) -> int:
        """Return the sequence number of the last record, -1 if no batch is known."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> Offset:
        """Return the offset of the last record, -1 if no batch is known."""
        return self.batches[-1].last_offset if self.batches else Offset(-1)

    @property
    def last_offset_delta(self) -> int:
        """Return the last minus the first offset of the last batch, 0 if no batch is known."""
        return self.batches[-1].offset_delta if self.batches else 0

    def without_batches(self) -> ProducerEntry:
        """Return a copy of the entry without its batches."""
        return ProducerEntry(
            self.producer_id,
            producer_epoch=self.producer_epoch,
            coordinator_epoch=self.coordinator_epoch,
            last_timestamp=self.last_timestamp,
            current_txn_first_offset=self.current_txn_first_offset,
        )

    def add_batch(self, producer_epoch: ProducerEpoch, batch: BatchMetadata) -> None:
        """Add a batch of a producer epoch, dropping the oldest of five."""
        self._enter_epoch(producer_epoch)
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp

    def end_transaction(self, producer_epoch: ProducerEpoch, coordinator_epoch: int, timestamp: TimeMs) -> None:
        """Apply a transaction marker: no transaction is open afterwards."""
        self._enter_epoch(producer_epoch)
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = timestamp
        self.current_txn_first_offset = None

    def continue_with(self, later: ProducerEntry) -> None:
        """Apply a newer entry of the same producer, its batches included."""
        self._enter_epoch(later.producer_epoch)
        self.batches.extend(later.batches)
        self.coordinator_epoch = later.coordinator_epoch
        self.last_timestamp = later.last_timestamp
        self.current_txn_first_offset = later.current_txn_first_offset

    def duplicate_of(self, batch: RecordBatch) -> BatchMetadata | None:
        """Return the remembered batch with the epoch and sequences of `batch`, None if there is none."""
        if batch.producer_epoch != self.producer_epoch:
            return None
        return found_by_sequence(self.batches, batch.base_sequence, batch.last_sequence)

    def _enter_epoch(self, producer_epoch: ProducerEpoch) -> None:
        if self.producer_epoch != producer_epoch:
            self.batches.clear()
            self.producer_epoch = producer_epoch


def found_by_sequence(batches: Iterable[BatchMetadata], first: int, last: int) -> BatchMetadata | None:
    """Return the oldest batch with exactly these first and last sequence numbers."""
    return next((batch for batch in batches if batch.last_sequence == last and batch.first_sequence == first), None)


class SnapshotFiles:
    """Track the `.snapshot` files of one directory."""

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self._offsets: set[Offset] = set()
        self.directory = directory
        self.find()

    @property
    def offsets(self) -> tuple[Offset, ...]:
        """Return the offsets of all snapshots, ascending."""
        return tuple(sorted(self._offsets))

    @property
    def latest_offset(self) -> Offset | None:
        """Return the offset of the newest snapshot, None without one."""
        return max(self._offsets, default=None)

    def find(self) -> None:
        """List the directory to find its snapshots."""
        names = self._storage.list(self.directory) if self._storage.is_directory(self.directory) else ()
        offsets = (base_offset_of(name) for name in names if name.endswith(PRODUCER_SNAPSHOT))
        self._offsets = {offset for offset in offsets if offset is not None}

    def path_of(self, offset: Offset) -> str:
        """Return the path of the snapshot at an offset, whether or not it exists."""
        name = file_name(offset, PRODUCER_SNAPSHOT)
        return f"{self.directory}/{name}" if self.directory else name

    def read(self, offset: Offset, *, size_bytes_max: int) -> bytes:
        """Return the content of a snapshot."""
        return self._storage.read(self.path_of(offset), size_bytes_max=size_bytes_max)

    def write(self, offset: Offset, data: Buffer, *, sync: bool) -> str:
        """Write a snapshot and return its path."""
        path = self.path_of(offset)
        file = self._storage.open(path, create=True)
        try:
            # Over what may be there, without cutting it first: Kafka's way.
            file.write_at(0, data)
            if sync:
                file.sync()
        finally:
            file.close()
        self._offsets.add(offset)
        return path

    def remove(self, offset: Offset) -> None:
        """Remove the snapshot at an offset, if it exists."""
        self._offsets.discard(offset)
        if self._storage.exists(self.path_of(offset)):
            self._storage.remove(self.path_of(offset))

    def remove_all(self) -> None:
        """Remove every snapshot."""
        for offset in self.offsets:
            self.remove(offset)

    def remove_outside(self, log_start_offset: int, log_end_offset: int) -> None:
        """Remove the snapshots at or below the log start offset, and above the log end offset."""
        for offset in self.offsets:
            if not log_start_offset < offset <= log_end_offset:
                self.remove(offset)

    def remove_strays(self, segment_base_offsets: Iterable[int]) -> None:
        """Remove snapshots that match no segment's base offset; keep the newest if above all of them."""
        self.find()
        bases = frozenset(segment_base_offsets)
        strays = [offset for offset in self.offsets if offset not in bases]
        # Without any segment Kafka has nothing to compare the last one with, and keeps it.
        kept = {strays[-1]} if strays and strays[-1] >= max(bases, default=strays[-1]) else set()
        for offset in strays:
            if offset not in kept:
                self.remove(offset)

    def mark_for_deletion(self, offset: Offset) -> str | None:
        """Rename the snapshot at an offset to .deleted; return the new path, None if there is no such file."""
        if offset not in self._offsets:
            return None
        self._offsets.discard(offset)
        path = self.path_of(offset)
        try:
            self._storage.rename(path, path + DELETED)
        except MissingFileError:
            return None
        return path + DELETED


SNAPSHOT_VERSION: Final = 1
SNAPSHOT_BYTES_MAX: Final = 256 * MIB  # 5.8 million producers; a partition has at most thousands.

_HEADER: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
assert _HEADER.size == 6
PRODUCER_SIZE_BYTES: Final = _ENTRY.size
assert PRODUCER_SIZE_BYTES == 46

_NONE: Final = -1


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """Return the content of a snapshot with the producers in the given order."""
    packed = [
        _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_data_offset,
            entry.last_offset_delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            _NONE if entry.current_txn_first_offset is None else entry.current_txn_first_offset,
        )
        for entry in entries
    ]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEADER.pack(SNAPSHOT_VERSION, crc32c(body)) + body


def parse_snapshot(data: Buffer, *, source: str = "") -> tuple[ProducerEntry, ...]:
    """Return the producers in a snapshot, in file order; raise CorruptSnapshotError."""
    start = _HEADER.size + _COUNT.size
    if len(data) < start:
        raise CorruptSnapshotError(f"has {len(data)} bytes, fewer than the {start} of its header", source=source)
    version, crc = _HEADER.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise CorruptSnapshotError(f"version {version}; {SNAPSHOT_VERSION} is known", source=source, position=0)
    (count,) = _COUNT.unpack_from(data, _HEADER.size)
    end = start + count * _ENTRY.size
    if count < 0 or end > len(data):
        raise CorruptSnapshotError(
            f"{count} producers announced in {len(data)} bytes", source=source, position=_HEADER.size
        )
    view = memoryview(data)
    computed_crc = crc32c(view[_HEADER.size :])
    if crc != computed_crc:
        raise CorruptSnapshotError(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. Computed crc: {computed_crc}",
            source=source,
            position=2,
        )
    return tuple(_entry_of(*fields) for fields in _ENTRY.iter_unpack(view[start:end]))


def _entry_of(
    producer_id: int, epoch: int, sequence: int, offset: int, delta: int, timestamp: int, coordinator: int, txn: int
) -> ProducerEntry:
    """Return the entry that one row of a snapshot describes."""
    entry = ProducerEntry(
        ProducerId(producer_id),
        producer_epoch=ProducerEpoch(epoch),
        coordinator_epoch=coordinator,
        last_timestamp=TimeMs(timestamp),
        current_txn_first_offset=Offset(txn) if txn >= 0 else None,
    )
    if offset >= 0:
        entry.batches.append(BatchMetadata(sequence, Offset(offset), delta, TimeMs(timestamp)))
    return entry
