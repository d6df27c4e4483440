"""Run `python -m placement assign`, the same as `brokerside assign`."""

from __future__ import annotations

import sys

import click

from broker.cli import CommandGroup, run
from placement.cli import assign


@click.group(cls=CommandGroup)
def placement() -> None:
    """Place replicas on brokers and partitions on consumers as Kafka does."""


placement.add_command(assign)

if __name__ == "__main__":
    sys.exit(run(placement, "python -m placement"))
