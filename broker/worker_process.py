"""Run the work that comes through a pipe, in a process that another one started.

What it decides: how such a process takes an interrupt, and when it ends.

Constraints: the first interrupt raises KeyboardInterrupt in the work, so that what was begun is undone; a later one
does not cut that short. Then the process begins no other work, but stays until the pipe is closed: the parent may not
have been told yet. When the parent is gone, the process interrupts itself and ends.

How: SIGINT and SIGTERM, which counts as an interrupt, are blocked when the process starts, until they are handled. A
thread waits for the end of the parent.

Source: ours.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Outcome: TypeAlias = tuple[list[Any], BaseException | None]
"""The results on the items before the first that raised an error, and the error."""

_is_worker = _is_working = _is_over = False


def is_worker() -> bool:
    """Return whether `broker.workers` has started this process."""
    return _is_worker


def serve(pipe: Connection, inherited: Sequence[Connection]) -> None:
    """Answer each pair of work and items that comes through the pipe with its `Outcome`, until the pipe is closed.

    `inherited` are the parent's ends of pipes, which a forked process has as well: they are closed here.
    """
    _begin()
    for end in inherited:
        end.close()
    with suppress(EOFError, OSError):  # What a pipe says whose other end is closed.
        while True:
            work, items = pipe.recv()
            pipe.send(_outcome(work, items))


def _begin() -> None:
    """Handle signals from now on, and interrupt this process when its parent ends."""
    global _is_worker
    _is_worker = True
    signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGTERM, _interrupted)
    sys.unraisablehook = _print_unraisable
    parent, main = multiprocessing.parent_process(), threading.main_thread().ident
    assert parent is not None
    assert main is not None

    def end_with_parent() -> None:
        parent.join()
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=end_with_parent, daemon=True).start()
    # Not before: the thread keeps them blocked, as a signal that it took would not wake the main thread from a sleep.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


def _outcome(work: Callable[[Any, Callable[[int], None]], Any], items: Sequence[Any]) -> Outcome:
    """Return the results of the work on the items, and the error or the interrupt that ended it."""
    results: list[Any] = []
    try:
        return results, _worked(work, items, results)
    except KeyboardInterrupt as interrupt:  # There is no second one.
        return results, interrupt


def _worked(
    work: Callable[[Any, Callable[[int], None]], Any], items: Sequence[Any], results: list[Any]
) -> Exception | None:
    """Add the results of the work on the items to `results`; return the error that ended it.

    Raises KeyboardInterrupt after an interrupt.
    """
    global _is_working
    _is_working = True
    try:
        for item in items:
            if _is_over:  # It came between two works, or where Python cannot raise.
                raise KeyboardInterrupt
            results.append(work(item, lambda _: None))
    except Exception as error:  # Its place among the results would be lost if it were raised here.
        return error
    finally:
        _is_working = False
    return None


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT and SIGTERM: the first one raises KeyboardInterrupt if it comes during work."""
    global _is_over
    is_first, _is_over = not _is_over, True
    if _is_working and is_first:
        raise KeyboardInterrupt


def _print_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Print an error that Python cannot raise, but no KeyboardInterrupt: that ends the work at its next item."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
