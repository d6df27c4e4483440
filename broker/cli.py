"""Run every command of this library alike: escaped output, one-line errors, exit statuses.

Exit status 0 is success, 1 a refusal or a warning made strict, 2 wrong usage, unusable input or output that cannot
be written, 70 a failure that no command expects (out of memory, or a bug of ours), 130 an interrupt, 143 a termination.
An error is one line on standard error; the environment variable BROKERSIDE_TRACEBACK adds the traceback of a failure.
A reader of the output that leaves, as `| head -1` does, is no failure.
"""

from __future__ import annotations

import functools
import inspect
import io
import math
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, TypeVar

import click

from broker.errors import BrokersideError, RefusedError, UsageError, shorten
from broker.releases import NEWEST, Release
from broker.wording import printable as printable  # Commands take it from here.

EXIT_REFUSED: Final = 1
EXIT_USAGE: Final = 2
EXIT_FAILED: Final = 70  # EX_SOFTWARE of sysexits.h: no answer has this status.
EXIT_INTERRUPTED: Final = 128 + signal.SIGINT  # As shells report it.
EXIT_TERMINATED: Final = 128 + signal.SIGTERM
TRACEBACK: Final = "BROKERSIDE_TRACEBACK"

_OURS: Final = ("broker", "placement", "log", "replication", "spark_analysis")

Options = TypeVar("Options")
Command = TypeVar("Command", bound=Callable[..., object])


class Terminated(BaseException):
    """Unwind a command after SIGTERM, so that the command removes its folders and ends its processes."""


_SECONDS_UNTIL_SENT_AGAIN: Final = 0.01
_SIGNALS: Final[dict[type[BaseException], int]] = {KeyboardInterrupt: signal.SIGINT, Terminated: signal.SIGTERM}


class CommandGroup(click.Group):
    """Group commands, and show the whole first sentence of each command in the group's help."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one row per command: its name and its summary, wrapped instead of cut off."""
        rows = [(name, self.summary(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def summary(self, ctx: click.Context, name: str) -> str:
        """Return the first sentence of a command's help."""
        command = self.get_command(ctx, name)
        return "" if command is None else summary_of(command)


def summary_of(command: click.Command) -> str:
    """Return the first paragraph of a command's help as one line."""
    return " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())


def takes(kind: type[Options]) -> Callable[[Callable[[Options], int]], Callable[..., int]]:
    """Return a decorator that calls a command with one `kind` object instead of separate keyword arguments.

    `kind` is an attrs class with one field for each argument and option of the command, of the same name.
    """

    def decorate(command: Callable[[Options], int]) -> Callable[..., int]:
        @functools.wraps(command)
        def call(**given: Any) -> int:
            return command(kind(**given))

        return call

    return decorate


class FiniteRange(click.FloatRange):
    """Accept a number between two bounds, and refuse NaN, which click.FloatRange accepts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return `value` as a number; fail with click's error if the number is out of range or NaN."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self.min:g}<=x<={self.max:g}.", param, ctx)
        return number


class ReleaseType(click.ParamType[Release]):
    """Accept the name of a Kafka release as the value of an option."""

    name = "release"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Release:
        """Return the release named `value`; fail with a list of the known releases if there is none."""
        if isinstance(value, Release):
            return value
        try:
            return Release(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


def kafka_option(*, default: Release | None = NEWEST) -> Callable[[Command], Command]:
    """Return the option `--kafka RELEASE`, which passes a Release named `release` to a command.

    A command whose answer depends on whether a release was named takes None as the default.
    """
    text = f"Release of Kafka whose answer is given, such as 4.1 (default {NEWEST})."
    return click.option("--kafka", "release", type=ReleaseType(), metavar="RELEASE", default=default, help=text)


def run(command: click.Command, name: str, arguments: list[str] | None = None) -> int:
    """Run a click command as the program `name`, print errors as one line, and return the exit status."""
    _replace_what_no_terminal_shows()
    try:
        with _sigterm_raises(), _swallowed_signals_sent_again():
            return _status(command, name, arguments)
    except Terminated:
        _say(name, "terminated")
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        _say(name, "interrupted")
        return EXIT_INTERRUPTED
    finally:
        _abandon_what_fails()


def _replace_what_no_terminal_shows() -> None:
    """Print "?" for characters that the terminal's encoding lacks, such as dashes in Latin-1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and (stream.errors == "strict" or stream.encoding != "utf-8"):
            stream.reconfigure(errors="replace")


def _status(command: click.Command, name: str, arguments: list[str] | None) -> int:
    """Run the command, write what it printed, and return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        # Not by command.main, which says an interrupt in two lines.
        with command.make_context(name, list(words)) as context:
            result: Any = command.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Abort:  # An interrupt of a question.
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return error.exit_code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except BrokersideError as error:
        _say(name, str(error))
        return EXIT_REFUSED if isinstance(error, RefusedError) else EXIT_USAGE
    except BrokenPipeError:
        return 0
    except OSError as error:  # Such as a full disk under our own output: nothing that a command opens to read.
        place = "" if error.filename is None else f"{error.filename}: "
        _say(name, f"{place}{error.strerror or error}")
        return EXIT_USAGE
    except SystemExit:  # rich leaves so when the reader of its output has left.
        return 0
    except Exception as error:
        _say(name, _failure(error))
        if os.environ.get(TRACEBACK):
            traceback.print_exc()
        return EXIT_FAILED
    return result if isinstance(result, int) else 0


def _failure(error: Exception) -> str:
    """Return one sentence on an exception that no command expects: what to do, its class, and the place in our code."""
    frames = [(str(frame.f_globals.get("__name__")), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    ours = [f" in {module}, line {line}" for module, line in frames if module.split(".")[0] in _OURS]
    place = ours[-1] if ours else ""
    said = f"{type(error).__name__}{place}" + (f" ({shorten(str(error))})" if str(error) else "")
    if isinstance(error, MemoryError):
        return f"out of memory; if the input is small, please report it as a bug with the command line: {said}"
    return (
        f"this is a bug in brokerside, please report it with the command line: {said}; {TRACEBACK}=1 prints a traceback"
    )


def _say(name: str, text: str) -> None:
    with suppress(OSError):  # Where standard error cannot be written to, the status has to do.
        click.echo(f"{name}: {printable(text)}", err=True)


def _abandon_what_fails() -> None:
    """Redirect a broken output to /dev/null, so that Python's last flush cannot fail."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, stream.fileno())
                os.close(nothing)


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    """Let SIGTERM raise `Terminated` in the block, unless somebody else decides what it does."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    is_ours = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if is_ours:
        try:
            signal.signal(signal.SIGTERM, terminate)
        except ValueError:  # Not the main thread.
            is_ours = False
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _swallowed_signals_sent_again() -> Iterator[None]:
    """Send a signal again, after a moment, when Python has swallowed the exception that it raised.

    In a finalizer, a callback of a weak reference or one that C code calls, nothing can be raised: Python prints the
    exception and works on, and the command would never end.
    """
    before = sys.unraisablehook

    def send_again(unraisable: Any) -> None:
        number = _SIGNALS.get(unraisable.exc_type)
        if number is None:
            before(unraisable)
            return
        former = signal.getsignal(signal.SIGALRM)

        def send(*_: object) -> None:
            signal.signal(signal.SIGALRM, former)
            signal.raise_signal(number)

        signal.signal(signal.SIGALRM, send)
        signal.setitimer(signal.ITIMER_REAL, _SECONDS_UNTIL_SENT_AGAIN)

    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = before
