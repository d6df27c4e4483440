"""List the dumps in a folder and in the folders below it, and count what is passed over.

A folder with a metadata log is one dump. Passed over are hidden files, links to folders, files that are neither a
regular file nor a link, and the folders of other logs, whose segments are no dumps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Final

import attrs

from broker.errors import InputError
from log.metadata import is_metadata_file
from log.storage.metadata_files import META_PROPERTIES_FILE, PARTITION_METADATA_FILE
from log.tools.sources import METADATA_DIRECTORY

FILES_MAX: Final = 100_000  # Of one folder: a year of nightly dumps of 270 clusters.
DEPTH_MAX: Final = 16
_DIGITS: Final = re.compile(r"(\d+)", re.ASCII)
_QUORUM_FILE: Final = "quorum-state"  # Of KRaft, beside the segments of a metadata log alone.


def by_numbers(path: str | PurePath) -> tuple[object, ...]:
    """Return the place of a path in an order of names in which numbers count as such: north-9.txt, north-10.txt.

    >>> sorted(["north-10.txt", "north (1).txt", "w10/a", "north-2.txt", "w9/b", "north.txt"], key=by_numbers)
    ['north.txt', 'north (1).txt', 'north-2.txt', 'north-10.txt', 'w9/b', 'w10/a']
    """
    names = [PurePath(part) for part in PurePath(path).parts]
    return tuple((_numbered(name.stem), _numbered(name.suffix)) for name in names), str(path)


def _numbered(text: str) -> tuple[str | int, ...]:
    """Return the parts of a text, numbers at odd places."""
    return tuple(int(part) if place % 2 else part for place, part in enumerate(_DIGITS.split(text)))


@attrs.frozen
class Listing:
    """Hold the paths of the dumps in a folder in order of their names, and those of what was passed over."""

    dumps: tuple[str, ...]
    skipped: tuple[str, ...]


def listing_of(folder: str) -> Listing:
    """Return the dumps in a folder and below it; raise InputError if there are more than `FILES_MAX` files.

    A folder with a metadata log, or with nothing in it that could be listed, stands for itself.
    """
    path = Path(folder)
    if _holds_log(path) or any(is_metadata_file(each.name) for each in _inside(path)):
        return Listing((folder,), ())
    dumps: list[str] = []
    skipped: list[str] = []
    for each, is_dump in _walked(path, 0):
        (dumps if is_dump else skipped).append(str(each))
        if len(dumps) + len(skipped) > FILES_MAX:
            raise InputError(f"holds more than {FILES_MAX:,} files; name fewer of them", source=folder)
    return Listing(tuple(dumps) or (folder,), tuple(skipped))


def _walked(folder: Path, depth: int) -> Iterator[tuple[Path, bool]]:
    """Yield what stands in a folder and below it, and whether it is to be read as a dump."""
    for each in _inside(folder):
        if each.name.startswith("."):
            yield each, False
        elif each.is_file() or not each.exists():
            yield each, True
        elif not each.is_dir() or each.is_symlink() or depth >= DEPTH_MAX:
            yield each, False
        elif _is_metadata_log(each):
            yield each, True
        elif _is_other_log(each):
            yield each, False
        else:
            yield from _walked(each, depth + 1)


def _inside(folder: Path) -> list[Path]:
    """Return what stands in a folder; nothing if it cannot be listed, as its reader says why."""
    try:
        return sorted(folder.iterdir(), key=by_numbers)
    except OSError:
        return []


def _holds_log(folder: Path) -> bool:
    return (folder / METADATA_DIRECTORY).is_dir()


def _is_metadata_log(folder: Path) -> bool:
    """Return whether a folder is or holds a metadata log: its segments lie in it, and no topic's partition.metadata."""
    names = {each.name for each in _inside(folder)}
    is_of_topic = PARTITION_METADATA_FILE in names and _QUORUM_FILE not in names and folder.name != METADATA_DIRECTORY
    return _holds_log(folder) or (any(map(is_metadata_file, names)) and not is_of_topic)


def _is_other_log(folder: Path) -> bool:
    """Return whether a folder is the log directory of a broker, or a partition in one."""
    return any((folder / name).exists() for name in (META_PROPERTIES_FILE, PARTITION_METADATA_FILE))
