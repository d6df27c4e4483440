"""Pass every storage operation on to another storage; wrappers override some.

Example: `FaultyFile` says what a write, a read and a sync become; its size is that of the file within.

Source: ours.
"""

from __future__ import annotations

from broker.units import SizeBytes, TimeMs
from log.storage.protocol import Buffer, Storage, StoredFile


class StorageAround:
    """Pass every operation on to another storage; `FaultyStorage` and `RecordedStorage` override some."""

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
