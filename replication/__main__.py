"""`python -m replication explore|mirror|scenario|simulate …`: the same as the commands of `brokerside`."""

from __future__ import annotations

import sys

import click

from broker.cli import run
from replication.cli import explore
from replication.mirror.cli import mirror
from replication.scenarios.cli import scenario
from replication.simulation.cli import simulate


@click.group()
def replication() -> None:
    """Several brokers agreeing, and failing."""


for command in (explore, mirror, scenario, simulate):
    replication.add_command(command)

if __name__ == "__main__":
    sys.exit(run(replication, "python -m replication"))
