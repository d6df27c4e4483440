"""Print lines and progress for all commands of `brokerside log`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from broker.cli import printable
from broker.errors import UsageError
from broker.ids import INT64_MAX
from broker.units import MIB, TimeMs
from broker.workers import Advance
from log.tools.sources import SourceFile, SourceFolder

JOBS_MAX = 256
PATHS = click.argument(
    "paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH..."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line instead of text.")
QUIET = click.option("--quiet", is_flag=True, help="Show no progress bar.")
JOBS = click.option(
    "--jobs",
    type=click.IntRange(1, JOBS_MAX),
    metavar="N",
    help="Processes that share the work (default: one a core); the output is the same for any number.",
)
KEEP_GOING = click.option("--keep-going", is_flag=True, help="Skip damaged bytes and read the rest.")
NOW = click.option(
    "--now-ms",
    type=click.IntRange(0, INT64_MAX),
    metavar="MS",
    help="Current time in milliseconds since 1970 (default: this machine's clock).",
)


def time_ms(now_ms: int | None) -> TimeMs:
    """Return the time given with `--now-ms`, or the time of this machine's clock if the option is not given."""
    return TimeMs(time.time_ns() // 1_000_000 if now_ms is None else now_ms)


def check_out(paths: Sequence[Path], out: Path) -> None:
    """Raise UsageError if the output directory `out` lies in one of the directories that the command reads."""
    for path in paths:
        if path.is_dir() and out.resolve().is_relative_to(path.resolve()):
            raise UsageError(f"--out {out} lies in {path}, which is only read")


BAR_SIZE_MIN: Final = 64 * MIB  # Read in about a tenth of a second; a bar for less only flickers.
LINES_PER_WRITE: Final = 1000
CHARACTERS_PER_WRITE: Final = MIB
SECONDS_PER_REFRESH: Final = 0.1
FILE_COST: Final = MIB
"""What opening and closing a file costs beside its bytes: as much as reading a mebibyte."""


def print_lines(lines: Iterable[str]) -> None:
    """Print lines in blocks; if the iterator raises an error, print the lines before the error first."""
    write_lines(partial(click.echo, nl=False), lines)


def write_lines(write: Callable[[str], object], lines: Iterable[str], *, raw: bool = False) -> None:
    """Write lines with their line ends in blocks, and a long line in slices.

    `raw` escapes nothing that a terminal would obey.
    """
    held: list[str] = []
    size = 0
    try:
        for line in lines:
            held.append(line if raw or line.isprintable() else printable(line))
            size += len(line)
            if len(held) == LINES_PER_WRITE or size > CHARACTERS_PER_WRITE:
                _write_block(write, held)
                held.clear()
                size = 0
    finally:
        if held:
            _write_block(write, held)


def _write_block(write: Callable[[str], object], lines: Sequence[str]) -> None:
    """Write a block of lines, of which only the last may be long: 8 MiB of value are 50 MB of JSON."""
    *before, last = lines
    if len(last) <= CHARACTERS_PER_WRITE:
        write("\n".join((*lines, "")))
        return
    if before:
        write("\n".join((*before, "")))
    for start in range(0, len(last), CHARACTERS_PER_WRITE):
        write(last[start : start + CHARACTERS_PER_WRITE])
    write("\n")


def print_error(line: str) -> None:
    """Print one line to standard error."""
    click.echo(printable(line), err=True)


@contextmanager
def progress(title: str, size: int, *, quiet: bool, size_min: int = BAR_SIZE_MIN) -> Iterator[Advance]:
    """Yield a function that advances the progress bar; print no bar without a terminal or for little work."""
    if quiet or size < size_min or not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (TextColumn(title), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    # Drawn by whoever advances it: with a thread that draws, this process could not be forked to share its work.
    console = Console(stderr=True)
    # Lines that are printed meanwhile go above the bar; rich would send them to stderr also where stdout is a file.
    redirects = sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, auto_refresh=False, redirect_stdout=redirects) as bar:
        task, drawn = bar.add_task(title, total=size), time.monotonic()

        def advance(count: int) -> None:
            nonlocal drawn
            bar.advance(task, count)
            if (now := time.monotonic()) >= drawn + SECONDS_PER_REFRESH:
                bar.refresh()
                drawn = now

        yield advance


def file_cost(file: SourceFile) -> int:
    """Return what working on a file costs, in bytes."""
    return FILE_COST + file.size_bytes


def folder_cost(folder: SourceFolder) -> int:
    """Return what working on all files of a folder costs, in bytes."""
    return sum(map(file_cost, folder.files))
