"""Which files a path names when a metadata log is asked for.

Decides what is opened: a segment or a snapshot under any name, recognised by what it holds; the directory
`__cluster_metadata-0`; or a node's log directory that has it.

Constraints: nothing is written; nothing else in the directories is opened.

Example: metadata_files(Path("kafka-logs")) reads kafka-logs/__cluster_metadata-0.

Source: ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from broker.errors import InputError
from log.errors import StorageError
from log.log_dir import METADATA_TOPIC
from log.metadata.files import MetadataFile, MetadataFiles, arrange, is_metadata_file
from log.metadata.reading import HEAD_SIZE_BYTES, looks_like_metadata
from log.storage import FileStorage, Storage
from log.tools.sources import SourceFile, named_file

METADATA_DIRECTORY: Final = f"{METADATA_TOPIC}-0"


def metadata_files(path: Path) -> MetadataFiles:
    """Return the metadata log that `path` names, ready to be played.

    Raises InputError where there is none, its beginning is missing, or it cannot be read.
    """
    if not path.exists():
        raise InputError("cannot be read: no such file or directory", source=str(path))
    if not path.is_dir():
        file = named_file(path)
        if not looks_like_metadata(bytes(file.view()[:HEAD_SIZE_BYTES])):
            raise InputError("is no segment and no snapshot of a metadata log", source=str(path))
        return arrange([_opened(file)])
    storage = FileStorage(path, read_only=True)
    directory = METADATA_DIRECTORY if METADATA_DIRECTORY in _listed(storage, "", str(path)) else ""
    start = f"{directory}/" if directory else ""
    shown = f"{path}/{directory}" if directory else str(path)
    names = [name for name in _listed(storage, directory, shown) if is_metadata_file(name)]
    if not names:
        raise InputError("holds no segment and no snapshot of a metadata log", source=shown)
    return arrange([_opened(SourceFile(storage, start + name, f"{shown}/{name}")) for name in names])


def _opened(file: SourceFile) -> MetadataFile:
    return MetadataFile(file.name, file.shown, file.view())


def _listed(storage: Storage, directory: str, shown: str) -> list[str]:
    try:
        return sorted(storage.list(directory))
    except StorageError as refusal:
        raise InputError(f"cannot be read: {refusal.reason}", source=shown) from None
