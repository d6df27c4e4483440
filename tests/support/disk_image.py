"""Copy a whole tree of files as a value.

It is what a crash leaves, and what a storage in memory can begin with.

    >>> from broker.clock import ManualClock
    >>> from broker.units import TimeMs
    >>> from log.storage.memory import MemoryStorage
    >>> storage = MemoryStorage(ManualClock(TimeMs(0)))
    >>> storage.make_directory("topic-0")
    >>> image_of(storage)
    DiskImage(files={}, directories=frozenset({'topic-0'}))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from broker.clock import Clock
from log.storage.memory import MemoryStorage
from log.storage.protocol import Storage, parent_of


@attrs.frozen
class DiskImage:
    """Hold a tree of files at one moment: contents by path, and all directories but the root."""

    files: Mapping[str, bytes]
    directories: frozenset[str] = frozenset()


def storage_of(clock: Clock, image: DiskImage) -> MemoryStorage:
    """Return a storage in memory that holds a copy of an image."""
    storage = MemoryStorage(clock)
    for directory in sorted(image.directories | {parent_of(path) for path in image.files}):
        if directory:
            storage.make_directory(directory)
    for path, content in image.files.items():
        storage.open(path, create=True).append(content)
    return storage


def image_of(storage: Storage) -> DiskImage:
    """Return a copy of the whole tree of a storage. Cost: linear in all bytes."""
    directories = frozenset(_directories_below(storage, ""))
    paths = [
        path
        for directory in ["", *sorted(directories)]
        for path in _paths_in(storage, directory)
        if path not in directories
    ]
    return DiskImage({path: storage.read(path) for path in sorted(paths)}, directories)


def _directories_below(storage: Storage, directory: str) -> Iterator[str]:
    for path in _paths_in(storage, directory):
        if storage.is_directory(path):
            yield path
            yield from _directories_below(storage, path)


def _paths_in(storage: Storage, directory: str) -> list[str]:
    return [f"{directory}/{name}" if directory else name for name in storage.list(directory)]
