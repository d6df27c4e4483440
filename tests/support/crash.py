"""Compute the states in which power loss may leave a disk, given what was done and what was synced (`Recording`).

Nothing that a sync has promised is ever lost; everything that no sync has promised may be:
- What was synced is there: a file's content by `sync`, the names in a directory by `sync_directory`. Neither covers the
  other: a synced file whose name was not synced may be missing.
- The names in one directory change in the order in which they were changed; several directories independently. A rename
  is whole or not at all.
- The size of one file changes in that order too, in steps of a block, independent of all else.
- The bytes of each write are there or not, block by block and independent of every other write: what is not there reads
  as zeros, or as what was there before. Of a write over many blocks, these are looked at: none, the first part, all but
  the first part, all; the parts end at the first, the middle and the last boundary between blocks.
- A sync that fails promises nothing, and later ones do not make up for it: the system takes the pages for clean.

The states of the tree are all combinations of those of its directories and files. With more than
`EXHAUSTIVE_OPERATION_COUNT` pending operations a sample is drawn: everything lost, everything there, and at random.

Source: Pillai et al., All File Systems Are Not Created Equal (OSDI 2014); Mohan et al., CrashMonkey (OSDI 2018);
Rebello et al., Can Applications Recover from fsync Failures? (USENIX ATC 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Final, TypeAlias

import attrs

from broker.entropy import RandomSource
from broker.units import KIB
from tests.support.crash_file import FileHistory, changes_of
from tests.support.disk_image import DiskImage
from tests.support.recorded import (
    ROOT_INODE,
    Inode,
    Link,
    Move,
    Recording,
    Resize,
    Sync,
    SyncDirectory,
    Unlink,
    Write,
)

EXHAUSTIVE_OPERATION_COUNT: Final = 10
"""Up to so many pending operations, all states are made: some thousands at worst."""

BLOCK_SIZE_BYTES: Final = 4 * KIB
"""What a disk writes whole or not at all: a page. 512 bytes is the other size worth trying."""

NameChange: TypeAlias = Link | Unlink | Move


@attrs.frozen
class Entry:
    """Identify the file or directory that a name refers to."""

    inode: Inode
    is_directory: bool


Names: TypeAlias = dict[str, Entry]


@attrs.frozen
class DirectoryHistory:
    """Hold the durable names of a directory, and the later changes in order."""

    sure: Names
    changes: tuple[NameChange, ...]

    def after(self, change_count: int) -> Names:
        """Return the names after the first `change_count` changes."""
        names = dict(self.sure)
        for change in self.changes[:change_count]:
            _apply(names, change)
        return names


@attrs.frozen
class Disk:
    """Group the operations of a recording, up to one operation, by directory and file."""

    directories: dict[Inode, DirectoryHistory]
    files: dict[Inode, FileHistory]

    @property
    def pending_count(self) -> int:
        """Return the number of operations that power loss may undo."""
        names = sum(len(directory.changes) for directory in self.directories.values())
        return names + sum(not change.is_sure for file in self.files.values() for change in file.changes)


def crash_states(
    recording: Recording,
    entropy: RandomSource,
    *,
    end: int | None = None,
    block_size_bytes: int = BLOCK_SIZE_BYTES,
    sample_count: int = 100,
) -> Iterator[DiskImage]:
    """Yield the states in which power loss after the first `end` operations (None: all) may leave the disk.

    All of them, each once, up to `EXHAUSTIVE_OPERATION_COUNT` pending operations. Beyond, up to `sample_count` draws
    from `entropy`: the state that has lost everything, the one that has lost nothing, then any.
    """
    disk = sorted_out(recording, end, block_size_bytes)
    few = disk.pending_count <= EXHAUSTIVE_OPERATION_COUNT
    seen: set[tuple[frozenset[str], frozenset[tuple[str, bytes]]]] = set()
    for image in _every_state(disk) if few else _sample(disk, entropy, sample_count):
        known_by = image.directories, frozenset(image.files.items())
        if known_by not in seen:
            seen.add(known_by)
            yield image


def power_loss(recording: Recording, entropy: RandomSource, *, block_size_bytes: int = BLOCK_SIZE_BYTES) -> DiskImage:
    """Draw one state in which power loss now may leave the disk."""
    return _drawn_state(sorted_out(recording, None, block_size_bytes), entropy)


def sorted_out(recording: Recording, end: int | None, block_size_bytes: int) -> Disk:
    """Return the first `end` operations of a recording by directory and file, marked durable or pending."""
    directories = {inode: DirectoryHistory(names, ()) for inode, names in _start_names(recording).items()}
    starts = {recording.start_inodes[path]: content for path, content in recording.start.files.items()}
    changes: dict[Inode, list[Write | Resize]] = {inode: [] for inode in starts}
    standings: dict[Inode, list[bool | None]] = {inode: [] for inode in starts}  # None: no sync will make it sure.
    for operation in recording.operations[:end]:
        match operation:
            case Write() | Resize():
                changes[operation.inode].append(operation)
                standings[operation.inode].append(False)
            case Sync():
                synced = None if operation.failed else True
                standings[operation.inode] = [
                    synced if standing is False else standing for standing in standings[operation.inode]
                ]
            case SyncDirectory():
                history = directories[operation.directory]
                directories[operation.directory] = DirectoryHistory(history.after(len(history.changes)), ())
            case Link() | Unlink() | Move():
                history = directories[operation.directory]
                directories[operation.directory] = DirectoryHistory(history.sure, (*history.changes, operation))
                if isinstance(operation, Link) and operation.is_directory:
                    directories[operation.inode] = DirectoryHistory({}, ())
                elif isinstance(operation, Link):
                    starts[operation.inode] = b""
                    changes[operation.inode], standings[operation.inode] = [], []
    files = {
        inode: FileHistory(
            start,
            changes_of(len(start), changes[inode], [bool(sure) for sure in standings[inode]], block_size_bytes),
            block_size_bytes,
        )
        for inode, start in starts.items()
    }
    return Disk(directories, files)


def _start_names(recording: Recording) -> dict[Inode, Names]:
    inodes = recording.start_inodes
    names: dict[Inode, Names] = {ROOT_INODE: {}}
    names.update({inodes[path]: {} for path in recording.start.directories})
    for path in [*recording.start.directories, *recording.start.files]:
        parent, _, name = path.rpartition("/")
        names[inodes[parent]][name] = Entry(inodes[path], path in recording.start.directories)
    return names


def _apply(names: Names, change: NameChange) -> None:
    match change:
        case Link():
            names[change.name] = Entry(change.inode, change.is_directory)
        case Unlink():
            del names[change.name]
        case Move():
            names[change.new_name] = names.pop(change.name)


def _every_state(disk: Disk) -> Iterator[DiskImage]:
    contents = {inode: file.contents() for inode, file in disk.files.items()}
    inodes = list(disk.directories)
    for counts in product(*(range(len(disk.directories[inode].changes) + 1) for inode in inodes)):
        paths, directories = _tree(disk, dict(zip(inodes, counts, strict=True)))
        for chosen in product(*(contents[inode] for inode in paths.values())):
            yield DiskImage(dict(zip(paths, chosen, strict=True)), directories)


def _sample(disk: Disk, entropy: RandomSource, count: int) -> Iterator[DiskImage]:
    yield _image(disk, dict.fromkeys(disk.directories, 0), FileHistory.nothing_unsure)
    yield _image(disk, _all_changes(disk), FileHistory.everything)
    for _ in range(count - 2):
        yield _drawn_state(disk, entropy)


def _drawn_state(disk: Disk, entropy: RandomSource) -> DiskImage:
    counts = {
        inode: entropy.next_int_bound(len(directory.changes) + 1) for inode, directory in disk.directories.items()
    }
    return _image(disk, counts, lambda file: file.drawn(entropy))


def _all_changes(disk: Disk) -> dict[Inode, int]:
    return {inode: len(directory.changes) for inode, directory in disk.directories.items()}


def _image(disk: Disk, change_counts: dict[Inode, int], content_of: Callable[[FileHistory], bytes]) -> DiskImage:
    paths, directories = _tree(disk, change_counts)
    return DiskImage({path: content_of(disk.files[inode]) for path, inode in paths.items()}, directories)


def _tree(disk: Disk, change_counts: dict[Inode, int]) -> tuple[dict[str, Inode], frozenset[str]]:
    """Return the files by path, and the directories, after so many changes of each directory."""
    files: dict[str, Inode] = {}
    directories: set[str] = set()
    waiting = [("", ROOT_INODE)]
    while waiting:
        path, inode = waiting.pop()
        for name, entry in sorted(disk.directories[inode].after(change_counts[inode]).items()):
            below = f"{path}/{name}" if path else name
            if entry.is_directory:
                directories.add(below)
                waiting.append((below, entry.inode))
            else:
                files[below] = entry.inode
    return files, frozenset(directories)
