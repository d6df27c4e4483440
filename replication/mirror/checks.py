"""Check a copy against its source after both clusters have healed, and compute the cost of a failover.

Constraints: the checks read the bytes of logs and emitted checkpoints; they ask the mirror nothing.

Example: a group at 168 whose offset on the target is 102 reads 66 records again; 4 records written just before the
failover are not on the target yet.

Source: ours; the promises are those of KIP-382, of MirrorCheckpointTask and OffsetSyncStore, and of OffsetSyncWriter,
which keeps delayed and pending syncs in memory, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs

from broker.ids import Offset, TopicPartition
from broker.units import TimeMs
from replication.mirror.records import Checkpoint, OffsetSync

PROMISES: Final[Mapping[str, str]] = {
    "MM1": "every record of the source is on the target",
    "MM2": "first copies stand in the order of the source",
    "MM3": "every record of the target is one of the source",
    "MM4": "without a failure there is one copy of each record",
    "MM5": "a pair of offsets names a record and a copy of it",
    "MM6": "a group that goes on at a checkpoint meets every record that it had not read",
    "MM7": "at rest, a failover reads no more than offset.lag.max records again, and duplicates; where nothing was "
    "copied since the mirror started, those behind the last sync",
}


@attrs.frozen
class Copy:
    """Hold one partition's records on both sides, by offset."""

    partition: TopicPartition
    source: tuple[bytes, ...]
    target: tuple[bytes, ...]

    @property
    def duplicate_count(self) -> int:
        """Return how many records of the target are repeated copies; a value twice on the source counts once."""
        return len(self.target) - len(set(self.target)) - (len(self.source) - len(set(self.source)))


@attrs.frozen
class MirrorFinding:
    """Describe one violated guarantee of the mirror."""

    code: str
    what: str

    def __str__(self) -> str:
        return f"{self.code} broken: {self.what}"


def check_copy(copy: Copy, *, is_once: bool) -> Iterable[MirrorFinding]:
    """Yield the mismatches of a copy's records; `is_once` means that a duplicate is one, as nothing failed."""
    where = str(copy.partition)
    present = set(copy.target)
    for offset, value in enumerate(copy.source):
        if value not in present:
            yield MirrorFinding("MM1", f"{where}: the record at {offset} is not on the target")
            break
    known: dict[bytes, int] = {}
    for offset, value in enumerate(copy.source):
        known.setdefault(value, offset)
    strangers = [offset for offset, value in enumerate(copy.target) if value not in known]
    if strangers:
        yield MirrorFinding("MM3", f"{where}: the target's record at {strangers[0]} is none of the source")
    firsts = [known[value] for value in dict.fromkeys(copy.target) if value in known]
    if firsts != sorted(firsts):
        yield MirrorFinding("MM2", f"{where}: first copies are not in order")
    if is_once and copy.duplicate_count:
        yield MirrorFinding("MM4", f"{where}: {copy.duplicate_count} records are there twice")


def check_syncs(copy: Copy, syncs: Iterable[OffsetSync]) -> Iterable[MirrorFinding]:
    """Yield offset syncs that name different records."""
    for sync in syncs:
        if sync.source_partition != copy.partition:
            continue
        is_there = sync.upstream < len(copy.source) and sync.downstream < len(copy.target)
        if not is_there or copy.source[sync.upstream] != copy.target[sync.downstream]:
            yield MirrorFinding("MM5", f"{copy.partition}: {sync.upstream} and {sync.downstream} are different records")


def missed(copy: Copy, upstream: Offset, downstream: Offset) -> int:
    """Return how many source records from `upstream` on are missing from the target from `downstream` on."""
    ahead = set(copy.target[downstream:])
    return sum(value not in ahead for value in copy.source[upstream:])


def read_again(copy: Copy, upstream: Offset, downstream: Offset) -> int:
    """Return how many target records from `downstream` on equal a record below `upstream` of the source."""
    read = set(copy.source[:upstream])
    return sum(value in read for value in copy.target[downstream:])


def check_checkpoints(
    copies: Mapping[TopicPartition, Copy], checkpoints: Sequence[Checkpoint]
) -> Iterable[MirrorFinding]:
    """Yield checkpoints past a record that the group had not read; `copies` are by the target's partition."""
    for checkpoint in checkpoints:
        copy = copies[checkpoint.target_partition]
        count = missed(copy, checkpoint.upstream, checkpoint.downstream)
        if count:
            yield MirrorFinding(
                "MM6",
                f"{copy.partition}: group {checkpoint.group} at {checkpoint.upstream}, sent to "
                f"{checkpoint.downstream}, misses {count} records",
            )


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
        if failover.missed_count:
            yield MirrorFinding("MM6", f"{where}: the group misses {failover.missed_count} records")
        last = last_syncs.get(failover.partition)
        if failover.at_ms < end_ms:
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
