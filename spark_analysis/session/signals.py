"""Handle SIGINT and SIGTERM while Spark starts, works and stops.

What it decides: an interrupt never raises in the middle of pyspark's own code while that starts or stops, where half of
a session would be left. The signal is held until the block is done; `hurry` is called at once.

Constraints: signals belong to the main thread; elsewhere nothing is changed. A signal that is ignored, or left to the
system, stays so.

Source: ours. Spark 4.3.0 pyspark/core/context.py sets a handler of its own for SIGINT.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

HANDLED: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held_signals(hurry: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Call `hurry` for a signal that arrives in the block, and handle the signal as before after the block.

    An error that then leaves the block gives way to what the signal raises. Yields a function that holds the signals
    anew, for use after somebody else's code may have changed that.
    """
    arrived: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        arrived.append(number)
        hurry()

    with _handlers(hold) as (before, hold_again):
        try:
            yield hold_again
        except Exception:
            if not arrived:
                raise
    if arrived:
        before[arrived[0]](arrived[0], None)


@contextmanager
def hurried_signals(hurry: Callable[[], None]) -> Iterator[None]:
    """Call `hurry` for a signal that arrives in the block, and then handle the signal as before."""

    def forward(number: int, frame: FrameType | None) -> None:
        hurry()
        before[number](number, frame)

    with _handlers(forward) as (before, _):
        yield


@contextmanager
def _handlers(
    handler: Callable[[int, FrameType | None], None],
) -> Iterator[tuple[dict[int, Any], Callable[[], None]]]:
    """Let `handler` have the signals in the block; yield who had them before, and a function that sets it anew."""
    if threading.current_thread() is not threading.main_thread():
        yield {}, lambda: None
        return
    found = {number: signal.getsignal(number) for number in HANDLED}
    before: dict[int, Any] = {number: former for number, former in found.items() if former is not None}

    def set_handler() -> None:
        for number, former in before.items():
            signal.signal(number, handler if callable(former) else former)

    set_handler()
    try:
        yield before, set_handler
    finally:
        for number, former in before.items():
            signal.signal(number, former)
