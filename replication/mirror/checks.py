"""Check a copy against its source after both clusters have healed, and compute the cost of a failover.

Constraints: the checks read the bytes of logs and emitted checkpoints; they ask the mirror nothing.

Source: ours; the promises are those of KIP-382, of MirrorCheckpointTask and OffsetSyncStore, and of OffsetSyncWriter,
which keeps delayed and pending syncs in memory, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from broker.ids import Offset, TopicPartition
from broker.units import TimeMs
from replication.mirror.records import Checkpoint, OffsetSync

PROMISES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MM1": "every record of the source is on the target",
        "MM2": "first copies stand in the order of the source",
        "MM3": "every record of the target is one of the source",
        "MM4": "without a failure there is one copy of each record",
        "MM5": "a pair of offsets names a record and a copy of it",
        "MM6": "a group that goes on at a checkpoint meets every record that it had not read",
        "MM7": "at rest, a failover reads no more than offset.lag.max records again, and duplicates; where nothing was "
        "copied since the mirror started, those behind the last sync",
    }
)


@attrs.frozen
class MirrorFinding:
    """Describe one violated guarantee of the mirror."""

    code: str
    what: str

    def __str__(self) -> str:
        return f"{self.code} broken: {self.what}"


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

    def missed(self, upstream: Offset, downstream: Offset) -> int:
        """Return how many source records from `upstream` on are missing from the target from `downstream` on."""
        ahead = set(self.target[downstream:])
        return sum(value not in ahead for value in self.source[upstream:])


def check_copy(copy: Copy, syncs: Iterable[OffsetSync], *, is_once: bool) -> Iterator[MirrorFinding]:
    """Yield the mismatches of a copy and its syncs; `is_once` means that a duplicate is one, as nothing failed."""
    where = str(copy.partition)
    present = set(copy.target)
    known: dict[bytes, int] = {}
    for offset, value in enumerate(copy.source):
        known.setdefault(value, offset)
    lacking = next((offset for offset, value in enumerate(copy.source) if value not in present), None)
    if lacking is not None:
        yield MirrorFinding("MM1", f"{where}: the record at {lacking} is not on the target")
    stranger = next((offset for offset, value in enumerate(copy.target) if value not in known), None)
    if stranger is not None:
        yield MirrorFinding("MM3", f"{where}: the target's record at {stranger} is none of the source")
    firsts = [known[value] for value in dict.fromkeys(copy.target) if value in known]
    if firsts != sorted(firsts):
        yield MirrorFinding("MM2", f"{where}: first copies are not in order")
    if is_once and copy.duplicate_count:
        yield MirrorFinding("MM4", f"{where}: {copy.duplicate_count} records are there twice")
    for sync in syncs:
        pair = copy.source[sync.upstream : sync.upstream + 1], copy.target[sync.downstream : sync.downstream + 1]
        if sync.source_partition == copy.partition and (pair[0] != pair[1] or not pair[0]):
            yield MirrorFinding("MM5", f"{where}: {sync.upstream} and {sync.downstream} are different records")


def check_groups(copies: Mapping[TopicPartition, Copy], checkpoints: Iterable[Checkpoint]) -> Iterator[MirrorFinding]:
    """Yield checkpoints past a record that the group had not read; `copies` are by the target's partition."""
    for checkpoint in checkpoints:
        copy = copies[checkpoint.target_partition]
        if count := copy.missed(checkpoint.upstream, checkpoint.downstream):
            at = f"{copy.partition}: group {checkpoint.group} at {checkpoint.upstream}"
            yield MirrorFinding("MM6", f"{at}, sent to {checkpoint.downstream}, misses {count} records")


@attrs.frozen(kw_only=True)
class Failover:
    """Hold the cost of a failover at `at_ms` for a group at `upstream` that continues at `downstream` of the target.

    `missed_count` counts unread records that it would never read, `read_again_count` records that it reads a second
    time, `behind_count` records committed on the source and not copied yet; the ends are those of `at_ms`.
    """

    at_ms: TimeMs
    partition: TopicPartition
    upstream: Offset
    downstream: Offset
    source_end: Offset
    target_end: Offset
    is_synced: bool = True
    """Whether the mirror's process has copied a record of the partition since it last started."""
    missed_count: int = 0
    read_again_count: int = 0
    behind_count: int = 0

    def counted(self, copy: Copy) -> Failover:
        """Return the failover with its counts, by the records of both sides at the end of the run."""
        read, there = set(copy.source[: self.upstream]), set(copy.target[: self.target_end])
        return attrs.evolve(
            self,
            missed_count=copy.missed(self.upstream, self.downstream),
            read_again_count=sum(value in read for value in copy.target[self.downstream :]),
            behind_count=sum(value not in there for value in copy.source[: self.source_end]),
        )


def check_failover(
    failover: Failover, copy: Copy, lag_max: int | None, last_sync: OffsetSync | None
) -> Iterator[MirrorFinding]:
    """Yield violated guarantees of a failover; `lag_max` is None for one that does not happen at rest.

    offset.lag.max bounds what is read again only where the process has copied a record since it started: a sync that it
    had not written yet when it died is made up for by the next record, and by nothing else. Elsewhere the last sync
    that was written is the bound.
    """
    where = f"{failover.partition}, failover at {failover.at_ms} ms"
    if failover.missed_count:
        yield MirrorFinding("MM6", f"{where}: the group misses {failover.missed_count} records")
    if lag_max is None:
        return
    if failover.is_synced:
        # One more: a sync that is not met exactly is translated to the record after it.
        bound = max(lag_max, 1) + copy.duplicate_count
    elif last_sync is not None and last_sync.upstream <= failover.upstream:
        bound = failover.upstream - last_sync.upstream + copy.duplicate_count
    else:
        return
    if failover.read_again_count > bound:
        what = f"{failover.read_again_count} records are read again, more than {bound}"
        yield MirrorFinding("MM7", f"{where}: {what}")
