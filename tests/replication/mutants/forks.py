"""Run a call in a fork of this process, and tell what came of it.

What it decides: how such a process ends: with the words that the call returns, with an exception, or because its CPU
seconds are spent or its memory is.

Constraints: nothing that the call does to modules, files of this process or pytest's state is left here, and no process
that it started runs on.

Source: ours.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Final, TypeVar

from broker.units import GIB
from tests.replication.mutants.tree import Done

_Item = TypeVar("_Item")
_MEMORY: Final = 8 * GIB
"""More than any check takes; a mutant may ask for all there is."""


def in_fork(call: Callable[[], str], cpu_seconds: float) -> Done:
    """Return what came of one call."""
    ((_, done),) = in_forks([None], lambda _: call, lambda _: cpu_seconds, jobs=1)
    return done


def in_forks(
    items: Sequence[_Item],
    call: Callable[[_Item], Callable[[], str]],
    cpu_seconds: Callable[[_Item], float],
    *,
    jobs: int,
) -> Iterator[tuple[_Item, Done]]:
    """Yield each item with what came of its call, as they end; `jobs` run at a time."""
    waiting = list(reversed(items))
    running: dict[int, tuple[_Item, int, list[bytes]]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                item = waiting.pop()
                pipe, process = _started(call(item), cpu_seconds(item), list(running))
                running[pipe] = (item, process, [])
            for pipe in wait(list(running)):
                assert isinstance(pipe, int)
                item, process, parts = running[pipe]
                part = os.read(pipe, 1 << 16)
                if part:
                    parts.append(part)
                    continue
                del running[pipe]
                os.close(pipe)
                yield item, _done(process, b"".join(parts).decode(errors="replace"))
    finally:
        for _, process, _ in running.values():
            _kill_group(process)
            os.waitpid(process, 0)


def _started(call: Callable[[], str], cpu_seconds: float, others: Sequence[int]) -> tuple[int, int]:
    """Start a process; return the end of the pipe that has its words, and its number."""
    ours, theirs = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process:
        with contextlib.suppress(PermissionError, ProcessLookupError):  # It has done so itself.
            os.setpgid(process, process)
        os.close(theirs)
        return ours, process
    status = 1
    try:
        os.setpgid(0, 0)
        for pipe in (ours, *others):
            os.close(pipe)
        limit = round(time.process_time() + cpu_seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        _silence()
        words = call()
        status = 0
    except BaseException:
        words = traceback.format_exc(limit=-1).splitlines()[-1]
    finally:
        with os.fdopen(theirs, "w", encoding="utf-8", errors="replace") as file:
            file.write(words)
        os._exit(status)


def _silence() -> None:
    """Let what this process prints go nowhere, whatever the copies of its parent's streams hold."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


def _done(process: int, said: str) -> Done:
    _, state = os.waitpid(process, 0)
    _kill_group(process)
    if os.WIFSIGNALED(state):
        is_out_of_time = os.WTERMSIG(state) in (signal.SIGXCPU, signal.SIGKILL)
        return Done(None if is_out_of_time else -os.WTERMSIG(state), said)
    return Done(os.WEXITSTATUS(state), said)


def _kill_group(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
