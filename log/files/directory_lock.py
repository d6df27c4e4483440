"""Lock a log directory for one process at a time.

What it decides: who may write to a log directory: whoever has the lock on its file `.lock`, as every broker does while
it runs. So a command that changes files is refused where a broker runs, and a broker where the command does.

Constraints: the lock is the system's, on the whole file, and is of the kind that Java takes (`FileChannel.tryLock`), so
that either sees the other's. The system gives it back when the process ends, however it ends; the file may stay then,
and says nothing. Given back in order, the file is removed.

Example: lock = DirectoryLock(FileStorage(path)); …; lock.release()

To the system a process is one user; two of one process are distinguished by who has locked the file, as Java does
with its OverlappingFileLockException. The second is refused until the first has closed it or is garbage.

Left out: two users of one memory, who are not distinguished. Nobody else may open the file: closing it anywhere in a
process gives the lock back.

Source: org.apache.kafka.server.util.FileLock and kafka.log.LogManager.lockLogDirs, 4.0.
"""

from __future__ import annotations

from typing import Final

from log.storage.protocol import Storage

LOCK_FILE: Final = ".lock"


class DirectoryLock:
    """Lock a storage's root directory; the constructor takes the lock."""

    def __init__(self, storage: Storage) -> None:
        """Take the lock; raises LockedError if another process has it, StorageError if the file cannot be made."""
        self._storage = storage
        self._file = storage.open(LOCK_FILE, create=True)
        try:
            self._file.lock()
        except BaseException:
            self._file.close()
            raise

    def release(self) -> None:
        """Remove the file `.lock` and release the lock."""
        self._storage.remove(LOCK_FILE)
        self._file.close()

    def abandon(self) -> None:
        """Release the lock and leave the file, as a broker that fails does."""
        self._file.close()
