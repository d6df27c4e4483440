"""Show the progress of a long job: a steady bar on a terminal, a line now and then elsewhere.

What it decides: which lines about a running job appear, always on stderr, never on stdout.

Goals, most important first: the bar never goes back and never exceeds its total, also when Spark repeats a task;
nothing of it is left when the block ends, however it ends; a log file gets few and plain lines.

How: the total is known beforehand (clusters of a fleet, files to read), which makes the bar steady; Spark's own stages
come and go, and a bar over them jumps back. The number done comes from `bar.advance`, called by this process from any
thread, or from a function that is asked some times a second: the files in which tasks count (tables/write.py) count a
repeated task twice, so the number is cut at the total.

Example:
    with progress("Placing", total=10_000, unit="clusters", done=run.done_count):
        ...

Left out: an estimate of the time left, as clusters differ too much in size; an accumulator, which learns of a task when
the task ends (Spark 4.3.0, Accumulators).
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

POLL_SECONDS: Final = 0.2  # Asking takes 2 ms; a bar that moves five times a second looks steady.
POLLS_PER_LINE: Final = 50  # In a log one line in 10 s, and none for work shorter than that.


class Bar:
    """Hold the number done of `total`; it only grows, and stays within the total. Threads may share one."""

    def __init__(self, title: str, total: int | None, unit: str) -> None:
        self.title = title
        self.total = total
        self.unit = unit
        self._done = 0
        self._lock = threading.Lock()

    @property
    def done(self) -> int:
        """Return the number done, at most `total`."""
        with self._lock:
            return self._done if self.total is None else min(self._done, self.total)

    def advance(self, count: int = 1) -> None:
        """Add `count` to the number done."""
        assert count >= 0, count
        with self._lock:
            self._done += count

    def reach(self, count: int) -> None:
        """Raise the number done to `count`; a smaller `count` changes nothing."""
        with self._lock:
            self._done = max(self._done, count)

    def __str__(self) -> str:
        """One plain line, such as "Placing: 1,200 of 10,000 clusters"."""
        of_total = "" if self.total is None else f" of {self.total:,}"
        return f"{self.title}: {self.done:,}{of_total} {self.unit}"


@contextlib.contextmanager
def progress(
    title: str,
    *,
    total: int | None,
    unit: str,
    done: Callable[[], int] | None = None,
    quiet: bool = False,
    stream: TextIO | None = None,
) -> Iterator[Bar]:
    """Show a bar while the block runs; `done`, if given, is called some times a second for the number done.

    Without a `total` the bar only moves. `quiet` shows nothing. `stream` is stderr if not given.
    """
    bar = Bar(title, total, unit)
    where = sys.stderr if stream is None else stream
    show = _nothing if quiet else _drawn if _can_draw(where) else _lines
    with show(bar, where) as refresh, _polling(bar, done, refresh):
        yield bar


def _can_draw(stream: TextIO) -> bool:
    """Whether the stream is a terminal whose cursor can be moved; one that says it is dumb gets lines."""
    return stream.isatty() and not Console(file=stream).is_dumb_terminal


@contextlib.contextmanager
def _polling(bar: Bar, done: Callable[[], int] | None, refresh: Callable[[], None]) -> Iterator[None]:
    """Ask `done` and refresh what is shown, on a thread of its own, and once more when the block ends well."""
    ended = threading.Event()

    def look() -> None:
        if done is not None:
            # A session that is about to stop does not answer; the work itself will say why.
            with contextlib.suppress(Exception):
                bar.reach(done())
        refresh()

    def watch() -> None:
        while not ended.wait(POLL_SECONDS):
            look()

    thread = threading.Thread(target=watch, name="progress", daemon=True)
    thread.start()
    try:
        yield
        look()
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def _nothing(bar: Bar, stream: TextIO) -> Iterator[Callable[[], None]]:
    yield lambda: None


@contextlib.contextmanager
def _drawn(bar: Bar, stream: TextIO) -> Iterator[Callable[[], None]]:
    # The text is escaped by being a column's value, not its markup: titles may hold names from a dump.
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[text]}", markup=False),
    )
    display = Progress(
        *columns,
        TimeElapsedColumn(),
        console=Console(file=stream),
        transient=True,
        auto_refresh=False,
        # Lines that others print meanwhile go where they were meant to go.
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with display:
        task = display.add_task(bar.title, total=bar.total, text="")

        def refresh() -> None:
            text = str(bar).removeprefix(f"{bar.title}: ")
            display.update(task, completed=bar.done, text=text, refresh=True)

        yield refresh


@contextlib.contextmanager
def _lines(bar: Bar, stream: TextIO) -> Iterator[Callable[[], None]]:
    polls = itertools.count(1)

    def refresh() -> None:
        if next(polls) % POLLS_PER_LINE == 0:
            stream.write(f"{bar}\n")
            stream.flush()

    yield refresh
