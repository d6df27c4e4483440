"""Store files on disk or in memory, and inject faults and power loss; only this room opens files.

`protocol` says what every storage promises; `files` and `memory` keep it; `faults` and `recorded` go around a storage;
`crash` says what power loss may leave.
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
