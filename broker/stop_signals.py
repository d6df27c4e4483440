"""Send a stop signal again when Python has swallowed the exception that it raised.

What it decides: a signal's exception is raised wherever the interpreter happens to be. In a finalizer, a callback of
a weak reference or a callback that C code calls, nothing can be raised: Python prints the exception and works on, and
the command would never end. There the signal is sent once more, a moment later.

Constraints: nothing is changed outside the block, nor for exceptions that no signal raised, nor outside the main
thread, where signals raise nothing. The moment is the process's alarm clock, used only then.

Source: ours; sys.unraisablehook (Python 3.8) is where the interpreter puts what it cannot raise.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

SECONDS_UNTIL_SENT_AGAIN: Final = 0.01


@contextmanager
def swallowed_signals_sent_again(signals: Mapping[type[BaseException], int]) -> Iterator[None]:
    """Send the signal of an exception in `signals` again whenever Python swallows that exception in the block."""
    before = sys.unraisablehook

    def send_again(unraisable: Any) -> None:
        number = signals.get(unraisable.exc_type)
        if number is None:
            before(unraisable)
        else:
            _send_soon(number)

    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = before


def _send_soon(number: int) -> None:
    """Send the signal to this process after a moment: not at once, as the caller is inside of what cannot raise."""
    former = signal.getsignal(signal.SIGALRM)

    def send(*_: object) -> None:
        signal.signal(signal.SIGALRM, former)
        signal.raise_signal(number)

    signal.signal(signal.SIGALRM, send)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_UNTIL_SENT_AGAIN)
