"""Find the files that the paths of a data source name, and group them by size into tasks.

The driver asks for names and sizes only, and opens no file. A directory that cannot be listed is an input that cannot
be read: a fault, not the end of the job. Pipes and devices are passed over in directories, refused by name.

Example:
    >>> [len(group) for group in grouped([InputFile("a", 40), InputFile("b", 30), InputFile("c", 90)], 64)]
    [1, 1, 1]

Source: org.apache.spark.sql.execution.datasources.FilePartition, 4.3, for grouping by size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Final, Protocol, TypeVar

import attrs

from broker.errors import InputError
from log.metadata import is_metadata_file
from log.tools.sources import METADATA_DIRECTORY
from spark_analysis.sources.dumps import EXPANSION
from spark_analysis.sources.files import COMPRESSED

TASK_BYTES: Final = 64 << 20  # Some seconds of reading: a task itself costs a tenth of one.
_PATTERN: Final = frozenset("*?[")


@attrs.frozen
class InputFile:
    """Name one input, a file or the directory of a metadata log, and the bytes that reading it is likely to take."""

    path: str
    size_bytes: int


def input_files(paths: Sequence[str], *, recursive: bool = False) -> list[InputFile]:
    """Return the inputs that the paths stand for, each once; raise InputError for a path that stands for none."""
    found = dict.fromkeys(one for path in paths for one in _expanded(path, recursive))
    return [InputFile(path, _size_bytes(path)) for path in found]


class Sized(Protocol):
    """Define the interface of an input whose size is known."""

    @property
    def size_bytes(self) -> int:
        """Return the bytes that reading it is likely to take."""


Input = TypeVar("Input", bound=Sized)


def grouped(files: Sequence[Input], task_bytes: int = TASK_BYTES) -> list[list[Input]]:
    """Return the inputs in groups of about `task_bytes`, in order."""
    groups: list[list[Input]] = []
    held_bytes = 0
    for file in files:
        if not groups or held_bytes + file.size_bytes > task_bytes:
            groups.append([])
            held_bytes = 0
        groups[-1].append(file)
        held_bytes += file.size_bytes
    return groups


def matches(path: str) -> list[str]:
    """Return the paths that match a pattern, or the path itself; raise InputError where nothing is found."""
    if Path(path).exists():
        return [path]
    found = sorted(glob(path, recursive=True)) if _PATTERN & set(path) else []
    if not found:
        what = "no file matches the pattern" if _PATTERN & set(path) else "cannot be read: no such file or directory"
        raise InputError(what, source=path)
    return found


def is_metadata_log(path: Path) -> bool:
    """Return whether a directory is that of a metadata log, or a log directory that has one."""
    return (path / METADATA_DIRECTORY).is_dir() or any(is_metadata_file(each.name) for each in path.iterdir())


def _expanded(path: str, recursive: bool) -> Iterator[str]:
    for match in matches(path):
        if not Path(match).is_file() and not Path(match).is_dir():
            raise InputError("is neither a file nor a directory", source=match)
        inside = list(_files(Path(match), recursive, is_metadata_log))
        if not inside:
            raise InputError(
                "the directory holds no file; folders in it are read with recursiveFileLookup", source=path
            )
        yield from inside


def _files(path: Path, recursive: bool, is_input: Callable[[Path], bool]) -> Iterator[str]:
    """Yield the files in a directory, in order of name; a file, or a directory that is an input, is itself."""
    try:
        if not path.is_dir() or is_input(path):
            yield str(path)
            return
        inside = sorted(path.iterdir())
    except OSError:
        yield str(path)  # Whoever reads it says why it cannot be listed.
        return
    for each in inside:
        if each.is_dir():
            if recursive:
                yield from _files(each, recursive, is_input)
        elif not each.name.startswith((".", "_")) and (each.is_file() or not each.exists()):
            yield str(each)


def _size_bytes(path: str) -> int:
    """Return the bytes that reading an input is likely to take; 0 for a file that is gone or out of reach."""
    place = Path(path)
    try:
        if place.is_dir():
            folder = place / METADATA_DIRECTORY if (place / METADATA_DIRECTORY).is_dir() else place
            return sum(each.stat().st_size for each in folder.iterdir() if each.is_file())
        return place.stat().st_size * (EXPANSION if place.suffix in COMPRESSED else 1)
    except OSError:
        return 0  # Whoever reads it says why.
