"""Check the inputs that the arguments of `brokerside report` name, before Spark is started.

A mistake in the arguments ends the command: a file that is not there, two clusters of one name, no input that can be
used. A damaged file beside good ones does not: the task that reads it puts it aside.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs
import numpy as np

from broker.errors import InputError, UsageError
from broker.ids import Offset
from broker.units import TimeMs
from broker.wording import encodable
from log.metadata import FORMAT as METADATA_FORMAT
from log.metadata import Moment
from placement.formats.describe import FORMAT as TOPICS_FORMAT
from placement.formats.racks import RACKS_BYTES_MAX, Racks, read_racks
from spark_analysis.live.cluster import LIVE, Snapshot
from spark_analysis.sources.dumps import (
    BY_NAME,
    LAST,
    NO_MOMENTS,
    DumpInput,
    Moments,
    check_begins,
    is_empty,
    is_metadata,
    none_usable,
)
from spark_analysis.sources.files import CHUNK_SIZE_BYTES, check_readable, read_small_file
from spark_analysis.sources.listing import InputFile, Lookup, each_once, is_pattern, listing_of, local_path, name_of
from spark_analysis.sources.series import BY_LISTING, IN_ORDER, as_moments, with_short_names

STDIN: Final = "-"
STDIN_NAME: Final = "stdin"  # What its cluster is called.
STDIN_SIZE_BYTES_MAX: Final = 8 << 30  # A describe of ten million partitions is a fifth of this.
OFFSET_DIGITS_MAX: Final = 18  # Below 2**63.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z?)?", re.ASCII)
_NUMBERED: Final = re.compile(r"(\d{1,9})\D", re.ASCII)
_PLACEHOLDER: Final = re.compile(r"\{[^{}]*\}")
_PLACEHOLDERS: Final = ("{file}", "{folder}")


def dump_inputs(
    dumps: Sequence[str],
    named_format: str | None,
    moments: bool | None,
    at: tuple[Moment, ...] = (),
    *,
    beside: Sequence[str] = (),
) -> tuple[DumpInput, ...]:
    """Return the inputs of `FILE` and `NAME=FILE` arguments, of one series when they are moments of one cluster.

    Which files an argument stands for, and what their clusters are called, `listing` says; those that `beside` names
    are given for dumps, and left out. A file that is named twice is one input. `at` are moments of a metadata log; with
    `moments`, a single log without any takes the moments before its unfenced brokers changed, and several inputs are
    moments of the clusters that `series` finds. Raises UsageError for two inputs of one name.
    """
    others = frozenset(os.path.realpath(one.path) for text in beside for one in _expanded(*_named_path(text)))
    files = each_once(one for text in dumps for one in _expanded(*_named_path(text), others))
    by_brokers = moments is True and not at and len(files) == 1
    of_log = Moments(at=at) if at else Moments(by_brokers=True) if by_brokers else LAST
    numbered = moments is None and _are_numbered([one.path for one in files])
    in_order = IN_ORDER if len(dumps) > 1 else BY_LISTING
    series = BY_NAME if numbered else in_order if moments else None
    are_moments = moments and len(files) > 1
    counts = Counter(one.name for one in files)
    inputs = []
    for one in files:
        name = encodable(one.path) if are_moments and counts[one.name] > 1 and not one.is_named else one.name
        source = source_of(one.path)
        inputs.append(DumpInput(one.path, name, named_format, series=series, moments=of_log, source=source))
    refused = clashes(inputs)
    if first := next((dump for dump in inputs if dump.path in refused), None):
        raise UsageError(f"{first.said}: {refused[first.path]}")
    given = [one.name if one.is_named else None for one in files]
    return with_short_names(as_moments(inputs, given), given) if are_moments else tuple(inputs)


def by_dates(inputs: Sequence[DumpInput]) -> tuple[DumpInput, ...]:
    """Return the inputs as moments of clusters where their names have dates or numbers, as --moments takes them."""
    own = [(encodable(name_of(each.path)), encodable(each.path)) for each in inputs]
    return as_moments(
        inputs, [None if each.name in names else each.name for each, names in zip(inputs, own, strict=True)]
    )


def source_of(path: str) -> str | None:
    """Return what errors and tables call a path that is not UTF-8; None where it is, as they call it by itself."""
    return None if encodable(path) == path else encodable(path)


def clashes(inputs: Sequence[DumpInput]) -> dict[str, str]:
    """Return, for each path of an input whose cluster another input has as well, that in one sentence."""
    of_name: dict[str, list[DumpInput]] = {}
    for dump in inputs:
        of_name.setdefault(dump.name or dump.path, []).append(dump)
    told = {}
    for name, some in of_name.items():
        for dump in some if len(some) > 1 else ():
            other = next(each for each in some if each is not dump)
            told[dump.path] = (
                f"its cluster is {name!r}, as that of another input is; name them apart, by NAME=FILE or the option "
                f"cluster, or name their common folder: {other.said}"
            )
    return told


@contextmanager
def saved_inputs(inputs: Sequence[DumpInput], live: Snapshot | None = None) -> Iterator[tuple[DumpInput, ...]]:
    """Yield the inputs, the one called "-" as a temporary file with what standard input holds, a live one with `live`.

    Raises UsageError when two are "-", InputError when there are more than `STDIN_SIZE_BYTES_MAX` bytes.
    """
    if sum(dump.path == STDIN for dump in inputs) > 1:
        raise UsageError("standard input (-) can be one DUMP only")
    with TemporaryDirectory(prefix="brokerside-") as folder:
        saved = Path(folder) / "stdin"
        named = [_saved(dump, saved) if dump.path == STDIN else dump for dump in inputs]
        if live is not None:
            snapshot = Path(folder) / "snapshot"
            snapshot.write_bytes(live.data)
            named = [_as_saved(dump, snapshot) if dump.path.startswith(LIVE) else dump for dump in named]
        yield tuple(named)


def _as_saved(dump: DumpInput, path: Path) -> DumpInput:
    return attrs.evolve(dump, path=str(path), source=dump.path)


def _saved(dump: DumpInput, path: Path) -> DumpInput:
    size = 0
    with path.open("wb") as file:
        while chunk := sys.stdin.buffer.read(CHUNK_SIZE_BYTES):
            size += file.write(chunk)
            if size > STDIN_SIZE_BYTES_MAX:
                raise InputError(f"is larger than {STDIN_SIZE_BYTES_MAX} bytes; save it to a file", source=STDIN)
    return attrs.evolve(dump, path=str(path), source=STDIN, name=STDIN_NAME if dump.name == STDIN else dump.name)


def are_empty(inputs: Sequence[DumpInput]) -> bool:
    """Return whether all inputs are empty files: a filtered kafka-topics --describe that found no partition."""
    return all(dump.format in (None, TOPICS_FORMAT) and is_empty(dump.path) for dump in inputs)


def with_sizes_of(inputs: Sequence[DumpInput], sizes: Sequence[str]) -> tuple[DumpInput, ...]:
    """Return the inputs with the files of the `FILE` and `NAME=FILE` arguments of `--sizes`.

    A file without a name belongs to the only cluster, at its last moment. Raises UsageError where the cluster of a file
    is not clear, or has another file already.
    """
    found = list(inputs)
    names = [dump.name for dump in found]
    for text in sizes:
        place, path = _place_of("--sizes", text, found)
        if found[place].sizes is not None:
            raise UsageError(f"--sizes {text!r}: cluster {names[place]!r} has sizes already")
        found[place] = attrs.evolve(found[place], sizes=path, sizes_source=source_of(path))
    return tuple(found)


def with_groups_of(inputs: Sequence[DumpInput], groups: Sequence[str]) -> tuple[DumpInput, ...]:
    """Return the inputs with the files of the `FILE` and `NAME=FILE` arguments of `--groups`, any number each.

    A file without a name belongs to the only cluster, at its last moment; a pattern and a directory stand for files.
    Raises UsageError where the cluster of a file is not clear.
    """
    found = list(inputs)
    for text in groups:
        place, path = _place_of("--groups", text, found)
        more = tuple(one.path for one in _expanded(None, path))
        groups = (*found[place].groups, *more)
        found[place] = attrs.evolve(found[place], groups=groups, groups_sources=tuple(map(encodable, groups)))
    return tuple(found)


def _place_of(option: str, text: str, inputs: Sequence[DumpInput]) -> tuple[int, str]:
    """Return the place of the input that an argument `FILE` or `NAME=FILE` belongs to, and the path of the file.

    NAME is that of an input or of a cluster, whose last moment it then is.
    """
    name, path = _named_path(text)
    places = {dump.name if dump.cluster is None else dump.cluster: place for place, dump in enumerate(inputs)}
    count = len(places) if any(dump.cluster for dump in inputs) or inputs[0].series is None else 1
    if name is None and count > 1:
        raise UsageError(f"{option} {text!r}: of {count} clusters; name one of them, as in {option} NAME=FILE")
    known = places | {dump.name: place for place, dump in enumerate(inputs)}
    if name is not None and name not in known:
        shown = ", ".join(str(each) for each in list(places)[:10])
        raise UsageError(f"{option} {text!r}: no cluster is called {name!r}; there are {shown}")
    return len(inputs) - 1 if name is None else known[name], path


def racks_in(path: str) -> Racks:
    """Return the racks in a file; raise InputError if it cannot be used."""
    return read_racks(read_small_file(path, size_bytes_max=RACKS_BYTES_MAX), source=path)


def moment(text: str) -> Moment:
    """Return the moment of one `--at`: an offset, or a time of UTC; raise UsageError for any other text."""
    if text.isascii() and text.isdecimal() and len(text) <= OFFSET_DIGITS_MAX:
        return Moment(offset=Offset(int(text)))
    if _TIME.fullmatch(text):
        try:
            time = np.datetime64(text.removesuffix("Z"), "ms")
        except ValueError:
            pass
        else:
            return Moment(time_ms=TimeMs(int(time.astype(np.int64))))
    raise UsageError(f"--at is {text!r}; it is an offset, or a time of UTC such as 2026-11-21T18:30:00.000Z")


def check_inputs(inputs: Sequence[DumpInput]) -> None:
    """Raise InputError for a file that is not there, for moments of what has none, or if no input can be used.

    A file of sizes or groups must be readable, too. Of inputs that cannot be used the first is named.
    """
    for dump in inputs:
        if not os.path.lexists(dump.path):
            check_readable(dump.path)  # Raises.
        for path in (dump.sizes, *dump.groups):
            if path is not None:
                check_readable(path)
        if dump.moments != LAST and not dump.moments.by_brokers:
            _check_has_moments(dump)
    failures = []
    for dump in inputs:
        try:
            check_begins(dump)
        except InputError as error:
            failures.append(error)
        else:
            return
    raise none_usable(failures)


def _check_has_moments(dump: DumpInput) -> None:
    """Raise InputError for an input of a known format without moments; a damaged one is left to its task."""
    try:
        check_begins(dump)
        lacks = dump.format not in (None, METADATA_FORMAT) or not is_metadata(dump.path)
    except InputError:
        return
    if lacks:
        raise InputError(NO_MOMENTS, source=dump.said)


def named_by(pattern: str, path: str) -> str:
    """Return the name of the cluster of a path: `pattern`, in it {file} as `name_of` says and {folder} its folder's.

    Raises UsageError for another placeholder.
    """
    unknown = [each for each in _PLACEHOLDER.findall(pattern) if each not in _PLACEHOLDERS]
    if unknown:
        allowed = " and ".join(_PLACEHOLDERS)
        raise UsageError(f"option 'cluster' is {pattern!r}; allowed in braces are {allowed}, not {unknown[0]}")
    named = pattern.replace("{file}", name_of(path)).replace("{folder}", Path(path).absolute().parent.name)
    return encodable(named)


def _expanded(name: str | None, path: str, others: frozenset[str] = frozenset()) -> list[InputFile]:
    """Return the files that an argument stands for, with the name given to it; `others` are in no folder.

    Who reads a file says that it is not there.
    """
    if path == STDIN or path.startswith(LIVE) or not (os.path.lexists(path) or is_pattern(path)):
        alone = path.removeprefix(LIVE) if path.startswith(LIVE) else name_of(path)
        found: tuple[InputFile, ...] = (InputFile(path, encodable(alone)),)
    else:
        found = listing_of(path, Lookup(beside=others)).inputs
    if name is None:
        return list(found)
    if len(found) > 1:
        raise UsageError(f"{name}={path}: {len(found)} files cannot have one name")
    return [InputFile(found[0].path, encodable(name), is_named=True)]


def skipped_in(dumps: Sequence[str]) -> tuple[str, ...] | None:
    """Return what the folders of dumps among the arguments hold that is not read; None if there is no such folder."""
    folders = [path for _, path in map(_named_path, dumps) if Path(path).is_dir()]
    found = [(folder, listing_of(folder)) for folder in dict.fromkeys(folders)]
    if all([one.path for one in listing.inputs] == [str(Path(folder))] for folder, listing in found):
        return None
    return tuple(each for _, listing in found for each in listing.skipped)


def _named_path(text: str) -> tuple[str | None, str]:
    """Return the name and the path of an argument `FILE` or `NAME=FILE`; raise UsageError as `local_path` does."""
    if text.startswith(LIVE):
        return None, text
    name, equals, path = text.partition("=")
    is_named = equals and name and path and ":/" not in name and not os.path.lexists(text)
    return (name, local_path(path)) if is_named else (None, local_path(text))


def _are_numbered(paths: Sequence[str]) -> bool:
    """Return whether the files' names begin with rising numbers, in one folder: 1-baseline.txt, 2-broker-lost.txt."""
    found = [_NUMBERED.match(Path(path).name) for path in paths]
    numbers = [int(match[1]) for match in found if match is not None]
    rising = all(first < second for first, second in pairwise(numbers))
    return len(numbers) == len(paths) > 1 and rising and len({Path(path).parent for path in paths}) == 1
