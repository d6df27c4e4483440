"""Check the inputs that the arguments of `brokerside report` name, before Spark is started.

Goals, most important first: an input that cannot be used is reported within a second, not after Spark's start; names in
the report are short and never alike.

How: small files are read whole here and again by the executor, which costs milliseconds; large ones are left to the
executors. Dumps whose file names begin with rising numbers, in one folder, are moments of one cluster.

Example: dump_inputs(("1-before.txt", "2-after.txt"), None, None) are two inputs of one series.

Left out: standard input; executors read files, not pipes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import attrs
import numpy as np

from broker.errors import InputError, NothingUsableError, UsageError
from broker.ids import Offset
from broker.units import TimeMs
from log.metadata import Moment
from spark_analysis.sources.dumps import LAST, DumpInput, Moments, read_input, size_bytes, with_sizes
from spark_analysis.sources.files import check_readable

QUICK_SIZE_BYTES_MAX: Final = 1 << 20  # Read in about a tenth of a second.
OFFSET_DIGITS_MAX: Final = 18  # Below 2**63.
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z?)?", re.ASCII)
_NUMBERED: Final = re.compile(r"(\d{1,9})\D", re.ASCII)


def dump_inputs(
    dumps: Sequence[str], named_format: str | None, moments: bool | None, at: tuple[Moment, ...] = ()
) -> tuple[DumpInput, ...]:
    """Return the inputs of `FILE` and `NAME=FILE` arguments, of one series when they are moments of one cluster.

    A file without a name takes its own without folder and ending, or its path where two would be alike. `at` are
    moments of a metadata log; with `moments`, a single log without any takes the moments before its live brokers
    changed.
    """
    by_brokers = moments is True and not at and len(dumps) == 1
    of_log = Moments(at=at) if at else Moments(by_brokers=True) if by_brokers else LAST
    pairs = [_named_path(text) for text in dumps]
    series = "moments" if (_are_numbered([path for _, path in pairs]) if moments is None else moments) else None
    stems = Counter(Path(path).stem for name, path in pairs if name is None)
    names = [name or (Path(path).stem if stems[Path(path).stem] == 1 else path) for name, path in pairs]
    return tuple(
        DumpInput(path=path, name=name, format=named_format, series=series, moments=of_log)
        for name, (_, path) in zip(names, pairs, strict=True)
    )


def with_sizes_of(inputs: Sequence[DumpInput], sizes: Sequence[str]) -> tuple[DumpInput, ...]:
    """Return the inputs with the files of the `FILE` and `NAME=FILE` arguments of `--sizes`.

    A file without a name belongs to the only cluster, at its last moment. Raises UsageError where the cluster of a file
    is not clear, or has another file already.
    """
    found = list(inputs)
    names = [dump.name for dump in found]
    for text in sizes:
        name, path = _named_path(text)
        if name is None and len(found) > 1 and found[0].series is None:
            raise UsageError(f"--sizes {text!r}: of {len(found)} clusters; name one of them, as in --sizes NAME=FILE")
        if name is not None and name not in names:
            known = ", ".join(str(each) for each in names[:10])
            raise UsageError(f"--sizes {text!r}: no cluster is called {name!r}; there are {known}")
        place = len(found) - 1 if name is None else names.index(name)
        if found[place].sizes is not None:
            raise UsageError(f"--sizes {text!r}: cluster {names[place]!r} has sizes already")
        found[place] = attrs.evolve(found[place], sizes=path)
    return tuple(found)


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
    """Raise the InputError of the first input that cannot be read, or, of the small ones, cannot be used.

    An input of a known format without anything of use is accepted beside others: the job puts it aside.
    """
    unusable = []
    for dump in inputs:
        check_readable(dump.path)
        if not Path(dump.path).is_file() and not Path(dump.path).is_dir():
            raise InputError(
                "not a regular file; executors read files, so save the dump to one first", source=dump.path
            )
        if dump.sizes is not None:
            check_readable(dump.sizes)
        if size_bytes(dump.path) > QUICK_SIZE_BYTES_MAX:
            continue
        try:
            parsed = read_input(dump.path, format=dump.format, name=dump.name, moments=dump.moments)
            if dump.sizes is not None and size_bytes(dump.sizes) <= QUICK_SIZE_BYTES_MAX:
                with_sizes(parsed, dump.sizes)
        except NothingUsableError as error:
            unusable.append(error)
    if unusable and len(unusable) == len(inputs):
        raise unusable[0]


def _named_path(text: str) -> tuple[str | None, str]:
    name, equals, path = text.partition("=")
    return (name, path) if equals and name and path and not Path(text).exists() else (None, text)


def _are_numbered(paths: Sequence[str]) -> bool:
    """Return whether the files' names begin with rising numbers, in one folder: 1-baseline.txt, 2-broker-lost.txt."""
    found = [_NUMBERED.match(Path(path).name) for path in paths]
    numbers = [int(match[1]) for match in found if match is not None]
    rising = all(first < second for first, second in pairwise(numbers))
    return len(numbers) == len(paths) > 1 and rising and len({Path(path).parent for path in paths}) == 1
