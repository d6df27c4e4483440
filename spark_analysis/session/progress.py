"""Show the progress of a long job on stderr: a bar on a terminal, elsewhere a line in 10 seconds if it changed.

The total is known beforehand (clusters of a fleet, files to read); the number done only grows and never exceeds it,
also when Spark repeats a task. It comes from `bar.advance`, or from a function that is asked five times a second.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_SECONDS: Final = 0.2  # Asking takes 2 ms; a bar that moves five times a second looks steady.
POLLS_PER_LINE: Final = 50  # In a log one line in 10 s, and none for work shorter than that.


class Bar:
    """Hold the number done of `total`; it only grows. Threads may share one."""

    def __init__(self, title: str, total: int | None, unit: str) -> None:
        self.title = title
        self.total = total
        self.unit = unit
        self._done = 0
        self._lock = threading.Lock()

    @property
    def done(self) -> int:
        """Return the number done, at most `total`."""
        return self._done if self.total is None else min(self._done, self.total)

    def advance(self, count: int = 1) -> None:
        """Add `count` to the number done."""
        with self._lock:
            self._done += count

    def reach(self, count: int) -> None:
        """Raise the number done to `count`; a smaller `count` changes nothing."""
        with self._lock:
            self._done = max(self._done, count)

    def __str__(self) -> str:
        """One line, such as "Placing: 1,200 of 10,000 clusters"."""
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
    """Show a bar while the block runs; `done`, if given, is called five times a second for the number done.

    Without a `total` the bar only moves. `quiet` shows nothing. `stream` is stderr if not given.
    """
    bar, console = Bar(title, total, unit), Console(file=sys.stderr if stream is None else stream)
    can_draw = console.is_terminal and not console.is_dumb_terminal
    ended, polls, written = threading.Event(), itertools.count(1), [str(bar)]
    with contextlib.ExitStack() as stack:
        draw = stack.enter_context(_drawn(bar, console)) if can_draw and not quiet else None

        def look() -> None:
            if done is not None:
                # A session that is about to stop does not answer; the work itself will say why.
                with contextlib.suppress(Exception):
                    bar.reach(done())
            if draw is not None:
                draw()
            elif not quiet and next(polls) % POLLS_PER_LINE == 0 and written != [str(bar)]:
                written[:] = [str(bar)]
                console.file.write(f"{bar}\n")
                console.file.flush()

        def watch() -> None:
            while not ended.wait(POLL_SECONDS):
                look()

        thread = threading.Thread(target=watch, name="progress", daemon=True)
        thread.start()
        try:
            yield bar
            look()
        finally:
            ended.set()
            thread.join()


def task_share(spark: SparkSession) -> float:
    """Return the share of the running stages' tasks that are done, 0 to 1; of a Connect session 0."""
    context = getattr(spark, "_sc", None)
    if context is None:
        return 0.0
    tracker = context.statusTracker()
    stages = [stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number)) is not None]
    done, count = (sum(int(getattr(stage, name)) for stage in stages) for name in ("numCompletedTasks", "numTasks"))
    return done / max(1, count)


@contextlib.contextmanager
def _drawn(bar: Bar, console: Console) -> Iterator[Callable[[], None]]:
    # Not markup: titles may hold names from a dump. Lines that others print meanwhile go where they were meant to go.
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[text]}", markup=False),
    )
    display = Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with display:
        task = display.add_task(bar.title, total=bar.total, text="")

        def refresh() -> None:
            text = str(bar).removeprefix(f"{bar.title}: ")
            display.update(task, completed=bar.done, text=text, refresh=True)

        yield refresh
