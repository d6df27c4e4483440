"""Define Storage and StoredFile, the operations and promises of every storage.

`FileStorage` keeps the promises on real files, `MemoryStorage` in memory, so that a simulation is valid for disks;
`FaultyStorage` wraps either.
- A path is relative, POSIX, without empty, "." or ".." parts; the empty path is the root. `checked_path` refuses others
  with UsageError: nothing outside the root is touched. Directories are made before files are put into them.
- Files move within one directory only, as Kafka moves them: `rename` refuses anything else with UsageError. An open
  file stays open when it, or a directory above it, is renamed.
- Positions and sizes are bytes, ranges half-open. Writing beyond the end, or growing with `truncate`, fills with zeros.
- Nothing is durable before it is synced: the content of a file by `StoredFile.sync`, its name (that it was made,
  renamed or removed) by `sync_directory` of the directory that holds it.
- A view never dies: it shows the bytes that the file had when it was taken, also after the file has grown, was cut,
  renamed or removed. Only `write_at` below its end may show through.
- `MissingFileError` means that a file or directory is missing and nothing was done; `StorageError` that the disk
  failed, and whether the operation took effect is unknown; `UsageError` that a path is invalid.

Source: the java.nio.file calls of Kafka's storage module, 4.0: FileRecords, AbstractIndex,
Utils.atomicMoveWithFallback.
"""

from __future__ import annotations

import functools
from typing import Final, Protocol, TypeAlias, runtime_checkable

from broker.errors import CorruptDataError, UsageError, shorten
from broker.units import SizeBytes, TimeMs

Buffer: TypeAlias = bytes | bytearray | memoryview

PATH_LENGTH_MAX: Final = 4096  # Linux's PATH_MAX.
_REMEMBERED_PATH_COUNT_MAX: Final = 1024
"""So many paths are known to be good: a log asks for the same few files again and again."""
_NO_NAMES: Final = frozenset({"", ".", ".."})
TEMPORARY_SUFFIX: Final = ".tmp"
"""What `replace` adds to the name it writes first, as Kafka's checkpoint files do."""


@runtime_checkable
class StoredFile(Protocol):
    """Define the interface of an open file: a sequence of bytes."""

    @property
    def size_bytes(self) -> SizeBytes:
        """Return the size of the file in bytes."""
        ...

    def append(self, data: Buffer) -> int:
        """Append `data` and return the position of its first byte."""
        ...

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite or extend the file with `data` at `position`; no data never extends the file."""
        ...

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Return a copy of up to `size_bytes` bytes from `position`; fewer, or none, at the end of the file."""
        ...

    def view(self) -> memoryview:
        """Return a view of the whole file, if possible without a copy; the module says how long views stay valid."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to `size_bytes`, or extend it with zeros."""
        ...

    def sync(self) -> None:
        """Make the content durable, as fsync does."""
        ...

    def lock(self) -> None:
        """Keep other processes from locking the file until it is closed; raise LockedError if one has.

        Closing any handle of the file in this process unlocks it.
        """
        ...

    def close(self) -> None:
        """Close the file; only `close` may be called afterwards. Views stay valid."""
        ...


@runtime_checkable
class Storage(Protocol):
    """Define the interface of a storage: a tree of files below one root."""

    def open(self, path: str, *, create: bool = False) -> StoredFile:
        """Open a file; if missing, make an empty one with `create`, else raise MissingFileError."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory at `path`."""
        ...

    def is_directory(self, path: str) -> bool:
        """Return whether there is a directory at `path`."""
        ...

    def list(self, directory: str = "") -> tuple[str, ...]:
        """Return the sorted names of the files and directories in `directory`; raise MissingFileError."""
        ...

    def size_bytes(self, path: str) -> SizeBytes:
        """Return the size of a file in bytes."""
        ...

    def modified_ms(self, path: str) -> TimeMs:
        """Return the modification time of a file, in milliseconds."""
        ...

    def set_modified_ms(self, path: str, modified_ms: TimeMs) -> None:
        """Set the modification time of a file, in milliseconds."""
        ...

    def rename(self, path: str, new_path: str) -> None:
        """Rename a file or directory within its directory atomically, replacing an existing file."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; raise MissingFileError if missing."""
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; an existing one is left as it is."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it; raise MissingFileError if missing."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable, as fsync of a directory does."""
        ...

    def read(self, path: str, *, size_bytes_max: int | None = None) -> bytes:
        """Return a file's content; raise CorruptDataError, before reading, above `size_bytes_max` bytes."""
        ...

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the content of a file, so that a crash leaves the old or the new content whole.

        Written to `path` with ".tmp" added, synced, renamed, and the directory synced.
        """
        ...


@functools.lru_cache(maxsize=_REMEMBERED_PATH_COUNT_MAX)
def checked_path(path: str) -> str:
    """Return `path`; raise UsageError unless it is relative, POSIX and stays below the root. "" is the root."""
    if path == "":
        return path
    if len(path) > PATH_LENGTH_MAX or "\0" in path or not _NO_NAMES.isdisjoint(path.split("/")):
        raise UsageError(
            f"path {shorten(path)!r} is not allowed; a path is relative, at most {PATH_LENGTH_MAX} characters, "
            "without empty, '.' or '..' parts"
        )
    return path


def parent_of(path: str) -> str:
    """Return the directory that holds `path`; the root for a bare name."""
    return path.rpartition("/")[0]


def check_same_directory(path: str, new_path: str) -> None:
    """Raise UsageError unless both paths are in one directory, as a rename must be."""
    if parent_of(path) != parent_of(new_path):
        raise UsageError(f"{path!r} cannot become {new_path!r}: files move within one directory only")


def check_size(size_bytes: int, size_bytes_max: int | None, path: str) -> None:
    """Raise CorruptDataError if a file is larger than its reader accepts."""
    if size_bytes_max is not None and size_bytes > size_bytes_max:
        raise CorruptDataError(f"has {size_bytes} bytes; at most {size_bytes_max} are read", source=path)


def replace_in_steps(storage: Storage, path: str, data: Buffer) -> None:
    """Replace a file's content: write and sync a temporary file, rename it over `path`, sync the directory."""
    temporary = checked_path(path) + TEMPORARY_SUFFIX
    file = storage.open(temporary, create=True)
    try:
        file.truncate(0)
        file.append(data)
        file.sync()
    finally:
        file.close()
    storage.rename(temporary, path)
    storage.sync_directory(parent_of(path))
