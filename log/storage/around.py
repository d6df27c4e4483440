"""A storage that goes around another: what a wrapper does not change, it passes on.

Source: ours.
"""

from __future__ import annotations

from broker.units import SizeBytes, TimeMs
from log.storage.protocol import Storage


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
