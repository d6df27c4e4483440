"""When a pair of offsets is worth telling: the rule by which MirrorMaker emits offset syncs.

Decides, for each record that was copied, whether its offsets on both sides are told at once, later, or never. Groups
are translated from what is told (`replication.mirror.sync_store`), so telling seldom means reading again after a
failover, and telling always would double the writes.

Goals, most important first
1. Whatever makes offsets drift apart is told at once: a gap on the source, a target that was cut.
2. Between such, a group at the live end is never further than `lag_max` records from what was told.
3. A quiet topic does not stay behind: what was not told at once is told with the next commit of source offsets.

Constraints: a partition has at most one sync waiting to be sent, and all together at most ten are under way; a newer
sync replaces the one that waits.

Worked example: with lag_max 100, the records 0..250 copied to the same offsets are told at 0, 101 and 202; 250 is
told at the next commit.

Source: Kafka connect-mirror OffsetSyncWriter and OffsetSyncWriter.PartitionState, commit 1eb7644 (2024-10), compared
with 3.9.1; offset.lag.max; KAFKA-14797, KAFKA-15906.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.ids import Offset, TopicPartition
from replication.mirror.records import OffsetSync

OFFSET_LAG_MAX: Final = 100
"""Kafka's default of offset.lag.max."""
OUTSTANDING_MAX: Final = 10
"""How many syncs MirrorMaker has under way at most."""


@attrs.frozen
class SyncState:
    """What the rule remembers of one partition; -1 before the first record of this life."""

    upstream: int = -1
    downstream: int = -1
    last_sync_downstream: int = -1


def next_sync(state: SyncState, upstream: Offset, downstream: Offset, lag_max: int) -> tuple[SyncState, bool]:
    """Return the state after a record was copied, and whether its offsets are to be told at once."""
    is_first = state.last_sync_downstream == -1
    # A group beyond the sync is translated to one past it, so that one is not counted as lag.
    is_stale = downstream - (state.last_sync_downstream + 1) >= lag_max
    has_gap = upstream - state.upstream != 1
    was_cut = downstream < state.downstream
    is_due = is_first or is_stale or has_gap or was_cut
    return SyncState(upstream, downstream, downstream if is_due else state.last_sync_downstream), is_due


class SyncQueue:
    """The syncs of all partitions that are not sent yet: `pending` to be sent now, the others with the next commit."""

    def __init__(self, lag_max: int = OFFSET_LAG_MAX) -> None:
        self._lag_max = lag_max
        self._states: dict[TopicPartition, SyncState] = {}
        self._delayed: dict[TopicPartition, OffsetSync] = {}
        self._pending: dict[TopicPartition, OffsetSync] = {}
        self._outstanding = 0

    def copied(self, source_partition: TopicPartition, upstream: Offset, downstream: Offset) -> None:
        """Note that a record was copied."""
        known = self._states.get(source_partition, SyncState())
        self._states[source_partition], is_due = next_sync(known, upstream, downstream, self._lag_max)
        sync = OffsetSync(source_partition, upstream, downstream)
        if is_due:
            self._delayed.pop(source_partition, None)
            self._pending[source_partition] = sync
        else:
            self._delayed[source_partition] = sync

    def on_commit(self) -> None:
        """Source offsets were committed: what was put off is to be sent now."""
        self._pending.update(self._delayed)
        self._delayed.clear()

    def take(self) -> tuple[OffsetSync, ...]:
        """Return the syncs to send now; each counts as under way until `sent` is called."""
        taken = []
        while self._pending and self._outstanding < OUTSTANDING_MAX:
            partition = next(iter(self._pending))
            taken.append(self._pending.pop(partition))
            self._outstanding += 1
        return tuple(taken)

    def sent(self) -> None:
        """One sync was answered, well or badly."""
        assert self._outstanding > 0, self._outstanding
        self._outstanding -= 1
