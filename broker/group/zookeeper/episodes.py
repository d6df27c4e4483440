"""Let a ZooKeeper-era group start, gain one consumer and lose one, and count the cost of each change.

What it decides: which changes are compared, in which order.

Constraints: one group lives through all episodes; each begins when the one before has settled. The consumer that dies
is the first that has not given up.

Example: two consumers start, and each episode counts what it woke.

    >>> from broker.entropy import SplitMix64
    >>> [episode.what for episode in herd_episodes(HerdOptions(consumer_count=2), SplitMix64(0))]
    ['2 start', 'one more joins', 'one dies']

Source: ours.
"""

from __future__ import annotations

import attrs

from broker.entropy import RandomSource
from broker.group.zookeeper.herd import Herd, HerdOptions, HerdReport


@attrs.frozen(kw_only=True)
class HerdEpisode:
    """Count the cost of one change of a group; `ownerless_count` counts the partitions without an owner afterwards."""

    what: str
    report: HerdReport
    ownerless_count: int


def herd_episodes(options: HerdOptions, entropy: RandomSource) -> tuple[HerdEpisode, ...]:
    """Return the episodes of one group; equal options and generators give equal episodes."""
    herd = Herd(options, entropy)
    episodes = [_episode(herd, f"{options.consumer_count} start", herd.start())]
    herd.join(_name(options.consumer_count))
    episodes.append(_episode(herd, "one more joins", herd.settle()))
    herd.crash(herd.first_active())
    episodes.append(_episode(herd, "one dies", herd.settle()))
    return tuple(episodes)


def _episode(herd: Herd, what: str, report: HerdReport) -> HerdEpisode:
    ownerless_count = herd.options.partition_count - len(herd.owners())
    return HerdEpisode(what=what, report=report, ownerless_count=ownerless_count)


def _name(number: int) -> str:
    return f"c{number:04d}"
