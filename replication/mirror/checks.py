"""Check a copy against its source after both clusters have healed.

Constraints: the checks read the bytes of logs and emitted checkpoints; they ask the mirror nothing. A partition that
lost records by an unclean election, on either side, is not judged: its offsets name two records each.

Source: ours; the promises are those of KIP-382, of MirrorCheckpointTask and OffsetSyncStore, and of OffsetSyncWriter,
which keeps delayed and pending syncs in memory, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from broker.ids import Offset, TopicPartition
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
    """Hold one partition's records on both sides, by offset; `is_sound` is False after an unclean election."""

    partition: TopicPartition
    source: tuple[bytes, ...]
    target: tuple[bytes, ...]
    is_sound: bool = True

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
    """Yield the mismatches of a copy's records; `is_once` means that no failure excuses a duplicate."""
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
        if count and copy.is_sound:
            yield MirrorFinding(
                "MM6",
                f"{copy.partition}: group {checkpoint.group} at {checkpoint.upstream}, sent to "
                f"{checkpoint.downstream}, misses {count} records",
            )
