"""Store files in a directory of the file system.

Source: Kafka's Utils.{atomicMoveWithFallback, flushDir, delete}, 4.0.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from broker.errors import UsageError
from broker.units import SizeBytes, TimeMs
from log.errors import StorageError
from log.storage.protocol import Buffer, check_same_directory, check_size, checked_path, parent_of, replace_in_steps
from log.storage.real_file import OPEN_FLAGS, RealFile, Refusals, SyncPolicy

_NS_PER_MS: Final = 1_000_000


class FileStorage:
    """Store files in a directory of the file system, created if missing unless the storage is read-only."""

    def __init__(self, root: Path, *, sync_policy: SyncPolicy = SyncPolicy.WHEN_ASKED, read_only: bool = False) -> None:
        self.sync_policy = sync_policy
        self.read_only = read_only
        with Refusals("open", str(root)):
            if not read_only:
                root.mkdir(parents=True, exist_ok=True)
            self._root = os.path.realpath(root, strict=True)
        self._open_files: WeakSet[RealFile] = WeakSet()

    def __repr__(self) -> str:
        return f"FileStorage({self._root!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process opens the same directory, without the files that are open here."""
        return partial(FileStorage, sync_policy=self.sync_policy, read_only=self.read_only), (Path(self._root),)

    def check_writable(self) -> None:
        """Raise UsageError if the storage is read-only."""
        if self.read_only:
            raise UsageError(f"{self._root} was opened to be read only; nothing is written to it")

    def real_path(self, path: str) -> str:
        """Return the file system's path of `path`; raise UsageError if a symbolic link leads elsewhere."""
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
        """Open a file; if missing, make an empty one with `create`, else raise MissingFileError."""
        real = self.real_path(path)
        flags = (os.O_RDONLY if self.read_only else os.O_RDWR) | OPEN_FLAGS
        with Refusals("open", path):
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
        """Return whether there is a file or directory; symbolic links do not count."""
        return os.path.lexists(self.real_path(path)) and not os.path.islink(self.real_path(path))

    def is_directory(self, path: str) -> bool:
        """Return whether there is a directory at `path`."""
        return self.exists(path) and os.path.isdir(self.real_path(path))

    def list(self, directory: str = "") -> tuple[str, ...]:
        """Return the sorted names of the files and directories in `directory`; raise MissingFileError."""
        with Refusals("list", directory):
            return tuple(sorted(os.listdir(self.real_path(directory))))

    def size_bytes(self, path: str) -> SizeBytes:
        """Return the size of a file in bytes."""
        with Refusals("look up", path):
            return SizeBytes(os.lstat(self.real_path(path)).st_size)

    def modified_ms(self, path: str) -> TimeMs:
        """Return the modification time of a file, in milliseconds."""
        with Refusals("look up", path):
            return TimeMs(os.lstat(self.real_path(path)).st_mtime_ns // _NS_PER_MS)

    def set_modified_ms(self, path: str, modified_ms: TimeMs) -> None:
        """Set the modification time of a file, in milliseconds."""
        self.check_writable()
        with Refusals("set the time of", path):
            time_ns = modified_ms * _NS_PER_MS
            os.utime(self.real_path(path), ns=(time_ns, time_ns), follow_symlinks=False)

    def rename(self, path: str, new_path: str) -> None:
        """Rename a file or directory within its directory atomically, replacing an existing file."""
        self.check_writable()
        check_same_directory(checked_path(path), checked_path(new_path))
        if self.sync_policy is SyncPolicy.AT_END:
            self._sync(path)
        with Refusals("rename", path):
            os.replace(self.real_path(path), self.real_path(new_path))
        for file in tuple(self._open_files):
            if file.path == path or file.path.startswith(path + "/"):
                file.path = new_path + file.path[len(path) :]
        self._names_changed(path)

    def remove(self, path: str) -> None:
        """Remove a file; raise MissingFileError if missing."""
        self.check_writable()
        with Refusals("remove", path):
            os.unlink(self.real_path(path))
        self._names_changed(path)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; an existing one is left as it is."""
        self.check_writable()
        if self.is_directory(path):
            return
        self.make_directory(parent_of(path))
        with Refusals("make directory", path):
            os.mkdir(self.real_path(path))
        self._names_changed(path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it; raise MissingFileError if missing."""
        self.check_writable()
        if path == "":
            raise UsageError("the root of a storage cannot be removed")
        with Refusals("remove directory", path):
            shutil.rmtree(self.real_path(path))
        self._names_changed(path)

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable, unless the policy is NEVER or AT_END."""
        if self.sync_policy.syncs_at_once:
            self._sync(path, os.O_DIRECTORY)

    def sync_all(self) -> None:
        """Make all that was written durable, with one sync of the whole system, whatever the policy."""
        self.check_writable()
        os.sync()

    def read(self, path: str, *, size_bytes_max: int | None = None) -> bytes:
        """Return a file's content; raise CorruptDataError, before reading, above `size_bytes_max` bytes."""
        file = self.open(path)
        try:
            check_size(file.size_bytes, size_bytes_max, path)
            return file.read_at(0, file.size_bytes)
        finally:
            file.close()

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the content of a file, so that a crash leaves the old or the new content whole.

        Under AT_END a crash may leave what was empty, or not there, empty.
        """
        if self.sync_policy is not SyncPolicy.AT_END:
            replace_in_steps(self, path, data)
            return
        with closing(self.open(path, create=True)) as file:
            before = file.read_at(0, file.size_bytes)
            if not before:
                file.append(data)
        if before and before != data:
            replace_in_steps(self, path, data)

    def _sync(self, path: str, flags: int = 0) -> None:
        with Refusals("sync directory" if flags else "sync", path):
            descriptor = os.open(self.real_path(path), os.O_RDONLY | flags | OPEN_FLAGS)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _names_changed(self, path: str) -> None:
        if self.sync_policy is SyncPolicy.ALWAYS:
            self.sync_directory(parent_of(path))
