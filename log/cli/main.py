"""Define the command group `brokerside log`, which reads, checks and reworks log files without a broker.

Source: `dump` follows kafka.tools.DumpLogSegments; the rest is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

import click

from broker.cli import CommandGroup

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "compact": ("log.cli.rework", "Compact partitions once, as a broker's cleaner does."),
    "dump": ("log.cli.dump", "Print the contents of files, as kafka-dump-log does."),
    "history": ("log.cli.history", "Print the events of a cluster, read from its metadata log."),
    "recover": ("log.cli.rework", "Recover partitions as a broker does after a crash."),
    "stats": ("log.cli.stats", "Measure the contents of logs and estimate the bytes that compaction would save."),
    "transactions": (
        "log.cli.transactions",
        "List open, hanging and aborted transactions; exit with status 1 if one hangs.",
    ),
    "verify": ("log.cli.verify", "Check whether files are damaged; exit with status 1 if any is."),
}
"""For each command its module, where it is named `NAME_command`, and the first sentence of its help."""


class _Commands(CommandGroup):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command called `cmd_name`, importing its module; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(COMMANDS[cmd_name][0]), f"{cmd_name}_command")
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
