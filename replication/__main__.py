"""`python -m replication explore|groups|mirror|scenario|simulate …`: the same as the commands of `brokerside`."""

from __future__ import annotations

import sys

import click

from broker.cli import CommandGroup, run
from replication.cli.simulate import simulate
from replication.explore.cli import explore
from replication.groups.cli import groups
from replication.mirror.cli import mirror
from replication.scenarios.cli import scenario


@click.group(cls=CommandGroup)
def replication() -> None:
    """Several brokers agreeing, and failing."""


for command in (explore, groups, mirror, scenario, simulate):
    replication.add_command(command)

if __name__ == "__main__":
    sys.exit(run(replication, "python -m replication"))
