"""Store files on disk or in memory, and inject faults and power loss; only this room opens files.

- protocol: Define Storage and StoredFile, the operations and promises of every storage.
- files: Store files in a directory of the file system.
- memory: Store files in memory, for simulations and most tests.
- crash: Decide in which states power loss may leave a disk.
- crash_file: Compute the contents that one file may have after power loss.
- faults: Inject one disk fault, at a chosen file and a chosen operation, around another storage.
- recorded: Record every change to another storage, so that `crash` can compute the states after power loss.
- around: Pass every storage operation on to another storage; wrappers override some.
- image: Copy a whole tree of files as a value.
- real_file: Read an open file through a mapping, and never cut the file under a view.
- overwriting: Overwrite reserved bytes of a file through a memory mapping, as index entries are written.
- refusals: Turn the operating system's errors into errors of `log.errors`.
"""

from __future__ import annotations

from log.storage.crash import crash_states, lost_tail, power_loss, reordered_writes
from log.storage.faults import Fault, FaultKind, FaultyStorage
from log.storage.files import FileStorage
from log.storage.image import DiskImage, image_of
from log.storage.memory import MemoryStorage
from log.storage.protocol import Buffer, Storage, StoredFile
from log.storage.real_file import SyncPolicy
from log.storage.recorded import RecordedStorage, Recording

__all__ = (
    "Buffer",
    "DiskImage",
    "Fault",
    "FaultKind",
    "FaultyStorage",
    "FileStorage",
    "MemoryStorage",
    "RecordedStorage",
    "Recording",
    "Storage",
    "StoredFile",
    "SyncPolicy",
    "crash_states",
    "image_of",
    "lost_tail",
    "power_loss",
    "reordered_writes",
)
