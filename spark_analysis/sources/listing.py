"""List the inputs that paths stand for, and name the cluster of each; the commands and Spark's data sources ask here.

What it decides: a path that exists is itself; another one is a pattern, or a mistake. In a pattern *, ?, [..] and {a,b}
are within one folder, ** is any folders. A folder stands for the files in it, with `recursive` also for those in the
folders below it. A folder with a metadata log is one input, and the dumps beside the log are inputs, too. Passed over
are names that begin with . or _, pipes and devices, the files of a log directory, and the logs of other topics. Links
to folders are followed; each folder is listed once.

A cluster is called as its input's path below the folder that was given, or below the part of the pattern before its
first mark, without ending; a file that is given, as it is called, and a metadata log as the folder that holds it.

Constraints: only names are looked at, no file is opened. What is given and cannot be listed, or holds nothing, is an
input, whose reader says why.

Source: org.apache.hadoop.fs.Path and Globber, 3.4; Spark 4.3 DataSourceUtils, for names that are passed over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePath
from typing import Final

import attrs

from broker.errors import InputError, UsageError
from broker.small_files import unreadable
from broker.wording import encodable
from log.metadata import is_metadata_file
from log.storage.metadata_files import META_PROPERTIES_FILE, PARTITION_METADATA_FILE
from log.tools.sources import METADATA_DIRECTORY, is_log_file
from spark_analysis.sources.files import COMPRESSED

FILES_MAX: Final = 100_000  # Of one path: a year of nightly dumps of 270 clusters.
ANY_FOLDERS: Final = "**"
_MARKS: Final = frozenset("*?[{")
_GROUP: Final = re.compile(r"\{([^{}]*)\}")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_DIGITS: Final = re.compile(r"(\d+)", re.ASCII)
_QUORUM_FILE: Final = "quorum-state"  # Of KRaft, beside the segments of a metadata log alone.


@attrs.frozen
class InputFile:
    """Name one input, a file or the folder of a metadata log, and its cluster, which the user may have named."""

    path: str
    name: str
    is_named: bool = False


@attrs.frozen
class Lookup:
    """Choose inputs: those in folders below, those whose names match a pattern, and none of the real paths `beside`."""

    recursive: bool = True
    name_pattern: str | None = None
    beside: frozenset[str] = frozenset()

    def takes(self, path: Path) -> bool:
        """Return whether an input that was found is wanted."""
        if self.name_pattern is not None and not any(_fits(path.name, one) for one in alternatives(self.name_pattern)):
            return False
        return not self.beside or os.path.realpath(path) not in self.beside


@attrs.frozen
class Listing:
    """Hold the inputs that a path stands for in order of their names, and the paths that were passed over."""

    inputs: tuple[InputFile, ...]
    skipped: tuple[str, ...]


def input_files(paths: Iterable[str], lookup: Lookup = Lookup()) -> list[InputFile]:
    """Return the inputs that the paths stand for, each once; raise InputError for a path that stands for none."""
    return each_once(one for path in paths for one in listing_of(path, lookup).inputs)


def each_once(files: Iterable[InputFile]) -> list[InputFile]:
    """Return the inputs without those of a folder and a name that came before, unless the user named them apart."""
    real = cache(os.path.realpath)
    found: dict[tuple[str, str, str | None], InputFile] = {}
    for one in files:
        folder, name = os.path.split(one.path)
        found.setdefault((real(folder), name, one.name if one.is_named else None), one)
    return list(found.values())


def listing_of(path: str, lookup: Lookup = Lookup()) -> Listing:
    """Return the inputs that a path stands for; raise InputError if there is none, or more than `FILES_MAX` files."""
    exists = _exists(path)
    places = [Path(path)] if exists else [Path(each) for each in matches(path)]
    inputs: list[InputFile] = []
    skipped: list[str] = []
    for place in places:
        if not os.path.isdir(place):
            top = place.parent if exists else _fixed(path)
            inputs += [InputFile(str(place), _name(place, top))] if exists or lookup.takes(place) else []
            continue
        walked = sorted(_walked(place, lookup, path), key=lambda found: by_numbers(found[0]))
        top = place if exists else _fixed(path)
        inputs += [InputFile(str(each), _name(each, top)) for each, is_input in walked if is_input]
        skipped += [str(each) for each, is_input in walked if not is_input]
    if not inputs and not lookup.recursive:
        raise InputError("holds no file that is read; folders in it are read with recursiveFileLookup", source=path)
    if not inputs:  # Its reader says so.
        inputs = [InputFile(path, encodable(name_of(path)))]
    return Listing(tuple(dict.fromkeys(inputs)), tuple(skipped))


def matches(path: str) -> list[str]:
    """Return the paths that match a pattern, in order, or the path itself; raise InputError where nothing is found."""
    if _exists(path):
        return [path]
    if not is_pattern(path):
        raise InputError("cannot be read: no such file or directory", source=path)
    found = {str(each) for pattern in alternatives(path) for each in _matching(pattern)}
    if not found:
        raise InputError("no file matches the pattern", source=path)
    return sorted(found, key=by_numbers)


def is_pattern(path: str) -> bool:
    """Return whether a path that does not exist is a pattern."""
    return not _MARKS.isdisjoint(path)


def alternatives(pattern: str) -> list[str]:
    """Return the patterns that a pattern with groups in braces stands for.

    >>> alternatives("c{1,2{a,b}}.txt")
    ['c1.txt', 'c2a.txt', 'c2b.txt']
    """
    group = _GROUP.search(pattern)
    if group is None:
        return [pattern]
    before, after = pattern[: group.start()], pattern[group.end() :]
    return list(dict.fromkeys(found for each in group[1].split(",") for found in alternatives(before + each + after)))


def name_of(path: str) -> str:
    """Return a file's name without folder and ending, and without the ending of a compressed file.

    A directory has no ending: kraft-4.3 is called so. A metadata log is called as the directory that holds it.
    """
    name = Path(path)
    if name.name == METADATA_DIRECTORY:
        name = name.absolute().parent
    if name.is_dir():
        return name.name or path
    return Path(name.stem).stem if name.suffix in COMPRESSED else name.stem


def local_path(path: str) -> str:
    """Return a path or a file: URI as a path, read as Hadoop does: nothing in it is escaped.

    Raises UsageError for the URI of another file system, or of another machine.

    >>> local_path("file:///dumps/a#b.txt"), local_path("file:/c00?.txt"), local_path("dumps/12:30.txt")
    ('/dumps/a#b.txt', '/c00?.txt', 'dumps/12:30.txt')
    """
    scheme = _SCHEME.match(path)
    if scheme is None:
        return path
    rest = path[scheme.end() - 1 :]
    if scheme[1].lower() == "file" and (not rest.startswith("//") or rest.startswith("///")):
        return "/" + rest.lstrip("/")
    raise UsageError(
        f"{path}: {scheme[1]} is no file system that Python opens; dumps there are read by "
        f'parse.partitions(spark.read.format("binaryFile").load({path!r})), other files from a folder that every '
        "worker has, as a path or a file:/// URI"
    )


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


def _name(path: Path, top: Path) -> str:
    below = path.relative_to(top)
    inside = (below.parent if below.name == METADATA_DIRECTORY else below).parent
    return encodable("/".join((*inside.parts, name_of(str(path)))))


def _exists(path: str) -> bool:
    """Return whether something has this path, a link that leads nowhere included; raise InputError if none may look."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise unreadable(path, error) from None
    return True


def _fixed(pattern: str) -> Path:
    """Return the folder that a pattern begins with."""
    parts = PurePath(pattern).parts
    return Path(*parts[: next(place for place, part in enumerate(parts) if is_pattern(part))])


def _matching(pattern: str) -> Iterator[Path]:
    """Yield the paths that match a pattern without braces."""
    found = [Path()]
    for part in PurePath(pattern).parts:
        if part == ANY_FOLDERS:
            found = [below for each in found for below, _ in _folders(each)]
        elif is_pattern(part):
            found = [each / name for each in found for name in _names(each) if name == part or _fits(name, part)]
        else:
            found = [each / part for each in found if os.path.lexists(each / part)]
    yield from found


def _fits(name: str, pattern: str) -> bool:
    is_open = pattern.startswith(tuple(_MARKS))
    return fnmatchcase(name, pattern.replace("[^", "[!")) and not (is_open and _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and name != METADATA_DIRECTORY)


def _names(folder: Path) -> list[str]:
    """Return the names in a folder; none if it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _folders(top: Path) -> Iterator[tuple[Path, bool]]:
    """Yield a folder and those below it, and whether each is new: links, which may lead back, come last."""
    seen: set[str] = set()
    waiting = [top]
    links: list[Path] = []
    while waiting or links:  # Each turn takes one; what has been seen adds none.
        folder = waiting.pop() if waiting else links.pop(0)
        place = os.path.realpath(folder)
        leads_back = folder != top and Path(os.path.realpath(top)).is_relative_to(place)
        if place in seen or leads_back:
            yield folder, False
            continue
        seen.add(place)
        yield folder, True
        for name in _names(folder):
            each = folder / name
            if os.path.isdir(each) and not _is_hidden(name) and name != METADATA_DIRECTORY:
                (links if os.path.islink(each) else waiting).append(each)


def _walked(top: Path, lookup: Lookup, said: str) -> Iterator[tuple[Path, bool]]:
    """Yield what stands in a folder and, as the lookup says, below it, and whether it is read."""
    count = 0
    for folder, is_new in _folders(top) if lookup.recursive else [(top, True)]:
        if not is_new:
            yield folder, False
            continue
        for each, is_input in _inside(folder, is_given=folder == top):
            count += 1
            if count > FILES_MAX:
                raise InputError(f"holds more than {FILES_MAX:,} files; name fewer of them", source=said)
            yield each, is_input and lookup.takes(each)


def _inside(folder: Path, *, is_given: bool) -> Iterator[tuple[Path, bool]]:
    """Yield the folder itself if it is one input, and the files in it, and whether each is read."""
    try:
        names = os.listdir(folder)
    except OSError:
        yield folder, True
        return
    is_log = _is_metadata_log(folder.name, names, is_given=is_given)
    if is_log:
        yield folder, True
    elif not is_given and {META_PROPERTIES_FILE, PARTITION_METADATA_FILE} & set(names):
        yield folder, False
        return
    for name in names:
        each = folder / name
        if not os.path.isdir(each) and not (is_log and (is_log_file(name) or name == _QUORUM_FILE)):
            is_file = os.path.isfile(each) or not os.path.exists(each)
            yield each, is_file and not _is_hidden(name) and not is_log_file(name)


def _is_metadata_log(folder: str, names: Sequence[str], *, is_given: bool) -> bool:
    """Return whether a folder is or holds a metadata log: its segments lie in it, and no topic's partition.metadata."""
    is_of_topic = PARTITION_METADATA_FILE in names and _QUORUM_FILE not in names and folder != METADATA_DIRECTORY
    return METADATA_DIRECTORY in names or (any(map(is_metadata_file, names)) and (is_given or not is_of_topic))
