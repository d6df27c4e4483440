"""Find every command of `brokerside` and its options, and run one as a user types it.

Source: ours; click.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Final

import attrs
import click

from broker.cli import run
from spark_analysis.cli.commands import PROGRAM, brokerside
from tests.architecture.house import ROOT

REAL: Final = ROOT / "tests" / "real_data" / "kraft-4.3"
_LOG: Final = str(REAL / "internal_topics" / "offsets")
_GROUP: Final = str(ROOT / "tests" / "architecture" / "group.json")

ARGUMENTS: Final = {
    "assign": ("orders:3:2", "--brokers", "0-2"),
    "groups assign": (_GROUP,),
    "log compact": (_LOG,),
    "log dump": (_LOG,),
    "log history": (str(REAL / "__cluster_metadata-0"),),
    "log recover": (_LOG,),
    "log stats": (_LOG,),
    "log verify": (_LOG,),
    "report": (str(ROOT / "tests" / "real_data" / "six-brokers.csv"),),
    "scenario run": ("F01",),
}
"""What a command needs to be called at all."""


@attrs.frozen
class Command:
    """One command: the words that call it, and its options."""

    words: tuple[str, ...]
    options: tuple[click.Option, ...]

    @property
    def name(self) -> str:
        """The words as one text, such as "groups herd"."""
        return " ".join(self.words)

    def run(self, *given: str) -> Ran:
        """Run the command with its needed arguments and the given options."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run(brokerside, PROGRAM, [*self.words, *ARGUMENTS.get(self.name, ()), *given])
        return Ran(status, out.getvalue(), err.getvalue())


@attrs.frozen
class Ran:
    """What a command left behind: its exit status, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The last line on standard error, without the frames that click draws."""
        lines = self.err.strip().splitlines()
        return lines[-1] if lines else ""


def commands() -> list[Command]:
    """Return every command, by name."""
    found = []
    for words, one in walked(brokerside):
        if not isinstance(one, click.Group):
            found.append(Command(words, tuple(each for each in one.params if isinstance(each, click.Option))))
    return sorted(found, key=lambda command: command.name)


def walked(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command and group with the words that call it."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, name
            yield from walked(found, (*words, name))
