"""Share work on many items among processes, and take the results in order.

The results are the same for any number of processes, an interrupt ends all of them after what they had begun was
undone, and little work is done in this process. A ProcessPoolExecutor takes items in runs of similar cost, a few runs
ahead of the result that is waited for. A fork server starts the processes: NumPy has threads of its own, and a lock
that another thread holds would never be released in a fork. Signals are blocked while processes start or end; when its
parent is gone, a worker interrupts itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from broker.units import MIB

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.process import BaseProcess

Item = TypeVar("Item")
Result = TypeVar("Result")
Advance: TypeAlias = Callable[[int], None]
"""Moves a progress bar forward by an amount of work."""
Work: TypeAlias = Callable[[Item, Advance], Result]
"""Works on an item, moving the progress bar forward; a function that other processes can import."""
_Outcome: TypeAlias = tuple[list[Any], BaseException | None]
"""The results on a run's items before the first that raised an error, and the error."""

PROCESS_COST: Final = 512 * MIB
"""Work that is worth a process of its own, whose start takes half a second, in bytes that are read."""
RUN_COST: Final = 16 * MIB
RUNS_AHEAD: Final = 32
_STOPS: Final = (signal.SIGINT, signal.SIGTERM)

_is_worker = _is_working = _is_over = False


def _ignore(_: int) -> None: ...


def is_worker() -> bool:
    """Return whether this process was started to share work."""
    return _is_worker


def core_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    work: Work[Item, Result],
    items: Sequence[Item],
    *,
    cost: Callable[[Item], int],
    jobs: int | None,
    advance: Advance = _ignore,
) -> Iterator[Result]:
    """Yield the results of `work` on the items, in their order, from up to `jobs` processes (None: one a core).

    Raises what `work` raises, at the place of its item; ChildProcessError if a process ends by itself.
    """
    with Workers(jobs) as workers:
        yield from workers.in_order(work, items, cost=cost, advance=advance)


class Workers:
    """Share work among up to `jobs` processes (None: one a core); little work starts none, later work finds them again.

    Use it in a `with` block, at whose end no process is left.
    """

    def __init__(self, jobs: int | None) -> None:
        self._jobs = core_count() if jobs is None else jobs
        self._pool: ProcessPoolExecutor | None = None
        self._others: frozenset[BaseProcess] = frozenset()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        """Interrupt the processes that still work, and wait for all of them to end."""
        if self._pool is None:
            return
        with _held_back(*_STOPS):
            for process in frozenset(multiprocessing.active_children()) - self._others:
                if process.pid is not None:
                    os.kill(process.pid, signal.SIGINT)
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def in_order(
        self,
        work: Work[Item, Result],
        items: Sequence[Item],
        *,
        cost: Callable[[Item], int],
        advance: Advance = _ignore,
    ) -> Iterator[Result]:
        """Yield the results of `work` on the items, in their order; raise what `work` raises, at its item's place."""
        costs = [cost(item) for item in items]
        if min(self._jobs, len(items), sum(costs) // PROCESS_COST) > 1:
            if self._pool is None:
                self._start(getattr(work, "func", work).__module__)
            yield from self._shared(work, _runs(items, costs), advance)
            return
        for item, size in zip(items, costs, strict=True):
            moved = [0]

            def move(step: int, moved: list[int] = moved) -> None:
                moved[0] += step
                advance(step)

            result = work(item, move)
            advance(max(0, size - moved[0]))
            yield result

    def _start(self, module: str) -> None:
        """Make the processes ready to start; the fork server loads `module` before it forks them."""
        from concurrent.futures import ProcessPoolExecutor  # Late: most commands start no process.

        _start_server(module)
        self._others = frozenset(multiprocessing.active_children())
        context = multiprocessing.get_context("forkserver")
        self._pool = ProcessPoolExecutor(self._jobs, mp_context=context, initializer=_begin)

    def _shared(
        self, work: Work[Item, Result], runs: Iterator[tuple[list[Item], int]], advance: Advance
    ) -> Iterator[Result]:
        """Yield the results of the runs, in order; at most `RUNS_AHEAD` runs a process are not yielded yet."""
        from concurrent.futures.process import BrokenProcessPool

        assert self._pool is not None
        waiting: deque[tuple[Future[_Outcome], int]] = deque()
        try:
            while True:
                while len(waiting) < RUNS_AHEAD * self._jobs and (run := next(runs, None)) is not None:
                    with _held_back(*_STOPS):
                        waiting.append((self._pool.submit(_outcome, work, run[0]), run[1]))
                if not waiting:
                    return
                _wait_for_first([future for future, _ in waiting])
                future, run_cost = waiting.popleft()
                results, error = future.result()
                advance(run_cost)
                yield from results
                if error is not None:
                    raise error
        except BrokenProcessPool:
            raise ChildProcessError("a process that shared the work ended by itself") from None


def _start_server(module: str) -> None:
    """Start the fork server, which loads `module`, with SIGINT blocked, as are the processes that it forks."""
    from multiprocessing import forkserver, resource_tracker

    forkserver.set_forkserver_preload([module])
    resource_tracker.ensure_running()  # Started by the server's start otherwise, which makes interrupts heard again.
    with _held_back(signal.SIGINT):
        forkserver.ensure_running()


def _wait_for_first(futures: Sequence[Future[_Outcome]]) -> None:
    """Wait until the first future is done; raise the KeyboardInterrupt of any: its signal may not have come to us."""
    from concurrent.futures import FIRST_COMPLETED, wait

    while not futures[0].done():
        done, _ = wait([future for future in futures if not future.done()], return_when=FIRST_COMPLETED)
        for future in done:
            error = future.result()[1]
            if isinstance(error, KeyboardInterrupt):
                raise error


def _runs(items: Sequence[Item], costs: Sequence[int]) -> Iterator[tuple[list[Item], int]]:
    """Yield the items in runs of at least `RUN_COST`, each with its cost."""
    run: list[Item] = []
    total = 0
    for item, cost in zip(items, costs, strict=True):
        run.append(item)
        total += cost
        if total >= RUN_COST:
            yield run, total
            run, total = [], 0
    if run:
        yield run, total


@contextmanager
def _held_back(*numbers: signal.Signals) -> Iterator[None]:
    """Block signals in a `with` block, in which processes start or end."""
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


# In a worker.


def _begin() -> None:
    """Handle signals from now on, and interrupt this process when its parent ends."""
    global _is_worker
    _is_worker = True
    for number in _STOPS:
        signal.signal(number, _interrupted)
    parent, main = multiprocessing.parent_process(), threading.main_thread().ident
    assert parent is not None
    assert main is not None

    def end_with_parent() -> None:
        parent.join()
        signal.pthread_kill(main, signal.SIGINT)
        while _is_working:
            threading.Event().wait(0.01)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    # Not before: the thread keeps them blocked, as a signal that it took would not wake the main thread from a sleep.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)


def _outcome(work: Work[Item, Any], items: Sequence[Item]) -> _Outcome:
    """Return the results of the work on the items, and the error or the interrupt that ended it."""
    global _is_working
    results: list[Any] = []
    try:
        _is_working = True
        for item in items:
            if _is_over:  # The signal came between two items, or where Python cannot raise.
                raise KeyboardInterrupt
            results.append(work(item, _ignore))
    except (Exception, KeyboardInterrupt) as error:  # Its place among the results would be lost if it were raised.
        return results, error
    finally:
        _is_working = False
    return results, None


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT and SIGTERM: the first one raises KeyboardInterrupt if it comes during work."""
    global _is_over
    is_first, _is_over = not _is_over, True
    if _is_working and is_first:
        raise KeyboardInterrupt
