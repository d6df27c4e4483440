"""Store files in memory, for simulations and most tests."""

from __future__ import annotations

from typing import Final

from broker.clock import Clock
from broker.units import SizeBytes, TimeMs
from log.errors import MissingFileError, StorageError
from log.storage.protocol import TEMPORARY_SUFFIX, Buffer, check_same_directory, check_size, checked_path, parent_of

ROOT: Final = ""
_CAPACITY_BYTES_MIN: Final = 256


class MemoryFile:
    """Store the bytes of one file in memory; opening the file again returns the same object."""

    __slots__ = ("_bytes", "_clock", "_size_bytes", "modified_ms")

    def __init__(self, clock: Clock, content: Buffer = b"") -> None:
        self._clock = clock
        self._bytes = bytearray(content)  # May be longer than the file, then zero behind it; or shorter: zeros follow.
        self._size_bytes = len(content)
        self.modified_ms = clock.now_ms()

    @property
    def size_bytes(self) -> SizeBytes:
        """Return the size of the file in bytes."""
        return SizeBytes(self._size_bytes)

    def append(self, data: Buffer) -> int:
        """Append `data` and return the position of its first byte. Cost: amortised linear in `data`."""
        position = self._size_bytes
        end = position + len(data)
        if end > len(self._bytes):
            self._grow(end)
        self._bytes[position:end] = data
        self._size_bytes = end
        self.modified_ms = self._clock.now_ms()
        return position

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite or extend the file with `data` at `position`."""
        assert position >= 0, position
        if not len(data):
            return
        end = position + len(data)
        if end > len(self._bytes):
            self._grow(end)
        self._bytes[position:end] = data
        if end > self._size_bytes:
            self._size_bytes = end
        self.modified_ms = self._clock.now_ms()

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return a copy of up to `size_bytes` bytes from `position`."""
        assert position >= 0, position
        assert size_bytes >= 0, size_bytes
        end = min(position + size_bytes, self._size_bytes)
        found = bytes(self._bytes[position:end])
        return found if len(found) >= end - position else found + bytes(end - position - len(found))

    def view(self) -> memoryview:
        """Return a view of the whole file; reserved room is filled with zeros first."""
        if self._size_bytes > len(self._bytes):
            self._replace_bytes(self._size_bytes)
        return memoryview(self._bytes).toreadonly()[: self._size_bytes]

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to `size_bytes`, or extend it with zeros. Cost: a cut is linear in the remaining bytes."""
        assert size_bytes >= 0, size_bytes
        if size_bytes < self._size_bytes:
            # A new bytearray, as views of the old one may be in use; and what lies behind the end is zero again.
            self._bytes = self._bytes[:size_bytes]
        if size_bytes != self._size_bytes:
            self._size_bytes = size_bytes
            self.modified_ms = self._clock.now_ms()

    def sync(self) -> None:
        """Do nothing: memory has no power loss; `tests.support.recorded` models that."""

    def lock(self) -> None:
        """Do nothing: no other process shares this memory."""

    def close(self) -> None:
        """Do nothing: there is no handle to release."""

    def _grow(self, size_bytes: int) -> None:
        self._replace_bytes(max(size_bytes, 2 * len(self._bytes), _CAPACITY_BYTES_MIN))

    def _replace_bytes(self, capacity_bytes: int) -> None:
        larger = bytearray(capacity_bytes)
        larger[: len(self._bytes)] = self._bytes
        self._bytes = larger


class MemoryStorage:
    """Store a tree of files in memory, empty at first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._directories: dict[str, dict[str, MemoryFile | None]] = {ROOT: {}}  # None stands for a directory.

    def __repr__(self) -> str:
        return f"MemoryStorage({len(self._directories) - 1} directories)"

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        """Open a file; if missing, make an empty one with `create`, else raise MissingFileError."""
        file = self._names_beside(checked_path(path)).get(_name_of(path))
        if file is not None:
            return file
        if path in self._directories:
            raise StorageError("open", path, "is a directory")
        if not create:
            raise MissingFileError("open", path, "no such file")
        made = MemoryFile(self._clock)
        self._names_beside(path)[_name_of(path)] = made
        return made

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory at `path`."""
        names = self._directories.get(parent_of(checked_path(path)))
        return path == ROOT or (names is not None and _name_of(path) in names)

    def is_directory(self, path: str) -> bool:
        """Return whether there is a directory at `path`."""
        return checked_path(path) in self._directories

    def list(self, directory: str = ROOT) -> tuple[str, ...]:
        """Return the sorted names of the files and directories in `directory`; raise MissingFileError."""
        names = self._directories.get(checked_path(directory))
        if names is None:
            raise MissingFileError("list", directory, "no such directory")
        return tuple(sorted(names))

    def size_bytes(self, path: str) -> SizeBytes:
        """Return the size of a file in bytes."""
        return self.open(path).size_bytes

    def modified_ms(self, path: str) -> TimeMs:
        """Return the modification time of a file, in milliseconds."""
        return self.open(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: TimeMs) -> None:
        """Set the modification time of a file, in milliseconds."""
        self.open(path).modified_ms = modified_ms

    def rename(self, path: str, new_path: str) -> None:
        """Rename a file or directory within its directory, replacing an existing file."""
        check_same_directory(checked_path(path), checked_path(new_path))
        names = self._names_beside(path)
        if _name_of(path) not in names or path == ROOT:
            raise MissingFileError("rename", path, "no such file or directory")
        if new_path in self._directories and path != new_path:
            raise StorageError("rename", path, f"{new_path} is a directory")
        moved = names.pop(_name_of(path))
        if moved is None:
            if _name_of(new_path) in names:
                names[_name_of(path)] = moved
                raise StorageError("rename", path, f"{new_path} is a file")
            for old in [name for name in self._directories if name == path or name.startswith(path + "/")]:
                self._directories[new_path + old[len(path) :]] = self._directories.pop(old)
        names[_name_of(new_path)] = moved

    def remove(self, path: str) -> None:
        """Remove a file; raise MissingFileError if missing."""
        self.open(path)
        del self._names_beside(path)[_name_of(path)]

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; an existing one is left as it is."""
        if checked_path(path) in self._directories:
            return
        self.make_directory(parent_of(path))
        names = self._names_beside(path)
        if _name_of(path) in names:
            raise StorageError("make directory", path, "is a file")
        names[_name_of(path)] = None
        self._directories[path] = {}

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it; raise MissingFileError if missing."""
        if checked_path(path) not in self._directories or path == ROOT:
            raise MissingFileError("remove directory", path, "no such directory")
        for below in [name for name in self._directories if name == path or name.startswith(path + "/")]:
            del self._directories[below]
        del self._names_beside(path)[_name_of(path)]

    def sync_directory(self, path: str) -> None:
        """Raise MissingFileError without the directory, else do nothing; `tests.support.recorded` models power loss."""
        if checked_path(path) not in self._directories:
            raise MissingFileError("sync directory", path, "no such directory")

    def read(self, path: str, *, size_bytes_max: int | None = None) -> bytes:
        """Return a file's content; raise CorruptDataError, before reading, above `size_bytes_max` bytes."""
        file = self.open(path)
        check_size(file.size_bytes, size_bytes_max, path)
        return file.read_at(0, file.size_bytes)

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the content of a file."""
        names, name = self._names_beside(checked_path(path)), _name_of(path)
        if name in names and names[name] is None:
            raise StorageError("replace", path, "is a directory")
        # What writing aside and renaming come to where nobody can look in between; an open file stays the old one.
        names.pop(name + TEMPORARY_SUFFIX, None)
        names[name] = MemoryFile(self._clock, data)

    def _names_beside(self, path: str) -> dict[str, MemoryFile | None]:
        """Return the names in the directory that holds `path`."""
        names = self._directories.get(parent_of(path))
        if names is None:
            raise MissingFileError("open", path, "no such directory")
        return names


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]
