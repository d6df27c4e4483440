"""Store files on disk or in memory, and inject faults; only this package opens files.

- protocol: Define Storage and StoredFile, the operations and promises of every storage.
- files: Store files in a directory of the file system.
- memory: Store files in memory, for simulations and most tests.
- faults: Inject one disk fault, at a chosen file and a chosen operation, around another storage.
- checkpoints: Read and write the text checkpoints of a log directory and of leader epochs.
- metadata_files: Read and write partition.metadata, meta.properties and the clean-shutdown marker.
- directory_names: Name the directory of a partition, and read its role from the name.
- real_file: Read an open file through a mapping, and never cut the file under a view.
"""

from __future__ import annotations

from log.storage.faults import Fault, FaultKind, FaultyStorage
from log.storage.files import FileStorage
from log.storage.memory import MemoryStorage
from log.storage.protocol import Buffer, Storage, StoredFile
from log.storage.real_file import SyncPolicy

__all__ = (
    "Buffer",
    "Fault",
    "FaultKind",
    "FaultyStorage",
    "FileStorage",
    "MemoryStorage",
    "Storage",
    "StoredFile",
    "SyncPolicy",
)
