"""Real files below one directory.

Decides how the promises of `log.storage.protocol` are kept on a file system.

Goals, most important first
1. Nothing outside the root is read or changed: no path leads out of it, no symbolic link is followed below it.
2. A view may be kept for ever: nothing that is done to the file later ends the process or changes what it shows.
3. Reads copy nothing: a view is a mapping of the file.

How
`view` maps the file and keeps the mapping until the file has outgrown it; older mappings live as long as something
looks at them. Bytes of a mapping that lie behind the end of its file must not be touched: the system answers with a
signal that ends the process. So a cut first asks whether anybody looks. If nobody does, the file is cut in place; else
what is kept is copied to `NAME.tmp`, synced, and renamed over the file: the views keep the old one.

When bytes reach the disk is the owner's choice, `SyncPolicy`. A storage that is `read_only` refuses each change with
UsageError, so that a tool that only looks cannot do harm.

Example: FileStorage(Path("/var/lib/kafka"), read_only=True).open("topic-0/00000000000000000000.log").view()

Left out: two open files of one name at a time, of which one cuts; a file that somebody else cuts while it is mapped.

Source: Kafka's FileRecords, FileLock, Utils.{atomicMoveWithFallback, flushDir, delete}, 4.0.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import shutil
import stat
from enum import Enum
from pathlib import Path
from typing import Final
from weakref import WeakSet, WeakValueDictionary

from broker.errors import UsageError
from broker.units import SizeBytes, TimeMs
from log.errors import LockedError, MissingFileError, StorageError
from log.storage.overwriting import Overwriting
from log.storage.protocol import (
    TEMPORARY_SUFFIX,
    Buffer,
    check_same_directory,
    check_size,
    checked_path,
    parent_of,
    replace_in_steps,
)

_NS_PER_MS: Final = 1_000_000
# A link at the end of a path is refused, and a named pipe must not keep us waiting for its other end.
_OPEN_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class SyncPolicy(Enum):
    """When changes reach the disk."""

    ALWAYS = "always"  # After every change, asked or not: slow, and nothing is ever lost.
    WHEN_ASKED = "when asked"  # At `sync` and `sync_directory`, as Kafka does.
    NEVER = "never"  # Only when the system feels like it: for tests and throw-away copies.


_ALWAYS: Final = SyncPolicy.ALWAYS  # Naming a member of an enum takes 0.2 µs in Python 3.11.


_LOCKED: Final[WeakValueDictionary[tuple[int, int], RealFile]] = WeakValueDictionary()
"""Who in this process has the lock of a file, by device and inode: to the system a process is one user."""


class RealFile:
    """An open file. One owner at a time."""

    def __init__(self, storage: FileStorage, path: str, descriptor: int) -> None:
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
        """Number of bytes."""
        return self._size_bytes

    def append(self, data: Buffer) -> int:
        """Add `data` at the end and return the position of its first byte."""
        position = self._size_bytes
        self.write_at(position, data)
        return position

    def write_at(self, position: int, data: Buffer) -> None:
        """Put `data` at `position`, over what is there; the file grows where needed."""
        assert position >= 0, position
        storage = self._storage
        if storage.read_only:
            storage.check_writable()
        size_bytes = len(data)
        if not size_bytes:
            return
        end = position + size_bytes
        try:  # What `_Translated` does, without a call: this is the one place where that shows.
            if end > self._size_bytes or not self._is_put_over(position, end, data):
                written = os.pwrite(self._descriptor, data, position)
                if written < size_bytes:
                    _write_fully(self._descriptor, memoryview(data)[written:], position + written)
        except OSError as refusal:
            raise _translated("write", self.path, refusal) from refusal
        if end > self._size_bytes:
            self._size_bytes = SizeBytes(end)
        if storage.sync_policy is _ALWAYS:
            self.sync()

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return a copy of up to `size_bytes` bytes from `position`."""
        assert position >= 0, position
        assert size_bytes >= 0, size_bytes
        with _Translated("read", self.path):
            return os.pread(self._descriptor, min(size_bytes, max(0, self._size_bytes - position)), position)

    def view(self) -> memoryview:
        """Return the file, mapped; mapped anew only when it has outgrown the last mapping."""
        if self._size_bytes == 0:
            return memoryview(b"")
        if self._mapping is None or len(self._mapping) < self._size_bytes:
            with _Translated("map", self.path):
                self._mapping = mmap.mmap(self._descriptor, self._size_bytes, access=mmap.ACCESS_READ)
            self._mappings.add(self._mapping)
        return memoryview(self._mapping)[: self._size_bytes]

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to `size_bytes`, or grow it with zeros. Copies what is kept if a view of the file is in use."""
        assert size_bytes >= 0, size_bytes
        if size_bytes == self._size_bytes:
            return
        self._storage.check_writable()
        self._over = None
        with _Translated("truncate", self.path):
            if size_bytes < self._size_bytes and self._is_looked_at():
                self._continue_in_copy(size_bytes)
            else:
                os.ftruncate(self._descriptor, size_bytes)
        self._size_bytes = SizeBytes(size_bytes)
        self._changed()

    def sync(self) -> None:
        """Make the content durable, unless the policy is NEVER."""
        if self._storage.sync_policy is not SyncPolicy.NEVER:
            with _Translated("sync", self.path):
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
        with _Translated("lock", path):
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):  # POSIX leaves the system the choice of these two.
                reason = "another process, a broker maybe, uses this directory"
                raise LockedError("lock", path, reason) from None
        _LOCKED[identity] = self
        self._locked = identity

    def close(self) -> None:
        """Give the file back; views stay."""
        self._give_back()
        self._mapping = self._over = None

    def _is_put_over(self, position: int, end: int, data: Buffer) -> bool:
        """Write over what is there through memory; tell whether that could be done."""
        over = self._over
        if over is None or end > over.size_bytes:
            over = self._over = Overwriting(self._descriptor, self._size_bytes)
        if not over.can_put(position, end):
            return False
        over.put(position, end, data)
        return True

    def _changed(self) -> None:
        if self._storage.sync_policy is _ALWAYS:
            self.sync()

    def _is_looked_at(self) -> bool:
        """Tell whether a view is in use, and unmap what nobody uses."""
        self._mapping = None
        for mapping in tuple(self._mappings):
            try:
                mapping.close()
            except BufferError:  # What Python says of a mapping with views.
                return True
        return False

    def _continue_in_copy(self, size_bytes: int) -> None:
        """Go on with a copy of the first `size_bytes` bytes under the same name; the views keep the file as it was."""
        real = self._storage.real_path(self.path)
        temporary = real + TEMPORARY_SUFFIX
        copy = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | _OPEN_FLAGS, 0o644)
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


class FileStorage:
    """`Storage` over a real directory, which is made if it is missing and may be written to."""

    def __init__(self, root: Path, *, sync_policy: SyncPolicy = SyncPolicy.WHEN_ASKED, read_only: bool = False) -> None:
        self.sync_policy = sync_policy
        self.read_only = read_only
        with _Translated("open", str(root)):
            if not read_only:
                root.mkdir(parents=True, exist_ok=True)
            self._root = os.path.realpath(root, strict=True)
        self._open_files: WeakSet[RealFile] = WeakSet()

    def __repr__(self) -> str:
        return f"FileStorage({self._root!r})"

    def check_writable(self) -> None:
        """Raise UsageError if the storage only reads."""
        if self.read_only:
            raise UsageError(f"{self._root} was opened to be read only; nothing is written to it")

    def real_path(self, path: str) -> str:
        """Return where `path` really is; raise UsageError if a link on the way leads elsewhere."""
        if not path:
            return self._root
        holder = self._root
        for name in checked_path(path).split("/")[:-1]:  # The root itself has no links in it.
            holder = f"{holder}/{name}"
            if os.path.islink(holder):
                raise UsageError(
                    f"path {path!r} leads through a symbolic link; links are not followed below {self._root}"
                )
        return f"{self._root}/{path}"

    def open(self, path: str, *, create: bool = False) -> RealFile:
        """Open a file; make an empty one if it is missing and `create` is given, else raise MissingFileError."""
        real = self.real_path(path)
        flags = (os.O_RDONLY if self.read_only else os.O_RDWR) | _OPEN_FLAGS
        with _Translated("open", path):
            if create and not self.read_only:
                flags |= os.O_CREAT
            descriptor = os.open(real, flags, 0o644)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise StorageError("open", path, "is not a regular file")
        file = RealFile(self, path, descriptor)
        self._open_files.add(file)
        return file

    def exists(self, path: str) -> bool:
        """Tell whether there is a file or directory; what a link names does not count."""
        return os.path.lexists(self.real_path(path)) and not os.path.islink(self.real_path(path))

    def is_directory(self, path: str) -> bool:
        """Tell whether there is a directory."""
        return self.exists(path) and os.path.isdir(self.real_path(path))

    def list(self, directory: str = "") -> tuple[str, ...]:
        """Return the names of the files and directories in `directory`, sorted; raise MissingFileError without it."""
        with _Translated("list", directory):
            return tuple(sorted(os.listdir(self.real_path(directory))))

    def size_bytes(self, path: str) -> SizeBytes:
        """Return the size of a file."""
        with _Translated("look up", path):
            return SizeBytes(os.lstat(self.real_path(path)).st_size)

    def modified_ms(self, path: str) -> TimeMs:
        """Return when the content of a file was changed last."""
        with _Translated("look up", path):
            return TimeMs(os.lstat(self.real_path(path)).st_mtime_ns // _NS_PER_MS)

    def set_modified_ms(self, path: str, modified_ms: TimeMs) -> None:
        """Say when the content of a file was changed last."""
        self.check_writable()
        with _Translated("set the time of", path):
            time_ns = modified_ms * _NS_PER_MS
            os.utime(self.real_path(path), ns=(time_ns, time_ns), follow_symlinks=False)

    def rename(self, path: str, new_path: str) -> None:
        """Give a file or directory another name in the same directory, over a file that may be there, in one step."""
        self.check_writable()
        check_same_directory(checked_path(path), checked_path(new_path))
        with _Translated("rename", path):
            os.replace(self.real_path(path), self.real_path(new_path))
        for file in tuple(self._open_files):
            if file.path == path or file.path.startswith(path + "/"):
                file.path = new_path + file.path[len(path) :]
        self._names_changed(path)

    def remove(self, path: str) -> None:
        """Remove a file; raise MissingFileError without it."""
        self.check_writable()
        with _Translated("remove", path):
            os.unlink(self.real_path(path))
        self._names_changed(path)

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it; one that is there is left as it is."""
        self.check_writable()
        if self.is_directory(path):
            return
        self.make_directory(parent_of(path))
        with _Translated("make directory", path):
            os.mkdir(self.real_path(path))
        self._names_changed(path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it; raise MissingFileError without it."""
        self.check_writable()
        if path == "":
            raise UsageError("the root of a storage cannot be removed")
        with _Translated("remove directory", path):
            shutil.rmtree(self.real_path(path))
        self._names_changed(path)

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable, unless the policy is NEVER."""
        if self.sync_policy is SyncPolicy.NEVER:
            return
        with _Translated("sync directory", path):
            descriptor = os.open(self.real_path(path), os.O_RDONLY | os.O_DIRECTORY | _OPEN_FLAGS)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def read(self, path: str, *, size_bytes_max: int | None = None) -> bytes:
        """Return a file's content; raise CorruptDataError, before reading, if it is larger than `size_bytes_max`."""
        file = self.open(path)
        try:
            check_size(file.size_bytes, size_bytes_max, path)
            return file.read_at(0, file.size_bytes)
        finally:
            file.close()

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the content of a file, old or new being whole after a crash at any moment."""
        replace_in_steps(self, path, data)

    def _names_changed(self, path: str) -> None:
        if self.sync_policy is _ALWAYS:
            self.sync_directory(parent_of(path))


class _Translated:
    """Turns what the system says into our errors; a class, as what is written and read in small pieces goes through."""

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
            raise _translated(self._operation, self._path, refusal) from refusal


def _translated(operation: str, path: str, refusal: OSError) -> StorageError:
    return StorageError(operation, path, refusal.strerror or str(refusal))


def _write_fully(descriptor: int, data: Buffer, position: int) -> None:
    """Write all of `data`, however little the system takes at a time."""
    written = os.pwrite(descriptor, data, position)
    while written < len(data):
        more = os.pwrite(descriptor, memoryview(data)[written:], position + written)
        assert more > 0, (written, len(data))
        written += more
