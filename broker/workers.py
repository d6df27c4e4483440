"""Run the work on many items in processes, and take the results in order.

Goals, most important first: the results are the same for any number of processes, and so is what a command prints; an
interrupt ends all processes, after what they had begun was undone; little work is done in this process, at once.

How: items go to the processes in runs of similar cost. A process gets its next run when it has answered the one
before, so that neither waits for the other to read, and only a few runs ahead of the result that is waited for, so that
results do not pile up. The processes are forked from this one, which takes milliseconds, as everything is loaded here.
A process with several threads is not forked, as a lock that another thread holds would never be given back: there the
processes come from a fork server, which loads the module of the work again, in half a second. No thread is started
here. `Workers` keeps the processes for the next work, which finds there what the work before has loaded.

Example: list(in_order(len, ["ab", "c"], cost=len, jobs=2, advance=ignore)) == [2, 1]

Source: ours.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import attrs

from broker.units import MIB
from broker.worker_process import is_worker as is_worker  # Commands take it from here.
from broker.worker_process import serve

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Item = TypeVar("Item")
Result = TypeVar("Result")
Advance: TypeAlias = Callable[[int], None]
"""Moves a progress bar forward by an amount of work."""
Work: TypeAlias = Callable[[Item, Advance], Result]
"""Works on an item, moving the progress bar forward; a function that other processes can import."""
StartMethod: TypeAlias = Literal["fork", "forkserver"]

PROCESS_COST: Final = 64 * MIB
"""Work that is worth a forked process of its own, in bytes that are read: a tenth of a second."""
SERVED_FACTOR: Final = 8
"""How much more work is worth a process of a fork server, whose start takes half a second."""
RUN_COST: Final = 16 * MIB
RUNS_AHEAD: Final = 32


def _ignore(_: int) -> None: ...


def core_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start_method() -> StartMethod:
    """Return "fork" on Linux if this process has one thread only, else "forkserver"."""
    try:
        return "fork" if sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1 else "forkserver"
    except OSError:  # Who cannot count threads does not fork.
        return "forkserver"


def in_order(
    work: Work[Item, Result],
    items: Sequence[Item],
    *,
    cost: Callable[[Item], int],
    jobs: int | None,
    advance: Advance = _ignore,
) -> Iterator[Result]:
    """Yield the results of `work` on the items, in their order, from up to `jobs` processes (None: one a core).

    Raises what `work` raises, at the place of its item.
    """
    with Workers(jobs) as workers:
        yield from workers.in_order(work, items, cost=cost, advance=advance)


@attrs.define
class _Run:
    """Hold items that go to a process at once, and what came back for them."""

    items: Sequence[Any]
    cost: int
    results: list[Any] | None = None
    error: BaseException | None = None


@attrs.define(eq=False)
class _Worker:
    """Hold a process, our end of its pipe, and the run that it works on."""

    process: BaseProcess
    pipe: Connection
    run: _Run | None = None

    def give(self, work: Work[Item, Result], run: _Run) -> None:
        try:
            self.pipe.send((work, run.items))
        except OSError:
            raise self._gone() from None
        self.run = run

    def take(self) -> _Run:
        """Return the run that the process was given, with its results; raise its KeyboardInterrupt."""
        run, self.run = self.run, None
        assert run is not None
        try:
            run.results, run.error = self.pipe.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        if isinstance(run.error, KeyboardInterrupt):  # The same signal may not have come to us yet.
            raise run.error
        return run

    def _gone(self) -> ChildProcessError:
        self.process.join()
        return ChildProcessError(f"a process that shared the work ended with status {self.process.exitcode}")


class Workers:
    """Share work among up to `jobs` processes (None: one a core); little work starts none.

    Use it in a `with` block, at whose end no process is left.
    """

    def __init__(self, jobs: int | None) -> None:
        self._jobs = core_count() if jobs is None else jobs
        self._workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        """Interrupt the processes that still work, and wait for all of them to end."""
        with _held_back(signal.SIGINT):
            for worker in self._workers:
                if worker.run is not None and worker.process.pid is not None and worker.process.is_alive():
                    os.kill(worker.process.pid, signal.SIGINT)
                worker.pipe.close()
            for worker in self._workers:
                worker.process.join()
            self._workers.clear()

    def in_order(
        self,
        work: Work[Item, Result],
        items: Sequence[Item],
        *,
        cost: Callable[[Item], int],
        advance: Advance = _ignore,
    ) -> Iterator[Result]:
        """Yield the results of `work` on the items, in their order; raise what `work` raises, at its item's place."""
        assert all(worker.run is None for worker in self._workers), "the work before was not taken to its end"
        costs = [cost(item) for item in items]
        method = start_method()
        process_cost = PROCESS_COST if method == "fork" else PROCESS_COST * SERVED_FACTOR
        count = min(self._jobs, len(items), sum(costs) // process_cost)
        if count > 1:
            self._start(count - len(self._workers), method, getattr(work, "func", work).__module__)
            yield from self._shared(work, _runs(items, costs), advance)
            return
        for item, size in zip(items, costs, strict=True):
            meter = _Meter(advance)
            result = work(item, meter.move)
            advance(max(0, size - meter.moved))
            yield result

    def _start(self, count: int, method: StartMethod, module: str) -> None:
        """Start `count` more processes; a fork server loads `module` before it forks them."""
        is_forked = method == "fork"
        context = multiprocessing.get_context("fork") if is_forked else multiprocessing.get_context("forkserver")
        if not is_forked and count > 0:
            context.set_forkserver_preload([module])
            _start_server()
        for _ in range(count):
            with _held_back(signal.SIGINT, signal.SIGTERM):
                ours, theirs = context.Pipe()
                inherited = [*(worker.pipe for worker in self._workers), ours] if is_forked else []
                process = context.Process(target=serve, args=(theirs, inherited))
                process.start()
                theirs.close()
                self._workers.append(_Worker(process, ours))

    def _shared(self, work: Work[Item, Result], runs: Iterator[_Run], advance: Advance) -> Iterator[Result]:
        """Yield the results of the runs from the processes, in order."""
        waiting: deque[_Run] = deque()
        self._hand_out(work, runs, waiting)
        while waiting:
            for run in self._answered(wait=waiting[0].results is None):
                advance(run.cost)
            self._hand_out(work, runs, waiting)
            if waiting[0].results is not None:
                first = waiting.popleft()
                yield from first.results or ()
                if first.error is not None:
                    raise first.error

    def _hand_out(self, work: Work[Item, Result], runs: Iterator[_Run], waiting: deque[_Run]) -> None:
        """Give each idle process a run; at most `RUNS_AHEAD` runs a process are not yielded yet."""
        for worker in self._workers:
            if worker.run is None and len(waiting) < RUNS_AHEAD * len(self._workers):
                run = next(runs, None)
                if run is None:
                    return
                worker.give(work, run)
                waiting.append(run)

    def _answered(self, *, wait: bool) -> Iterator[_Run]:
        """Yield the runs that processes have finished; with `wait`, block until one has."""
        from multiprocessing.connection import wait as ready  # Late: most commands start no process.

        working = [worker for worker in self._workers if worker.run is not None]
        answered = ready([worker.pipe for worker in working], None if wait else 0)
        for worker in working:
            if worker.pipe in answered:
                yield worker.take()


@attrs.define
class _Meter:
    """Pass on how far the bar moves, and add it up."""

    advance: Advance
    moved: int = 0

    def move(self, count: int) -> None:
        self.moved += count
        self.advance(count)


def _start_server() -> None:
    """Start the fork server with SIGINT blocked; the processes that it forks begin with it blocked, too."""
    from multiprocessing import forkserver, resource_tracker

    resource_tracker.ensure_running()  # Started by the server's start otherwise, which makes interrupts heard again.
    with _held_back(signal.SIGINT):
        forkserver.ensure_running()


@contextmanager
def _held_back(*numbers: signal.Signals) -> Iterator[None]:
    """Block signals in a `with` block, in which processes start or end.

    A process whose parent gave up half-way would print a traceback, or be left.
    """
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


def _runs(items: Sequence[Any], costs: Sequence[int]) -> Iterator[_Run]:
    """Yield the items in runs of at least `RUN_COST`."""
    run: list[Any] = []
    total = 0
    for item, cost in zip(items, costs, strict=True):
        run.append(item)
        total += cost
        if total >= RUN_COST:
            yield _Run(run, total)
            run, total = [], 0
    if run:
        yield _Run(run, total)
