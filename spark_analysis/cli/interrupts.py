"""Handle Ctrl-C before, during and after a command.

While modules are loaded, and when a command is done, an interrupt ends the process at once, in one line and with
status 130: nothing is held that has to be given back, and an exception in the middle of an import would come out as
anything. Nothing heavy is imported here, as this is the first that the `brokerside` command loads.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

EXIT_INTERRUPTED = 128 + signal.SIGINT
STANDARD_ERROR = 2


def end_at_once() -> None:
    """Let an interrupt end the process from now on, in one line."""
    _handle(_end)


def raise_in_command() -> None:
    """Let an interrupt raise KeyboardInterrupt from now on, so that commands clean up."""
    _handle(signal.default_int_handler)


class ending_at_once:  # noqa: N801 - used as `with ending_at_once():`; contextlib is loaded later than this.
    """Let an interrupt end the process in the block, in which a command loads modules and has no files open yet."""

    def __enter__(self) -> None:
        end_at_once()

    def __exit__(self, *_: object) -> None:
        raise_in_command()


def _handle(handler: signal._HANDLER) -> None:
    if signal.getsignal(signal.SIGINT) in (_end, signal.default_int_handler):
        signal.signal(signal.SIGINT, handler)


def _end(number: int, frame: FrameType | None) -> None:
    try:  # noqa: SIM105 - contextlib is loaded later than this.
        os.write(STANDARD_ERROR, b"brokerside: interrupted\n")
    except OSError:
        pass
    os._exit(EXIT_INTERRUPTED)
