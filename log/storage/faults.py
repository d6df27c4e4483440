"""Inject one disk fault, at a chosen file and a chosen operation; everything before and after works.

A path matches a pattern as a shell's would; the file that `replace` writes first counts as the one that it replaces. A
fault strikes once, at the first operation of its kind on a path that matches, after `passed_count` others.

Source: Ganesan et al., Redundancy Does Not Imply Fault Tolerance (FAST 2017); Rebello et al. (USENIX ATC 2020).
"""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

import attrs

from broker.units import SizeBytes, TimeMs
from log.errors import StorageError
from log.storage.protocol import TEMPORARY_SUFFIX, Buffer, Storage, StoredFile, replace_in_steps


class StorageAround:
    """Pass every operation on to another storage; `FaultyStorage` overrides some."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory at `path`."""
        return self._storage.exists(path)

    def is_directory(self, path: str) -> bool:
        """Return whether there is a directory at `path`."""
        return self._storage.is_directory(path)

    def list(self, directory: str = "") -> tuple[str, ...]:
        """Return the names of the files and directories in `directory`, sorted."""
        return self._storage.list(directory)

    def size_bytes(self, path: str) -> SizeBytes:
        """Return the size of a file in bytes."""
        return self._storage.size_bytes(path)

    def modified_ms(self, path: str) -> TimeMs:
        """Return the modification time of a file, in milliseconds."""
        return self._storage.modified_ms(path)

    def set_modified_ms(self, path: str, modified_ms: TimeMs) -> None:
        """Set the modification time of a file, in milliseconds."""
        self._storage.set_modified_ms(path, modified_ms)


class FileAround:
    """Pass every operation on to another open file; `append` calls `write_at`, which a subclass may override."""

    def __init__(self, file: StoredFile) -> None:
        self._file = file

    @property
    def size_bytes(self) -> SizeBytes:
        """Return the size of the file in bytes."""
        return self._file.size_bytes

    def append(self, data: Buffer) -> int:
        """Append `data` and return the position of its first byte."""
        position = self._file.size_bytes
        self.write_at(position, data)
        return position

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite or extend the file with `data` at `position`."""
        self._file.write_at(position, data)

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return a copy of up to `size_bytes` bytes from `position`."""
        return self._file.read_at(position, size_bytes)

    def view(self) -> memoryview:
        """Return a view of the whole file."""
        return self._file.view()

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to `size_bytes`, or extend it with zeros."""
        self._file.truncate(size_bytes)

    def sync(self) -> None:
        """Make the content durable."""
        self._file.sync()

    def lock(self) -> None:
        """Keep other processes from locking the file."""
        self._file.lock()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class FaultKind(Enum):
    """List the kinds of disk faults.

    A torn write stores its first half and fails; what a failed sync was to save will never be durable; after a bit flip
    or zero fill, which succeed, one bit in the middle is wrong, or the second half is zeros.
    """

    TORN_WRITE = "torn write"
    NO_SPACE = "no space left"
    READ_ERROR = "read error"
    FAILED_SYNC = "failed sync"
    BIT_FLIP = "bit flip"
    ZERO_FILL = "zero fill"


WRITE_FAULTS: Final = frozenset(
    {FaultKind.TORN_WRITE, FaultKind.NO_SPACE, FaultKind.BIT_FLIP, FaultKind.ZERO_FILL},
)
"""The faults that strike at a write."""


@attrs.frozen
class Fault:
    """Describe a fault: path pattern, kind, and the number of matching operations that pass before it strikes."""

    pattern: str
    kind: FaultKind
    passed_count: int = 0


class FaultyStorage(StorageAround):
    """Wrap a storage and inject one fault; `has_struck` is true once the fault has happened."""

    def __init__(self, storage: Storage, fault: Fault) -> None:
        super().__init__(storage)
        self._fault = fault
        self._waiting_count = fault.passed_count
        self.has_struck = False

    def strikes(self, path: str, kinds: frozenset[FaultKind]) -> FaultKind | None:
        """Return the fault if its kind is one of `kinds` and it strikes at this operation on `path`."""
        named = path.removesuffix(TEMPORARY_SUFFIX)
        if self.has_struck or self._fault.kind not in kinds or not fnmatchcase(named, self._fault.pattern):
            return None
        self._waiting_count -= 1
        self.has_struck = self._waiting_count < 0
        return self._fault.kind if self.has_struck else None

    def check(self, operation: str, path: str, kind: FaultKind) -> None:
        """Raise StorageError if a fault of `kind` strikes at this operation on `path`."""
        if self.strikes(path, frozenset({kind})) is not None:
            raise StorageError(operation, path, kind.value)

    def open(self, path: str, *, create: bool = False) -> StoredFile:
        """Open a file."""
        return FaultyFile(self._storage.open(path, create=create), path, self)

    def rename(self, path: str, new_path: str) -> None:
        """Rename a file or directory."""
        self._storage.rename(path, new_path)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._storage.remove(path)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents."""
        self._storage.make_directory(path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it."""
        self._storage.remove_directory(path)

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable, or raise the injected fault."""
        self.check("sync directory", path, FaultKind.FAILED_SYNC)
        self._storage.sync_directory(path)

    def read(self, path: str, *, size_bytes_max: int | None = None) -> bytes:
        """Return a file's content, or raise the injected fault."""
        self.check("read", path, FaultKind.READ_ERROR)
        return self._storage.read(path, size_bytes_max=size_bytes_max)

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the content of a file, in steps at each of which the fault may strike."""
        replace_in_steps(self, path, data)


class FaultyFile(FileAround):
    """Inject the fault of a `FaultyStorage` into one open file."""

    def __init__(self, file: StoredFile, path: str, storage: FaultyStorage) -> None:
        super().__init__(file)
        self._path = path
        self._storage = storage

    def write_at(self, position: int, data: Buffer) -> None:
        """Write `data` at `position`, or the part or the wrong bytes that the fault leaves."""
        half = len(data) // 2
        match self._storage.strikes(self._path, WRITE_FAULTS):
            case None:
                self._file.write_at(position, data)
            case FaultKind.BIT_FLIP if len(data):
                flipped = bytearray(data)
                flipped[half] ^= 1
                self._file.write_at(position, flipped)
            case FaultKind.ZERO_FILL:
                self._file.write_at(position, bytes(data[:half]) + bytes(len(data) - half))
            case FaultKind.TORN_WRITE:
                self._file.write_at(position, bytes(data[:half]))
                raise StorageError("write", self._path, FaultKind.TORN_WRITE.value)
            case _:
                raise StorageError("write", self._path, FaultKind.NO_SPACE.value)

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return a copy of up to `size_bytes` bytes from `position`, or raise the injected fault."""
        self._storage.check("read", self._path, FaultKind.READ_ERROR)
        return self._file.read_at(position, size_bytes)

    def view(self) -> memoryview:
        """Return a view of the whole file, or raise the injected fault."""
        self._storage.check("read", self._path, FaultKind.READ_ERROR)
        return self._file.view()

    def sync(self) -> None:
        """Make the content durable, or raise the injected fault."""
        self._storage.check("sync", self._path, FaultKind.FAILED_SYNC)
        self._file.sync()
