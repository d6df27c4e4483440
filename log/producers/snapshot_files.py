"""Find, write and remove the producer snapshot files of a partition's directory.

What it decides: which snapshots are kept: those at the base offset of a segment, and one above all of them, as a
shutdown leaves it.

Constraints: a file is known by its offset; one that is gone when it should be removed is no fault.

Example: segments at 0, 100, 200 and snapshots at 50, 100, 150, 250: 50 and 150 are strays, 250 is kept.

Left out: names that are no offset, which end Kafka's start; they are left alone here.

Source: Kafka storage/org.apache.kafka.storage.internals.log.{ProducerStateManager, SnapshotFile}, 4.0.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.ids import Offset
from log.errors import MissingFileError
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
