"""`python -m replication explore …`: the same as `brokerside explore …`."""

from __future__ import annotations

import sys

import click

from broker.cli import run
from replication.cli import explore


@click.group()
def replication() -> None:
    """Several brokers agreeing, and failing."""


replication.add_command(explore)

if __name__ == "__main__":
    sys.exit(run(replication, "python -m replication"))
