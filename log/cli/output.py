"""Print lines and progress for all commands of `brokerside log`.

Constraints: other people's strings are printed escaped. A progress bar goes to standard error, and only to a terminal.

Source: ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from broker.cli import printable
from broker.units import MIB

Advance: TypeAlias = Callable[[int], None]
"""Moves a progress bar forward by a number of bytes."""

BAR_SIZE_BYTES_MIN: Final = 64 * MIB  # Read in about a tenth of a second; a bar for less only flickers.
LINES_PER_WRITE: Final = 1000


def print_lines(lines: Iterable[str]) -> None:
    """Print lines in blocks; if the iterator raises an error, print the lines before the error first."""
    held: list[str] = []
    try:
        for line in lines:
            held.append(line if line.isprintable() else printable(line))
            if len(held) == LINES_PER_WRITE:
                click.echo("\n".join(held))
                held.clear()
    finally:
        if held:
            click.echo("\n".join(held))


def print_error(line: str) -> None:
    """Print one line to standard error."""
    click.echo(printable(line), err=True)


@contextmanager
def progress(title: str, size_bytes: int, *, quiet: bool) -> Iterator[Advance]:
    """Yield a function that advances the progress bar; print no bar without a terminal or for little data."""
    if quiet or size_bytes < BAR_SIZE_BYTES_MIN or not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (TextColumn(title), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=size_bytes)
        yield lambda count: bar.advance(task, count)
