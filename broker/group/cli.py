"""Run `brokerside groups herd`: count the cost of membership changes before the group coordinator (0.9)."""

from __future__ import annotations

from json import dumps
from typing import Final

import attrs
import click
from rich.console import Console
from rich.table import Table

from broker.cli_options import seed_option
from broker.entropy import SplitMix64
from broker.group.herd import HerdEpisode, HerdOptions, herd_episodes
from broker.units import SECOND_MS
from broker.wording import counted

CONSUMERS: Final = click.IntRange(1, 200)
"""Reads grow with the square of the group; 200 consumers take a few seconds."""
PARTITIONS: Final = click.IntRange(1, 2_000)
_DEFAULTS: Final = HerdOptions()
ROWS: Final = {
    "consumers woken": "woken_count",
    "rebalances": "rebalance_count",
    "ZooKeeper reads": "read_count",
    "ZooKeeper writes": "write_count",
    "different views": "disagreement_count",
    "claims refused": "conflict_count",
    "consumers that gave up": "failed_consumer_count",
    "partition-seconds without owner": "unowned_partition_ms",
    "without owner at the end": "ownerless_count",
    "settled after (s)": "settled_ms",
}
"""The rows of the table, each with its key in the JSON, which has milliseconds where the table has seconds."""


@click.command("herd")
@click.option(
    "--consumers",
    type=CONSUMERS,
    default=_DEFAULTS.consumer_count,
    show_default=True,
    metavar="N",
    help="Consumers that start; one more joins later.",
)
@click.option(
    "--partitions", type=PARTITIONS, default=_DEFAULTS.partition_count, show_default=True, metavar="N",
    help="Partitions of the topic that the group reads.",
)  # fmt: skip
@seed_option()
@click.option("--json", is_flag=True, help="Print every count as JSON instead of a table.")
def herd_command(consumers: int, partitions: int, seed: int, *, json: bool) -> int:
    """Count what a membership change cost when consumers coordinated through ZooKeeper (before Kafka 0.9).

    Consumers start, one more joins, one dies. Each consumer watches the group in ZooKeeper and computes its own range
    of partitions; there is no coordinator.

    Herd effect: one change wakes every consumer, and each reads the whole group and all owners. In the table,
    "consumers woken" and "ZooKeeper reads" show it. With twice the --consumers and --partitions, 40 and 120, a join
    makes 3.6 times and a death 4.1 times the reads; the start makes 7.5 times (10,189 and 76,784), for every consumer
    that starts wakes those before it.

    Split brain: two consumers that have read different members compute ranges that overlap. No partition ever has two
    owners.

    \b
    Rows of the table, the key of each in the JSON, and what it counts, summed
    over consumers:
      consumers woken (woken_count):
        Watch notifications that reached a live consumer
      rebalances (rebalance_count):
        Rebalances begun, retries included
      ZooKeeper reads (read_count):
        Requests that read
      ZooKeeper writes (write_count):
        Requests that wrote
      different views (disagreement_count):
        Reads of other members than another consumer read
      claims refused (conflict_count):
        Partitions claimed while another owned them
      consumers that gave up (failed_consumer_count):
        Consumers that failed four times (rebalance.max.retries)
      partition-seconds without owner (unowned_partition_ms):
        Time without owner, summed over partitions
      without owner at the end (ownerless_count):
        Partitions that nobody reads at the end
      settled after (s) (settled_ms):
        Time from the change until nothing more happens

    The table has seconds where the JSON has milliseconds.

    \b
    Examples:
      brokerside groups herd
      brokerside groups herd --consumers 40 --seed 3 --json
    """
    options = HerdOptions(consumer_count=consumers, partition_count=partitions)
    episodes = herd_episodes(options, SplitMix64(seed))
    if json:
        counts = [attrs.asdict(episode) for episode in episodes]
        click.echo(dumps({"version": 1, "seed": seed, "options": attrs.asdict(options), "episodes": counts}))
        return 0
    size = f"{counted(consumers, 'consumer')}, {counted(partitions, 'partition')}"
    shown = Table(title=f"{size}, no coordinator, seed {seed}", title_justify="left")
    shown.add_column("", no_wrap=True)
    for episode in episodes:
        shown.add_column(episode.what, justify="right")
    for name, key in ROWS.items():
        shown.add_row(name, *(_cell(episode, key) for episode in episodes))
    Console(soft_wrap=True).print(shown)
    return 0


def _cell(episode: HerdEpisode, key: str) -> str:
    value: int = getattr(episode, key)
    return f"{value / SECOND_MS:,.1f}" if key.endswith("_ms") else f"{value:,}"
