"""Record every change to a storage, so that `tests.support.crash` can compute the states after power loss.

What it decides: what counts as a change, and in which order changes came.

Goals, most important first: without a recording there is no cost, as the recorder wraps a storage; a recording is a
value.

Constraints: every change is written down when it has happened: bytes written, sizes set, names made, moved and removed,
and what was synced, or failed to be. Of a write that failed half-way, what arrived is written down.

How:
Files and directories are numbered when they appear, as a file system numbers its inodes, so that a change of a file's
content and a change of its name stay apart.

Example: storage = RecordedStorage(MemoryStorage(clock)); use it; crash_states(storage.recording()).

Left out: times of modification; a crash makes them new.

Source: the tracing of ALICE (Pillai et al., OSDI 2014) and of CrashMonkey (Mohan et al., OSDI 2018).
"""

from __future__ import annotations

from typing import Final, NewType, TypeAlias

import attrs

from log.errors import StorageError
from log.storage.faults import FileAround, StorageAround
from log.storage.protocol import Buffer, Storage, StoredFile, parent_of, replace_in_steps
from tests.support.disk_image import DiskImage, image_of

Inode = NewType("Inode", int)
"""Number of a file or directory; never used twice."""

ROOT_INODE: Final = Inode(0)


@attrs.frozen
class Write:
    """Record the bytes written into a file."""

    inode: Inode
    position: int
    data: bytes


@attrs.frozen
class Resize:
    """Record that a file was cut, or extended with zeros."""

    inode: Inode
    size_bytes: int


@attrs.frozen
class Sync:
    """Record a file's sync, which made its content durable or failed."""

    inode: Inode
    failed: bool = False


@attrs.frozen
class Link:
    """Record a name added for a new file or directory."""

    directory: Inode
    name: str
    inode: Inode
    is_directory: bool = False


@attrs.frozen
class Unlink:
    """Record a name removed from a directory."""

    directory: Inode
    name: str


@attrs.frozen
class Move:
    """Record the renaming of a file or directory, possibly over another."""

    directory: Inode
    name: str
    new_name: str


@attrs.frozen
class SyncDirectory:
    """Record a directory's sync, which made its names durable."""

    directory: Inode


Operation: TypeAlias = Write | Resize | Sync | Link | Unlink | Move | SyncDirectory


@attrs.frozen
class Recording:
    """Hold the durable content at the start, and the later changes in order."""

    start: DiskImage
    start_inodes: dict[str, Inode]
    operations: tuple[Operation, ...]


class RecordedFile(FileAround):
    """Record the changes of one open file of a `RecordedStorage`."""

    def __init__(self, file: StoredFile, inode: Inode, operations: list[Operation]) -> None:
        super().__init__(file)
        self._inode = inode
        self._operations = operations

    def write_at(self, position: int, data: Buffer) -> None:
        """Write `data` at `position`; if the write fails, record the bytes that arrived."""
        try:
            self._file.write_at(position, data)
        except StorageError:
            arrived = self._file.read_at(position, len(data))
            if arrived:
                self._operations.append(Write(self._inode, position, arrived))
            raise
        if len(data):
            self._operations.append(Write(self._inode, position, bytes(data)))

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to `size_bytes`, or extend it with zeros."""
        is_change = size_bytes != self._file.size_bytes
        self._file.truncate(size_bytes)
        if is_change:
            self._operations.append(Resize(self._inode, size_bytes))

    def sync(self) -> None:
        """Make the content durable; a failed sync is recorded too, as its changes may be lost."""
        try:
            self._file.sync()
        except StorageError:
            self._operations.append(Sync(self._inode, failed=True))
            raise
        self._operations.append(Sync(self._inode))


class RecordedStorage(StorageAround):
    """Wrap a storage and record its changes; the content at the start counts as durable."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self._start = image_of(storage)
        self._operations: list[Operation] = []
        self._inodes: dict[str, Inode] = {"": ROOT_INODE}
        self._inode_count = 1
        for path in sorted([*self._start.directories, *self._start.files]):
            self._number(path)
        self._start_inodes = dict(self._inodes)

    def recording(self) -> Recording:
        """Return the changes so far."""
        return Recording(self._start, self._start_inodes, tuple(self._operations))

    def open(self, path: str, *, create: bool = False) -> RecordedFile:
        """Open a file; if missing, make an empty one with `create`, else raise MissingFileError."""
        file = self._storage.open(path, create=create)
        if path not in self._inodes:
            self._operations.append(Link(self._inodes[parent_of(path)], _name_of(path), self._number(path)))
        return RecordedFile(file, self._inodes[path], self._operations)

    def rename(self, path: str, new_path: str) -> None:
        """Rename a file or directory within its directory."""
        self._storage.rename(path, new_path)
        for old in [known for known in self._inodes if known == path or known.startswith(path + "/")]:
            self._inodes[new_path + old[len(path) :]] = self._inodes.pop(old)
        self._operations.append(Move(self._inodes[parent_of(path)], _name_of(path), _name_of(new_path)))

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._storage.remove(path)
        self._unlink(path)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents."""
        self._storage.make_directory(path)
        if path not in self._inodes:
            self.make_directory(parent_of(path))
            directory = self._inodes[parent_of(path)]
            self._operations.append(Link(directory, _name_of(path), self._number(path), is_directory=True))

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it, the deepest first."""
        below = sorted((known for known in self._inodes if known.startswith(path + "/")), reverse=True)
        self._storage.remove_directory(path)
        for known in [*below, path]:
            self._unlink(known)

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""
        self._storage.sync_directory(path)
        self._operations.append(SyncDirectory(self._inodes[path]))

    def read(self, path: str, *, size_bytes_max: int | None = None) -> bytes:
        """Return a file's content."""
        return self._storage.read(path, size_bytes_max=size_bytes_max)

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the content of a file, in the steps that a file system needs."""
        replace_in_steps(self, path, data)

    def _number(self, path: str) -> Inode:
        inode = Inode(self._inode_count)
        self._inode_count += 1
        self._inodes[path] = inode
        return inode

    def _unlink(self, path: str) -> None:
        self._operations.append(Unlink(self._inodes[parent_of(path)], _name_of(path)))
        del self._inodes[path]


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]
