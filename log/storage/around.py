"""A storage that goes around another, and its open files: what a wrapper does not change, it passes on.

Example: `FaultyFile` says what a write, a read and a sync become; its size is that of the file within.

Source: ours.
"""

from __future__ import annotations

from broker.units import SizeBytes, TimeMs
from log.storage.protocol import Buffer, Storage, StoredFile


class StorageAround:
    """Passes on what asks and changes nothing on disk; `FaultyStorage` and `RecordedStorage` say what differs."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def exists(self, path: str) -> bool:
        """Tell whether there is a file or directory."""
        return self._storage.exists(path)

    def is_directory(self, path: str) -> bool:
        """Tell whether there is a directory."""
        return self._storage.is_directory(path)

    def list(self, directory: str = "") -> tuple[str, ...]:
        """Return the names of the files and directories in `directory`, sorted."""
        return self._storage.list(directory)

    def size_bytes(self, path: str) -> SizeBytes:
        """Return the size of a file."""
        return self._storage.size_bytes(path)

    def modified_ms(self, path: str) -> TimeMs:
        """Return when the content of a file was changed last."""
        return self._storage.modified_ms(path)

    def set_modified_ms(self, path: str, modified_ms: TimeMs) -> None:
        """Say when the content of a file was changed last."""
        self._storage.set_modified_ms(path, modified_ms)


class FileAround:
    """An open file of a `StorageAround`: `append` is `write_at` at the end, whatever becomes of that."""

    def __init__(self, file: StoredFile) -> None:
        self._file = file

    @property
    def size_bytes(self) -> SizeBytes:
        """Number of bytes."""
        return self._file.size_bytes

    def append(self, data: Buffer) -> int:
        """Add `data` at the end and return the position of its first byte."""
        position = self._file.size_bytes
        self.write_at(position, data)
        return position

    def write_at(self, position: int, data: Buffer) -> None:
        """Put `data` at `position`, over what is there; the file grows where needed."""
        self._file.write_at(position, data)

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return a copy of up to `size_bytes` bytes from `position`."""
        return self._file.read_at(position, size_bytes)

    def view(self) -> memoryview:
        """Return the whole file to read."""
        return self._file.view()

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to `size_bytes`, or grow it with zeros."""
        self._file.truncate(size_bytes)

    def sync(self) -> None:
        """Make the content durable."""
        self._file.sync()

    def lock(self) -> None:
        """Keep other processes from locking the file."""
        self._file.lock()

    def close(self) -> None:
        """Give the file back."""
        self._file.close()
