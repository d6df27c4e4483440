"""Give a thread the clock of a virtual loop, and refuse there what waits in real time.

Other threads go on in real time. Clients in C do not ask Python: a watch says that the program stands still, and where.

Source: ours.
"""

from __future__ import annotations

import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NoReturn
from unittest import mock

from broker.errors import UsageError
from replication.testing.virtual_loop import VirtualLoop

_SLEEP: Final = "time.sleep stops virtual time for every task; write `await asyncio.sleep(...)`"
_WAY: Final = "asyncio alone has; kafka_cluster serves other clients in real time"
_THREAD: Final = f"a thread has no virtual time, which {_WAY}"
_SOCKET: Final = f"a socket has no virtual time, which {_WAY}"
STILL_S: Final = 10.0
"""How often in s of real time it is looked whether the program has come back to its loop."""


@contextmanager
def virtual_process(loop: VirtualLoop, seed: int) -> Iterator[None]:
    """Let this thread's clocks be the loop's, refuse what has none, and let the random generator begin at `seed`."""
    state = random.getstate()
    random.seed(seed)
    clocks: dict[str, Callable[..., Any]] = {
        "time": loop.wall_s,
        "time_ns": lambda: round(loop.wall_s() * 1e9),
        "monotonic": loop.time,
        "monotonic_ns": lambda: round(loop.time() * 1e9),
        "perf_counter": loop.time,
        "perf_counter_ns": lambda: round(loop.time() * 1e9),
        "sleep": _refusing(_SLEEP),
    }
    draws: dict[str, Callable[..., Any]] = {
        "choice": _sorted_first(random.choice),
        "shuffle": _shuffle_sorted(random.shuffle),
    }
    try:
        with (
            _watched(loop),
            _patched(time, clocks),
            _patched(random, draws),
            _patched(threading.Thread, {"start": _refusing(_THREAD)}),
            _patched(socket.socket, {"__init__": _refusing(_SOCKET)}),
            _patched(socket, {"getaddrinfo": _refusing(_SOCKET)}),
        ):
            yield
    finally:
        random.setstate(state)


@contextmanager
def _watched(loop: VirtualLoop) -> Iterator[None]:
    """Say once on standard error that the loop made no turn for `STILL_S` of real time, and where the program is."""
    own, ended = threading.get_ident(), threading.Event()

    def watch() -> None:
        turns = loop.turn_count
        while not ended.wait(STILL_S):
            if loop.turn_count == turns:
                frame = sys._current_frames()[own]
                where = f"{frame.f_code.co_filename}, line {frame.f_lineno}"
                what = f"has not returned to its event loop for {STILL_S:g} s of real time, and is at {where}"
                why = "clients in C, locks and other calls that wait have no virtual time"
                sys.stderr.write(f"brokerside: the program {what}; {why}\n")
                return
            turns = loop.turn_count

    threading.Thread(target=watch, name="brokerside-watch", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


@contextmanager
def _patched(owner: Any, functions: Mapping[str, Callable[..., Any]]) -> Iterator[None]:
    """Replace functions of a module or class in this thread for a while."""
    with ExitStack() as stack:
        for name, function in functions.items():
            stack.enter_context(mock.patch.object(owner, name, _in_this_thread(function, getattr(owner, name))))
        yield


def _in_this_thread(virtual: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return `virtual` for the thread that calls this, and `real` for all others, which go on in real time."""
    own = threading.get_ident()
    return lambda *given, **named: (virtual if threading.get_ident() == own else real)(*given, **named)


def _sorted_first(choice: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that chooses from what it is given in an order of its own.

    Clients choose a broker from a list that was a set, whose order differs from process to process.
    """
    return lambda population: choice(sorted(population, key=repr))


def _shuffle_sorted(shuffle: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a function that shuffles a list from an order of its own, as `_sorted_first` chooses."""

    def shuffle_sorted(population: Any) -> None:
        population.sort(key=repr)
        shuffle(population)

    return shuffle_sorted


def _refusing(what: str) -> Callable[..., NoReturn]:
    """Return a function that raises UsageError."""

    def refuse(*_arguments: Any, **_options: Any) -> NoReturn:
        raise UsageError(what)

    return refuse
