"""Decide when MirrorMaker emits an offset sync.

What it decides: for each copied record, whether its pair of offsets is emitted at once, with the next commit, or never.
Group offsets are translated by the emitted syncs (`replication.mirror.sync_store`): few syncs mean more records read
again after a failover, a sync for each record would double the writes.

Goals, most important first:
1. A sync is emitted at once when offsets drift apart: after a gap on the source, or a truncated target.
2. Otherwise a group at the live end is at most `lag_max` records behind the last sync.
3. An idle topic does not stay behind: a delayed sync is emitted with the next commit of source offsets.

Constraints: a partition has at most one waiting sync, and at most ten syncs are in flight; a newer sync replaces the
waiting one.

Example: with lag_max 100, the records 0 to 250, copied to the same offsets, emit syncs at 0, 101 and 202; 250 is
emitted at the next commit.

Source: Kafka connect-mirror OffsetSyncWriter and OffsetSyncWriter.PartitionState, 4.3.1, compared
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
"""The greatest number of syncs that MirrorMaker has in flight."""


@attrs.frozen
class SyncState:
    """Hold the last offsets of one partition and of its last sync; -1 before the first record."""

    upstream: int = -1
    downstream: int = -1
    last_sync_downstream: int = -1


def next_sync(state: SyncState, upstream: Offset, downstream: Offset, lag_max: int) -> tuple[SyncState, bool]:
    """Return the state after a record was copied, and whether its sync is emitted at once."""
    is_first = state.last_sync_downstream == -1
    # A group beyond the sync is translated to one past it, so that one is not counted as lag.
    is_stale = downstream - (state.last_sync_downstream + 1) >= lag_max
    has_gap = upstream - state.upstream != 1
    was_cut = downstream < state.downstream
    is_due = is_first or is_stale or has_gap or was_cut
    return SyncState(upstream, downstream, downstream if is_due else state.last_sync_downstream), is_due


class SyncQueue:
    """Hold the unsent syncs of all partitions: pending ones to send now, delayed ones to send with the next commit."""

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
        """Make the delayed syncs pending, as source offsets were committed."""
        self._pending.update(self._delayed)
        self._delayed.clear()

    def take(self) -> tuple[OffsetSync, ...]:
        """Return the syncs to send now; each is in flight until `sent` is called."""
        taken = []
        while self._pending and self._outstanding < OUTSTANDING_MAX:
            partition = next(iter(self._pending))
            taken.append(self._pending.pop(partition))
            self._outstanding += 1
        return tuple(taken)

    def sent(self) -> None:
        """Note that one sync was answered, successfully or not."""
        assert self._outstanding > 0, self._outstanding
        self._outstanding -= 1
