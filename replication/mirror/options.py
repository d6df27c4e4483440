"""Define the options of a mirrored run: two clusters, the flow between them, and the times at which the mirror dies.

Constraints: both clusters are strict, so that every acknowledged record of the source can be copied; the mirror's
deaths do not overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from broker.draws import exponential
from broker.entropy import SplitMix64, derive
from broker.errors import UsageError
from broker.units import DurationMs, TimeMs
from replication.mirror.process import MirrorSettings
from replication.simulation.faults import Fault
from replication.simulation.options import Options, quiet, swarm

SOURCE_INTERNAL: Final = ("syncs",)
TARGET_INTERNAL: Final = ("checkpoints",)
TOPIC: Final = "orders"
_SOURCE_STREAM: Final = 101
_TARGET_STREAM: Final = 102
_MIRROR_STREAM: Final = 103
_DEATH_MS_MEAN: Final = 25_000
_DOWN_MS: Final = (200, 15_000)
_FIRST_MS: Final = 5_000


@attrs.frozen
class MirrorFault:
    """Kill the mirror's process at `at_ms` and start it again `for_ms` later."""

    at_ms: TimeMs
    for_ms: DurationMs


@attrs.frozen(kw_only=True)
class MirrorOptions:
    """Hold the options of one mirrored run; impossible options raise UsageError."""

    source: Options
    target: Options
    seed: int = 0
    """The seed that is printed; the other options already contain what it decides."""
    settings: MirrorSettings = attrs.field(factory=MirrorSettings)
    deaths: tuple[MirrorFault, ...] = ()
    idle_topics: tuple[str, ...] = ()
    """Further topics of the source with one partition each, to which no producer writes."""
    source_plan: tuple[Fault, ...] | None = None
    target_plan: tuple[Fault, ...] | None = None
    """The faults of each cluster; drawn from its options if None."""
    grows_at_ms: TimeMs | None = None
    """The time at which the source's topic gets another partition, with some records in it."""
    failover_at_ms: TimeMs | None = None
    """The time of a failover to judge, beside the one at the end."""
    commit_group_ms: DurationMs = attrs.field(default=DurationMs(2_000))
    """The interval in ms at which the source's group commits its position."""

    def __attrs_post_init__(self) -> None:
        if self.source.duration_ms != self.target.duration_ms:
            raise UsageError(
                f"the source runs for {self.source.duration_ms} ms and the target for {self.target.duration_ms}; "
                "both have one clock"
            )
        if self.settings.source == self.settings.target:
            raise UsageError(f"both clusters are called {self.settings.source!r}; they need names of their own")
        for earlier, later in zip(self.deaths, self.deaths[1:], strict=False):
            if earlier.at_ms + earlier.for_ms >= later.at_ms:
                raise UsageError(f"the mirror dies at {later.at_ms} ms while it is down since {earlier.at_ms} ms")


def quiet_mirror(seed: int, duration_ms: DurationMs) -> MirrorOptions:
    """Return a pair of clusters without faults."""
    return _drawn(seed, duration_ms, quiet)


def swarm_mirror(seed: int, duration_ms: DurationMs) -> MirrorOptions:
    """Return a pair of clusters under faults drawn from the seed, with a mirror that dies now and then."""
    options = _drawn(seed, duration_ms, swarm)
    entropy = SplitMix64(derive(seed, _MIRROR_STREAM))
    deaths = []
    at_ms = _FIRST_MS + exponential(entropy, _DEATH_MS_MEAN)
    while at_ms < duration_ms:
        for_ms = _DOWN_MS[0] + entropy.next_int_bound(_DOWN_MS[1] - _DOWN_MS[0])
        deaths.append(MirrorFault(TimeMs(at_ms), DurationMs(for_ms)))
        at_ms += for_ms + 1 + exponential(entropy, _DEATH_MS_MEAN)
    lag_max = (0, 5, 100)[entropy.next_int_bound(3)]
    return attrs.evolve(options, deaths=tuple(deaths), settings=attrs.evolve(options.settings, offset_lag_max=lag_max))


def pair(source: Options, target: Options, *, idle_topics: tuple[str, ...] = ()) -> MirrorOptions:
    """Return a pair of clusters with the internal partitions that the mirror needs."""
    # Beside its own partitions the source has that of the heartbeats and those of idle topics.
    beside = 1 + len(idle_topics) + len(SOURCE_INTERNAL)
    return MirrorOptions(
        source=attrs.evolve(source, internal_partitions=beside, consumers=0),
        # The one partition that is not internal by name holds the offsets of Connect.
        target=attrs.evolve(target, partitions=1, internal_partitions=len(TARGET_INTERNAL), producers=0, consumers=0),
        idle_topics=idle_topics,
    )


def _drawn(seed: int, duration_ms: DurationMs, make: Callable[[int, DurationMs], Options]) -> MirrorOptions:
    source = make(derive(seed, _SOURCE_STREAM), duration_ms)
    return attrs.evolve(pair(source, make(derive(seed, _TARGET_STREAM), duration_ms)), seed=seed)
