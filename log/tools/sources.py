"""Find the files that a path names: a file, a partition's directory, a log directory, or a metadata log."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from broker.errors import InputError, UsageError
from broker.ids import INT64_MAX
from broker.units import SizeBytes
from log.errors import StorageError
from log.metadata.reading import (
    BOOTSTRAP_FILE,
    HEAD_SIZE_BYTES,
    SNAPSHOT,
    MetadataFile,
    MetadataFiles,
    arrange,
    is_metadata_file,
    looks_like_metadata,
    snapshot_id,
)
from log.segments.file_names import (
    CLEANED,
    DELETED,
    LOG,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    base_offset_of,
    kind_of,
)
from log.storage import FileStorage, Storage
from log.storage.checkpoints import (
    CLEANER_FILE,
    LEADER_EPOCH_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    REPLICATION_FILE,
)
from log.storage.directory_names import METADATA_TOPIC, UnexpectedDirectoryError, parse_directory_name
from log.storage.metadata_files import CLEAN_SHUTDOWN_FILE, META_PROPERTIES_FILE, PARTITION_METADATA_FILE

OFFSET_CHECKPOINTS: Final = (CLEANER_FILE, LOG_START_FILE, RECOVERY_POINT_FILE, REPLICATION_FILE)
SMALL_FILES: Final = (
    *OFFSET_CHECKPOINTS,
    LEADER_EPOCH_FILE,
    PARTITION_METADATA_FILE,
    META_PROPERTIES_FILE,
    CLEAN_SHUTDOWN_FILE,
)
"""Files with a name of their own."""

SEGMENT_KINDS: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, PRODUCER_SNAPSHOT)
METADATA_DIRECTORY: Final = f"{METADATA_TOPIC}-0"
STAGES: Final = (DELETED, CLEANED, SWAP)


@attrs.frozen
class SourceFile:
    """Name one file to read; `shown` is its name for users, `path` its path in the storage."""

    storage: Storage
    path: str
    shown: str

    @property
    def name(self) -> str:
        """Return the file name without its directory."""
        return self.path.rpartition("/")[2]

    @property
    def absolute(self) -> str:
        """Return the absolute form of its name for users, which Kafka's tool prints above problems."""
        return str(Path(self.shown).absolute())

    @property
    def kind(self) -> str:
        """Return the ending of a segment's file (.log, .index, ...), or the whole name of any other file."""
        if self.name in SMALL_FILES:
            return self.name
        return SNAPSHOT if is_snapshot_name(self.name) else kind_of(self.name).removesuffix(self.stage)

    @property
    def stage(self) -> str:
        """Return the suffix .swap, .cleaned or .deleted of an unfinished or deleted file; "" for a current file."""
        return stage_of(self.name)

    @property
    def base_offset(self) -> int:
        """Return the offset in the file name; raise InputError if the name has none."""
        base_offset = base_offset_of(self.name)
        if base_offset is None:
            raise InputError("its name does not begin with an offset of 20 digits", source=self.shown)
        if base_offset > INT64_MAX:
            raise InputError(f"its name begins with an offset above {INT64_MAX}", source=self.shown)
        return base_offset

    @property
    def size_bytes(self) -> SizeBytes:
        """Return the size of the file in bytes."""
        return self.storage.size_bytes(self.path)

    def view(self) -> memoryview:
        """Return the whole content, memory-mapped; raise InputError if the system refuses."""
        try:
            file = self.storage.open(self.path)
        except StorageError as refusal:
            raise InputError(f"cannot be read: {_reason(refusal)}", source=self.shown) from None
        try:
            return file.view()
        finally:
            file.close()

    def sibling(self, kind: str) -> SourceFile:
        """Return the file of the same segment with the ending `kind`, which may be missing."""
        name = self.name.partition(".")[0] + kind + self.stage
        cut = len(self.name)
        return SourceFile(self.storage, self.path[:-cut] + name, self.shown[:-cut] + name)

    def exists(self) -> bool:
        """Return whether the file exists."""
        return self.storage.exists(self.path)

    def is_rolled(self) -> bool:
        """Return whether a later segment lies beside this one. Cost: a listing of the directory."""
        beside = self.storage.list(self.path.rpartition("/")[0])
        return any(
            name.endswith(LOG) and base_offset_of(name) is not None and name > self.sibling(LOG).name for name in beside
        )


@attrs.frozen
class SourceFolder:
    """List the files of a partition's directory, or of the root of a log directory, sorted by name."""

    shown: str
    files: tuple[SourceFile, ...]
    storage: Storage
    directory: str
    """Its path in the storage; "" is the root."""
    is_whole: bool = True
    """Whether these are all files of a log in it; False if some of them were named."""
    unfinished: tuple[SourceFile, ...] = ()
    """Files that a broker was putting in the place of others: it finishes or undoes that when it starts."""

    @property
    def name(self) -> str:
        """Return the name of the directory."""
        return Path(self.shown).resolve().name

    def of_kind(self, kind: str) -> tuple[SourceFile, ...]:
        """Return the files of one `kind`, in order of base offset."""
        return tuple(sorted((file for file in self.files if file.kind == kind), key=lambda file: file.name))

    def named(self, name: str) -> SourceFile | None:
        """Return the file called `name`, None if there is none."""
        return next((file for file in self.files if file.name == name), None)

    def joined(self, other: SourceFolder) -> SourceFolder:
        """Return the union of two selections of files from the same directory."""
        if self.is_whole or other.is_whole:
            return self if self.is_whole else other
        return attrs.evolve(self, files=(*self.files, *(file for file in other.files if self.named(file.name) is None)))


def expand_all(paths: Sequence[Path]) -> list[SourceFolder]:
    """Return the folders that the paths name, each once; raise InputError for a path that names none."""
    folders: dict[Path, SourceFolder] = {}
    for folder in (folder for path in paths for folder in expand(path)):
        place = Path(folder.shown).resolve()
        known = folders.get(place)
        folders[place] = folder if known is None else known.joined(folder)
    return list(folders.values())


def expand(path: Path) -> tuple[SourceFolder, ...]:
    """Return the folders that `path` names, without folders of unknown files; raise InputError if there are none."""
    if not path.is_dir():
        file = named_file(path)
        if file.kind not in (*SMALL_FILES, *SEGMENT_KINDS, SNAPSHOT):
            raise InputError("is no segment, checkpoint or other file of a log", source=str(path))
        return (SourceFolder(str(path.parent), (file,), file.storage, "", is_whole=False),)
    storage = FileStorage(path, read_only=True)
    folders = [_folder(storage, "", str(path))]
    if not any(file.kind == LOG for file in folders[0].files):
        folders.extend(_folder(storage, name, f"{path}/{name}") for name in _partition_names(storage))
    found = tuple(folder for folder in folders if folder.files)
    if not found:
        raise InputError("holds no segment, checkpoint or other file of a log", source=str(path))
    return found


def metadata_files(path: Path) -> MetadataFiles:
    """Return the files of the metadata log that `path` names, in replay order.

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


def segment_folders(folders: Sequence[SourceFolder]) -> list[SourceFolder]:
    """Return the folders with only their segments; raise UsageError if there are none."""
    found = [attrs.evolve(folder, files=folder.of_kind(LOG)) for folder in folders]
    found = [folder for folder in found if folder.files]
    if not found:
        first = folders[0].shown if folders[0].is_whole else folders[0].files[0].shown
        raise UsageError(f"{first}: neither this nor anything else named is or holds a segment")
    return found


def segments_size_bytes(folders: Sequence[SourceFolder]) -> int:
    """Return the size of all segments in `folders` in bytes."""
    return sum(file.size_bytes for folder in folders for file in folder.of_kind(LOG))


def named_file(path: Path) -> SourceFile:
    """Return the file that a path names; a link is followed only to a file of the same name."""
    try:
        target = path.resolve()
    except RuntimeError:  # A link to itself, up to Python 3.12; opening it fails.
        target = path
    folder = target.parent if target.name == path.name else path.parent
    return SourceFile(FileStorage(folder, read_only=True), path.name, str(path))


def stage_of(name: str) -> str:
    """Return the suffix .swap, .cleaned or .deleted of a file name; "" for a current file."""
    return next((stage for stage in STAGES if name.endswith(stage)), "")


def is_log_file(name: str) -> bool:
    """Return whether a file name is one that a log directory or partition directory of Kafka has."""
    if name in SMALL_FILES or is_snapshot_name(name):
        return True
    return base_offset_of(name) is not None and kind_of(name) in SEGMENT_KINDS


def is_snapshot_name(name: str) -> bool:
    """Return whether a file name is that of a metadata snapshot or bootstrap.checkpoint."""
    return name == BOOTSTRAP_FILE or snapshot_id(name) is not None


def _opened(file: SourceFile) -> MetadataFile:
    return MetadataFile(file.name, file.shown, file.view())


def _listed(storage: Storage, directory: str, shown: str) -> tuple[str, ...]:
    """Return the sorted names in a directory; raises InputError if the system refuses."""
    try:
        return storage.list(directory)
    except StorageError as refusal:
        raise InputError(f"cannot be read: {refusal.reason}", source=shown) from None


def _folder(storage: Storage, directory: str, shown: str) -> SourceFolder:
    start = f"{directory}/" if directory else ""
    found = _listed(storage, directory, shown)
    known = (name for name in found if is_log_file(name.removesuffix(stage_of(name))) and stage_of(name) != DELETED)
    files = [SourceFile(storage, start + name, f"{shown}/{name}") for name in known]
    files = [file for file in files if not storage.is_directory(file.path)]
    in_use = tuple(file for file in files if not file.stage)
    return SourceFolder(shown, in_use, storage, directory, unfinished=tuple(file for file in files if file.stage))


def _partition_names(storage: Storage) -> Iterator[str]:
    for name in storage.list():
        if storage.is_directory(name):
            try:
                yield parse_directory_name(name).name
            except UnexpectedDirectoryError:
                continue


def _reason(refusal: StorageError) -> str:
    """Return in words why a file cannot be opened."""
    cause = refusal.__cause__
    is_link = isinstance(cause, OSError) and cause.errno == errno.ELOOP
    return "it is a link, and links are not followed" if is_link else refusal.reason
