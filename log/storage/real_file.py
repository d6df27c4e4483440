"""Read an open file through a mapping, and never cut the file under a view.

Source: Kafka's FileRecords and FileLock, 4.0.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from enum import Enum
from typing import Final, Protocol
from weakref import WeakSet, WeakValueDictionary

from broker.units import KIB, SizeBytes
from log.errors import LockedError, MissingFileError, StorageError
from log.storage.protocol import TEMPORARY_SUFFIX, Buffer

ROOM_BYTES: Final = 64 * KIB
"""Bytes allocated at once."""

_CANNOT: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENODEV})
_IS_KNOWN: Final = hasattr(os, "posix_fallocate")


class Overwriting:
    """Map the first `size_bytes` bytes of an open file, at least one, for writing."""

    __slots__ = ("_descriptor", "_memory", "_room_end", "_room_start", "size_bytes")

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        """Map the file; raise OSError."""
        self._descriptor = descriptor
        self._memory = mmap.mmap(descriptor, size_bytes) if _IS_KNOWN else None
        self._room_start = self._room_end = 0
        self.size_bytes = size_bytes

    def can_put(self, start: int, end: int) -> bool:
        """Return whether `put` may write the bytes from `start` to before `end`; raise OSError if the disk is full."""
        if self._room_start <= start and end <= self._room_end:
            return True
        if self._memory is None:
            return False
        room_start = start - start % ROOM_BYTES
        room_end = min(max(end, room_start + ROOM_BYTES), self.size_bytes)
        try:
            os.posix_fallocate(self._descriptor, room_start, room_end - room_start)
        except OSError as refusal:
            if refusal.errno not in _CANNOT:
                raise
            self._memory = None
            return False
        self._room_start, self._room_end = room_start, room_end
        return True

    def put(self, start: int, end: int, data: Buffer) -> None:
        """Overwrite the bytes from `start` to before `end` with `data`; call `can_put` for that range first."""
        memory = self._memory
        assert memory is not None, start
        memory[start:end] = data


class Refusals:
    """Turn OSError into MissingFileError or StorageError, as a context manager cheap enough for small writes."""

    __slots__ = ("_operation", "_path")

    def __init__(self, operation: str, path: str) -> None:
        self._operation = operation
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, refusal: BaseException | None, trace: object) -> None:
        if isinstance(refusal, FileNotFoundError):
            raise MissingFileError(self._operation, self._path, "no such file or directory") from None
        if isinstance(refusal, OSError):
            raise refused(self._operation, self._path, refusal) from refusal


def refused(operation: str, path: str, refusal: OSError) -> StorageError:
    """Return the StorageError for an OSError other than a missing file."""
    return StorageError(operation, path, refusal.strerror or str(refusal))


# A link at the end of a path is refused, and a named pipe must not keep us waiting for its other end.
OPEN_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class SyncPolicy(Enum):
    """Select when changes are synced to the disk."""

    ALWAYS = "always"  # After every change, asked or not: slow, and nothing is ever lost.
    WHEN_ASKED = "when asked"  # At `sync` and `sync_directory`, as Kafka does.
    AT_END = "at the end"  # A file before it takes another's name; the rest when the owner calls `sync_all`.
    NEVER = "never"  # Only when the system feels like it: for tests and throw-away copies.

    @property
    def syncs_at_once(self) -> bool:
        """Return whether `sync` and `sync_directory` do what they say at once."""
        return self in (SyncPolicy.ALWAYS, SyncPolicy.WHEN_ASKED)


_ALWAYS: Final = SyncPolicy.ALWAYS  # Naming a member of an enum takes 0.2 µs in Python 3.11.


_LOCKED: Final[WeakValueDictionary[tuple[int, int], RealFile]] = WeakValueDictionary()
"""Who in this process has the lock of a file, by device and inode: to the system a process is one user."""


class Owner(Protocol):
    """Define what an open file asks of its storage: whether writing is allowed, and the file's real path."""

    sync_policy: SyncPolicy
    read_only: bool

    def check_writable(self) -> None:
        """Raise UsageError if the storage is read-only."""

    def real_path(self, path: str) -> str:
        """Return the file system's path of `path`."""


class RealFile:
    """Read and write an open file of the file system, for one owner at a time."""

    def __init__(self, storage: Owner, path: str, descriptor: int) -> None:
        self._storage = storage
        self._descriptor = descriptor
        self._locked: tuple[int, int] | None = None
        self._refused: list[int] = []
        """Descriptors of the same file that were refused the lock."""
        self._size_bytes = SizeBytes(os.fstat(descriptor).st_size)
        self._mapping: mmap.mmap | None = None
        self._mappings: WeakSet[mmap.mmap] = WeakSet()
        self._over: Overwriting | None = None
        self.path = path

    def __del__(self) -> None:
        self._give_back()

    def _give_back(self) -> None:
        if self._locked is not None:
            _LOCKED.pop(self._locked, None)
            self._locked = None
        for descriptor in (self._descriptor, *self._refused):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor, self._refused = -1, []

    @property
    def size_bytes(self) -> SizeBytes:
        """Return the size of the file in bytes."""
        return self._size_bytes

    def append(self, data: Buffer) -> int:
        """Append `data` and return the position of its first byte."""
        position = self._size_bytes
        self.write_at(position, data)
        return position

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite or extend the file with `data` at `position`."""
        assert position >= 0, position
        storage = self._storage
        if storage.read_only:
            storage.check_writable()
        size_bytes = len(data)
        if not size_bytes:
            return
        end = position + size_bytes
        try:  # What `Refusals` does, without a call: this is the one place where that shows.
            if end > self._size_bytes or not self._is_put_over(position, end, data):
                written = os.pwrite(self._descriptor, data, position)
                if written < size_bytes:
                    _write_fully(self._descriptor, memoryview(data)[written:], position + written)
        except OSError as refusal:
            raise refused("write", self.path, refusal) from refusal
        if end > self._size_bytes:
            self._size_bytes = SizeBytes(end)
        if storage.sync_policy is _ALWAYS:
            self.sync()

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return a copy of up to `size_bytes` bytes from `position`."""
        assert position >= 0, position
        assert size_bytes >= 0, size_bytes
        with Refusals("read", self.path):
            return os.pread(self._descriptor, min(size_bytes, max(0, self._size_bytes - position)), position)

    def view(self) -> memoryview:
        """Return a mapping of the file; the mapping is renewed only once the file has outgrown it."""
        if self._size_bytes == 0:
            return memoryview(b"")
        if self._mapping is None or len(self._mapping) < self._size_bytes:
            with Refusals("map", self.path):
                self._mapping = mmap.mmap(self._descriptor, self._size_bytes, access=mmap.ACCESS_READ)
            self._mappings.add(self._mapping)
        return memoryview(self._mapping)[: self._size_bytes]

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to `size_bytes`, or extend it with zeros; a cut under a view copies the rest of the file."""
        assert size_bytes >= 0, size_bytes
        if size_bytes == self._size_bytes:
            return
        self._storage.check_writable()
        self._over = None
        with Refusals("truncate", self.path):
            if size_bytes < self._size_bytes and self._is_looked_at():
                self._continue_in_copy(size_bytes)
            else:
                os.ftruncate(self._descriptor, size_bytes)
        self._size_bytes = SizeBytes(size_bytes)
        if self._storage.sync_policy is _ALWAYS:
            self.sync()

    def sync(self) -> None:
        """Make the content durable, unless the policy is NEVER or AT_END."""
        if self._storage.sync_policy.syncs_at_once:
            with Refusals("sync", self.path):
                os.fsync(self._descriptor)

    def lock(self) -> None:
        """Keep other processes from locking the file until it is closed; raise LockedError if one has."""
        self._storage.check_writable()
        path, found = self._storage.real_path(self.path), os.fstat(self._descriptor)
        identity = found.st_dev, found.st_ino
        holder = _LOCKED.get(identity)
        if holder is not None:
            # Closing this handle now would give the system's lock back, which is the process's: the holder closes it.
            holder._refused.append(self._descriptor)
            self._descriptor = -1
            raise LockedError("lock", path, "this process uses this directory already")
        with Refusals("lock", path):
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):  # POSIX leaves the system the choice of these two.
                reason = "another process, a broker maybe, uses this directory"
                raise LockedError("lock", path, reason) from None
        _LOCKED[identity] = self
        self._locked = identity

    def close(self) -> None:
        """Close the file; views stay valid."""
        self._give_back()
        self._mapping = self._over = None

    def _is_put_over(self, position: int, end: int, data: Buffer) -> bool:
        """Overwrite bytes through memory; return whether that was possible."""
        over = self._over
        if over is None or end > over.size_bytes:
            over = self._over = Overwriting(self._descriptor, self._size_bytes)
        if not over.can_put(position, end):
            return False
        over.put(position, end, data)
        return True

    def _is_looked_at(self) -> bool:
        """Return whether a view is in use, and unmap unused mappings."""
        self._mapping = None
        for mapping in tuple(self._mappings):
            try:
                mapping.close()
            except BufferError:  # What Python says of a mapping with views.
                return True
        return False

    def _continue_in_copy(self, size_bytes: int) -> None:
        """Replace the file by a copy of its first `size_bytes` bytes; views keep the old file."""
        real = self._storage.real_path(self.path)
        temporary = real + TEMPORARY_SUFFIX
        copy = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | OPEN_FLAGS, 0o644)
        try:
            with (
                mmap.mmap(self._descriptor, self._size_bytes, access=mmap.ACCESS_READ) as mapping,
                memoryview(mapping) as whole,
                whole[:size_bytes] as kept,
            ):
                _write_fully(copy, kept, 0)
            if self._storage.sync_policy is not SyncPolicy.NEVER:
                os.fsync(copy)
            os.replace(temporary, real)
        except OSError:
            os.close(copy)
            raise
        os.close(self._descriptor)
        self._descriptor = copy


def _write_fully(descriptor: int, data: Buffer, position: int) -> None:
    """Write all of `data`, in as many system calls as needed."""
    written = os.pwrite(descriptor, data, position)
    while written < len(data):
        more = os.pwrite(descriptor, memoryview(data)[written:], position + written)
        assert more > 0, (written, len(data))
        written += more
