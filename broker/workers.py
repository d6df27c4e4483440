"""Run the work on many items in processes, and take the results in order.

Goals, most important first: the results are the same for any number of processes, and so is what a command prints; an
interrupt ends all processes, after what they had begun was undone; little work is done in this process, at once.

How: items go to the processes in runs of similar cost, a few runs ahead of the result that is waited for, so that
neither items nor results pile up. The processes are forked from one that has loaded the module of the work, so that it
is loaded once. An interrupt raises KeyboardInterrupt in the work of each, and each begins no other; they end when the
pool does. When the parent process is gone, so are they.

Example: list(in_order(len, ["ab", "c"], cost=len, jobs=2, advance=ignore)) == [2, 1]

Source: ours.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import attrs

from broker.units import MIB

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")
Advance: TypeAlias = Callable[[int], None]
"""Moves a progress bar forward by an amount of work."""
Work: TypeAlias = Callable[[Item, Advance], Result]
"""Works on an item, moving the progress bar forward; a function that other processes can import."""
_Waiting: TypeAlias = "deque[tuple[Future[tuple[list[Result], Exception | None]], int]]"

PROCESS_COST: Final = 256 * MIB
"""Work that is worth a process of its own, whose start takes half a second, in bytes that are read."""
RUN_COST: Final = 16 * MIB
RUNS_AHEAD: Final = 4
EXIT_INTERRUPTED: Final = 128 + signal.SIGINT

_is_worker = _is_working = _is_over = False


def _ignore(_: int) -> None: ...


def is_worker() -> bool:
    """Return whether this process is one that `in_order` has started."""
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

    Raises what `work` raises, at the place of its item.
    """
    costs = [cost(item) for item in items]
    processes = min(core_count() if jobs is None else jobs, len(items), sum(costs) // PROCESS_COST)
    if processes <= 1:
        for item, size in zip(items, costs, strict=True):
            meter = _Meter(advance)
            result = work(item, meter.move)
            advance(max(0, size - meter.moved))
            yield result
        return
    yield from _from_processes(work, items, costs, processes, advance)


@attrs.define
class _Meter:
    """Pass on how far the bar moves, and add it up."""

    advance: Advance
    moved: int = 0

    def move(self, count: int) -> None:
        self.moved += count
        self.advance(count)


def _from_processes(
    work: Work[Item, Result], items: Sequence[Item], costs: Sequence[int], processes: int, advance: Advance
) -> Iterator[Result]:
    """Yield the results of `work` from a pool of so many processes."""
    from concurrent.futures import ProcessPoolExecutor  # Late: most commands start no process.

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([getattr(work, "func", work).__module__])
    _start_server()
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin_process) as pool:
        waiting: _Waiting[Result] = deque()
        try:
            for run, size in _runs(items, costs):
                with _interrupts_wait():
                    waiting.append((pool.submit(_work_on, work, run), size))
                if len(waiting) >= RUNS_AHEAD * processes:
                    yield from _taken(waiting, advance)
            while waiting:
                yield from _taken(waiting, advance)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            _interrupt(pool)
            raise


def _start_server() -> None:
    """Start the fork server with SIGINT blocked; the processes that it forks begin with it blocked, too."""
    from multiprocessing import forkserver, resource_tracker

    resource_tracker.ensure_running()  # Started by the server's start otherwise, which makes interrupts heard again.
    with _interrupts_wait():
        forkserver.ensure_running()


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Block SIGINT while a process is started: one whose parent gave up half-way prints a traceback."""
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


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


def _taken(waiting: _Waiting[Result], advance: Advance) -> Iterator[Result]:
    """Yield the results of the run that was begun first; raise the error that ended it."""
    future, size = waiting.popleft()
    results, error = future.result()
    advance(size)
    yield from results
    if error is not None:
        raise error


def _interrupt(pool: ProcessPoolExecutor) -> None:
    """Let every process of a pool clear up and end."""
    for process in list((pool._processes or {}).values()):
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGINT)


def _work_on(work: Work[Item, Result], items: Sequence[Item]) -> tuple[list[Result], Exception | None]:
    """Return the results on the items before the first that raises an error, and the error.

    Raises KeyboardInterrupt after an interrupt.
    """
    global _is_working
    if _is_over:  # A pool hands out what waits already.
        raise KeyboardInterrupt
    _is_working = True
    results: list[Result] = []
    try:
        for item in items:
            results.append(work(item, _ignore))
    except Exception as error:  # Its place among the results is lost if it is raised here.
        return results, error
    finally:
        _is_working = False
    return results, None


def _begin_process() -> None:
    """Set up a process: how it takes an interrupt, and that it ends with its parent."""
    global _is_worker
    _is_worker = True
    signal.signal(signal.SIGINT, _interrupted)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.unraisablehook = _print_unraisable
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(EXIT_INTERRUPTED)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt in the work on the first SIGINT.

    The process stays until the pool ends it: one that is gone makes the pool kill the others.
    """
    global _is_over
    is_first, _is_over = not _is_over, True
    if _is_working and is_first:  # A second one would cut short what clears up after the first.
        raise KeyboardInterrupt


def _print_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Print an error that Python cannot raise, unless it is an interrupt that came while a compiled loop was loaded."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
