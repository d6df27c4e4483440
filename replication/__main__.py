"""Run `python -m replication explore|groups|mirror|scenario|simulate`, the same commands as those of `brokerside`."""

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
    """Explore, simulate and mirror clusters of several brokers under faults."""


for command in (explore, groups, mirror, scenario, simulate):
    replication.add_command(command)

if __name__ == "__main__":
    sys.exit(run(replication, "python -m replication"))
