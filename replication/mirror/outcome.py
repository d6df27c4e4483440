"""Compute the result of a mirrored run and the cost of a failover at a given time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import attrs

from broker.ids import Offset, TopicPartition
from broker.units import TimeMs
from replication.checkers import Finding
from replication.mirror.checks import Copy, MirrorFinding, missed, read_again
from replication.mirror.options import MirrorOptions
from replication.mirror.records import OffsetSync
from replication.simulation.run import Outcome


@attrs.frozen
class Failover:
    """Hold the cost of a failover at `at_ms` for a group that continues at the target.

    `missed_count` counts unread records that it would never read, `read_again_count` records that it reads a second
    time, `behind_count` records committed on the source and not copied yet.
    """

    at_ms: TimeMs
    partition: TopicPartition
    upstream: Offset
    downstream: Offset
    missed_count: int
    read_again_count: int
    behind_count: int
    is_sound: bool
    is_synced: bool = True
    """Whether the mirror's process has copied a record of the partition since it last started."""


@attrs.frozen
class FailoverState:
    """Hold the offsets of both clusters and of the group at the time of a failover."""

    at_ms: TimeMs
    committed: dict[TopicPartition, Offset]
    translated: dict[TopicPartition, Offset]
    source_ends: dict[TopicPartition, Offset]
    target_ends: dict[TopicPartition, Offset]
    synced: frozenset[TopicPartition] = frozenset()


@attrs.frozen(kw_only=True)
class MirrorOutcome:
    """Hold the result of a mirrored run."""

    options: MirrorOptions
    source: Outcome
    target: Outcome
    findings: tuple[MirrorFinding | Finding, ...]
    copies: tuple[Copy, ...]
    target_topics: tuple[str, ...]
    failovers: tuple[Failover, ...]
    checkpoint_count: int
    sync_count: int
    digest: str
    lines: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Return whether the mirror kept every guarantee."""
        return not self.findings


def failovers_of(standing: FailoverState, copies: Mapping[TopicPartition, Copy]) -> Iterator[Failover]:
    """Yield the cost of a failover from a given state, for each partition."""
    for renamed, downstream in sorted(standing.translated.items()):
        copy = copies[renamed]
        upstream = standing.committed[copy.partition]
        there = set(copy.target[: standing.target_ends[copy.partition]])
        yield Failover(
            at_ms=standing.at_ms,
            partition=copy.partition,
            upstream=upstream,
            downstream=downstream,
            missed_count=missed(copy, upstream, downstream),
            read_again_count=read_again(copy, upstream, downstream),
            behind_count=sum(value not in there for value in copy.source[: standing.source_ends[copy.partition]]),
            is_sound=copy.is_sound,
            is_synced=copy.partition in standing.synced,
        )


def check_failovers(
    failovers: Sequence[Failover],
    copies: Mapping[TopicPartition, Copy],
    lag_max: int,
    last_syncs: Mapping[TopicPartition, OffsetSync] = MappingProxyType({}),
) -> Iterator[MirrorFinding]:
    """Yield violated guarantees of failovers; the last ones happen at rest. `copies` are by target partition.

    offset.lag.max bounds what is read again only where the process has copied a record since it started: a sync that it
    had not written yet when it died is made up for by the next record, and by nothing else. Elsewhere the last sync
    that was written (`last_syncs`, by source partition) is the bound.
    """
    duplicates = {copy.partition: copy.duplicate_count for copy in copies.values()}
    end_ms = max((failover.at_ms for failover in failovers), default=TimeMs(0))
    for failover in failovers:
        where = f"{failover.partition}, failover at {failover.at_ms} ms"
        if failover.missed_count and failover.is_sound:
            yield MirrorFinding("MM6", f"{where}: the group misses {failover.missed_count} records")
        last = last_syncs.get(failover.partition)
        if failover.at_ms < end_ms or not failover.is_sound:
            continue
        if failover.is_synced:
            # One more: a sync that is not met exactly is translated to the record after it.
            bound = max(lag_max, 1) + duplicates[failover.partition]
        elif last is not None and last.upstream <= failover.upstream:
            bound = failover.upstream - last.upstream + duplicates[failover.partition]
        else:
            continue
        if failover.read_again_count > bound:
            what = f"{failover.read_again_count} records are read again, more than {bound}"
            yield MirrorFinding("MM7", f"{where}: {what}")
