"""Define the command group `brokerside log`, which reads, checks and reworks log files without a broker.

What it decides: which commands there are. Each is a module of its own, imported when the command is called, so that
`--help` of the group imports none of them.

Constraints: standard output carries the answer, standard error the progress, the problems and the warnings. Exit
status 0 is all well, 1 damage found or something refused, 2 wrong usage. Input is never written to, except with
`--in-place`, and then only after the plan was shown and confirmed.

Source: `dump` follows kafka.tools.DumpLogSegments; the rest is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

import click

from broker.cli import CommandGroup

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "compact": ("log.cli.compact", "Compact partitions once, as a broker's cleaner does."),
    "dump": ("log.cli.dump", "Print the contents of files, as kafka-dump-log does."),
    "history": ("log.cli.history", "Print the events of a cluster, read from its metadata log."),
    "recover": ("log.cli.recover", "Recover partitions as a broker does after a crash."),
    "stats": ("log.cli.stats", "Measure the contents of logs and estimate the bytes that compaction would save."),
    "verify": ("log.cli.verify", "Check whether files are damaged; exit with status 1 if any is."),
}
"""For each command its module, where it is named `command`, and the first sentence of its help."""


class _Commands(CommandGroup):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command called `cmd_name`, importing its module; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def summary(self, ctx: click.Context, name: str) -> str:
        """Return the first sentence of a command's help, without importing the command."""
        return COMMANDS[name][1]


@click.group(cls=_Commands)
def log() -> None:
    """Read, check and rework segments, indexes and checkpoints on disk, without a broker.

    \b
    A PATH is a file, a partition's directory, or a broker's whole log directory.

    \b
    brokerside log dump --print-data-log orders-0/00000000000000000000.log
    brokerside log verify --keep-going /var/lib/kafka
    brokerside log stats orders-0
    """
