"""Copy a whole tree of files as a value.

What it decides: nothing; it is what a crash leaves, and what a storage in memory can begin with.

Example:

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

from log.storage.protocol import Storage


@attrs.frozen
class DiskImage:
    """Hold a tree of files at one moment: contents by path, and all directories but the root."""

    files: Mapping[str, bytes]
    directories: frozenset[str] = frozenset()


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
