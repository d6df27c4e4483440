"""`python -m placement assign|groups …`: the same as `brokerside assign` and `brokerside groups`."""

from __future__ import annotations

import sys

import click

from broker.cli import run
from placement.cli import assign
from placement.group_life.cli import groups


@click.group()
def placement() -> None:
    """Who holds what: replicas on brokers, partitions on consumers."""


placement.add_command(assign)
placement.add_command(groups)

if __name__ == "__main__":
    sys.exit(run(placement, "python -m placement"))
