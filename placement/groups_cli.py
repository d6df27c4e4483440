"""`brokerside groups`: consumer groups, who gets which partitions, and what a group goes through.

It decides nothing; it puts the commands of `placement.consumer` and `placement.group_life` under one name.
Source: ours.
"""

from __future__ import annotations

import click

from placement.consumer.cli import assign_command
from placement.group_life.cli import simulate_command


@click.group()
def groups() -> None:
    """Consumer groups: who gets which partitions, and why; and a group's life on a virtual clock."""


groups.add_command(assign_command)
groups.add_command(simulate_command)
