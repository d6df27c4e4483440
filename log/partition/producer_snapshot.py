"""Write and read the `.snapshot` file of the producers of a log up to an offset.

Source: Kafka storage/ProducerStateManager.{readSnapshot, writeSnapshot}, ProducerSnapshot.json, 4.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import MIB, TimeMs
from log.codecs.crc import crc32c
from log.errors import CorruptSnapshotError, MissingFileError
from log.partition.producer_entry import BatchMetadata, ProducerEntry
from log.segments.file_names import DELETED, PRODUCER_SNAPSHOT, base_offset_of, file_name
from log.storage.protocol import Buffer, Storage


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
