"""Run `brokerside groups herd`, which counts what membership changes cost before the group coordinator (0.9).

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from json import dumps
from typing import Final

import attrs
import click
from rich.console import Console
from rich.table import Table

from broker.cli_options import seed_option
from broker.entropy import SplitMix64
from broker.group.zookeeper.herd import HerdEpisode, HerdOptions, herd_episodes
from broker.units import SECOND_MS
from broker.wording import counted

CONSUMER_COUNT_MAX: Final = 200
"""Reads grow with the square of the group; 200 consumers take a few seconds."""
PARTITION_COUNT_MAX: Final = 2_000
_DEFAULTS: Final = HerdOptions()


@click.command("herd")
@click.option(
    "--consumers",
    type=click.IntRange(1, CONSUMER_COUNT_MAX),
    default=_DEFAULTS.consumer_count,
    show_default=True,
    metavar="N",
    help="Consumers that start; one more joins later.",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, PARTITION_COUNT_MAX),
    default=_DEFAULTS.partition_count,
    show_default=True,
    metavar="N",
    help="Partitions of the topic that the group reads.",
)
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
        counted_episodes = [
            {"what": each.what, **attrs.asdict(each.report), "ownerless_count": each.ownerless_count}
            for each in episodes
        ]
        document = {"version": 1, "seed": seed, "options": attrs.asdict(options), "episodes": counted_episodes}
        click.echo(dumps(document))
    else:
        Console(soft_wrap=True).print(_table(options, seed, episodes))
    return 0


def _table(options: HerdOptions, seed: int, episodes: Sequence[HerdEpisode]) -> Table:
    consumers, partitions = counted(options.consumer_count, "consumer"), counted(options.partition_count, "partition")
    title = f"{consumers}, {partitions}, no coordinator, seed {seed}"
    shown = Table(title=title, title_justify="left")
    shown.add_column("", no_wrap=True)
    for episode in episodes:
        shown.add_column(episode.what, justify="right")
    for name, cell in _ROWS.items():
        shown.add_row(name, *(cell(episode) for episode in episodes))
    return shown


def _count(of: Callable[[HerdEpisode], int]) -> Callable[[HerdEpisode], str]:
    return lambda episode: f"{of(episode):,}"


def _seconds(of: Callable[[HerdEpisode], int]) -> Callable[[HerdEpisode], str]:
    return lambda episode: f"{of(episode) / SECOND_MS:,.1f}"


_ROWS: Final[dict[str, Callable[[HerdEpisode], str]]] = {
    "consumers woken": _count(lambda episode: episode.report.woken_count),
    "rebalances": _count(lambda episode: episode.report.rebalance_count),
    "ZooKeeper reads": _count(lambda episode: episode.report.read_count),
    "ZooKeeper writes": _count(lambda episode: episode.report.write_count),
    "different views": _count(lambda episode: episode.report.disagreement_count),
    "claims refused": _count(lambda episode: episode.report.conflict_count),
    "consumers that gave up": _count(lambda episode: episode.report.failed_consumer_count),
    "partition-seconds without owner": _seconds(lambda episode: episode.report.unowned_partition_ms),
    "without owner at the end": _count(lambda episode: episode.ownerless_count),
    "settled after (s)": _seconds(lambda episode: episode.report.settled_ms),
}
"""The lines of the table: a name and how an episode's value is shown."""
