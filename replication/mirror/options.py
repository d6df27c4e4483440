"""The scenario of a mirrored run: two clusters, the flow between them, and their failures.

Constraints: both clusters are strict, so that every acknowledged record of the source can be copied; the mirror's
deaths do not overlap.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.entropy import derive
from broker.errors import UsageError
from broker.units import DurationMs, TimeMs
from replication.mirror.process import MirrorSettings
from replication.simulation.faults import Fault
from replication.simulation.options import FaultKind, Options, quiet

SOURCE_INTERNAL: Final = ("syncs",)
TARGET_INTERNAL: Final = ("checkpoints",)
TOPIC: Final = "orders"
_SOURCE_STREAM: Final = 101
_TARGET_STREAM: Final = 102


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
    settings: MirrorSettings = attrs.field(factory=MirrorSettings)
    deaths: tuple[MirrorFault, ...] = ()
    source_plan: tuple[Fault, ...] = ()
    target_plan: tuple[Fault, ...] = ()
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

    @property
    def has_failures(self) -> bool:
        """Return whether anything fails, so that records may be copied twice."""
        return bool(self.deaths or self.source_plan or self.target_plan)


def without_failures(seed: int, duration_ms: DurationMs) -> MirrorOptions:
    """Return a pair of clusters, with the internal partitions that the mirror needs, in which nothing fails."""
    source = attrs.evolve(quiet(derive(seed, _SOURCE_STREAM), duration_ms), produce_ms=DurationMs(100))
    target = quiet(derive(seed, _TARGET_STREAM), duration_ms)
    return MirrorOptions(
        # Beside its own partitions the source has that of the heartbeats.
        source=attrs.evolve(source, internal_partitions=1 + len(SOURCE_INTERNAL), consumers=0),
        # The one partition that is not internal by name holds the offsets of Connect.
        target=attrs.evolve(target, partitions=1, internal_partitions=len(TARGET_INTERNAL), producers=0, consumers=0),
    )


def with_failures(seed: int, duration_ms: DurationMs) -> MirrorOptions:
    """Return the scenario of the command: a leader dies on each side, the mirror dies, and a group fails over.

    The source's leader dies at a tenth, the target's during a write at three, the mirror at six and the failover is at
    nine tenths of the run.
    """

    def at_ms(tenths: int) -> TimeMs:
        return TimeMs(duration_ms * tenths // 10)

    down_ms = DurationMs(duration_ms // 5)
    return attrs.evolve(
        without_failures(seed, duration_ms),
        source_plan=(Fault(at_ms(1), FaultKind.KILL, 0, down_ms),),
        target_plan=(Fault(at_ms(3), FaultKind.CRASH_AT_COMMIT, 0, down_ms),),
        deaths=(MirrorFault(at_ms(6), DurationMs(duration_ms // 10)),),
        failover_at_ms=at_ms(9),
    )
