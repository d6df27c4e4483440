"""Run `brokerside groups assign|herd|simulate`, the commands about consumer groups."""

from __future__ import annotations

import click

from broker.cli import CommandGroup
from broker.group.cli import herd_command
from placement.consumer.cli import assign_command
from replication.groups.alone.cli import simulate_command


@click.group(cls=CommandGroup)
def groups() -> None:
    """Show the members' partitions in a consumer group, and the cost of rebalances."""


for command in (assign_command, herd_command, simulate_command):
    groups.add_command(command)
