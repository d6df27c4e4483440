"""Decide when MirrorMaker emits an offset sync, and translate offsets of the source by the syncs.

What it decides: for each copied record, whether its pair of offsets is emitted at once, with the next commit, or never;
and where a consumer group goes on after a failover. An offset is translated by the last stored sync at or before it: to
the sync's own target offset on an exact match, else to the offset after it, as nothing is known about the records
between syncs.

Goals, most important first:
1. Never past a record that the group has not read: a group may read again, it may not miss.
2. A sync is emitted at once when offsets drift apart: after a gap on the source, or a truncated target.
3. A group at the live end is at most `lag_max` records behind the last sync; far from it translations are coarser, with
   64 syncs for a topic of any length. Without a new sync, a later offset never translates to an earlier one.

Constraints: a partition has one delayed sync at most, and at most ten syncs are in flight. As Kafka states them, for
places i < j of the store with different syncs:
- place 0 holds the last sync;
- B: upstream(i) <= upstream(j) + 2**j - 2**i: syncs near the end are kept;
- C: upstream(i) >= upstream(j) + 2**max(i - 2, 0): no two places keep the same sync.
A sync that goes back on the source replaces all others, which name deleted records.

How: a new sync takes place 0 and moves the others towards the end as far as B demands. Each place gets the most recent
old sync that satisfies B and C; the work stops where B holds already. A store that must read to the end keeps only the
last sync before, since older ones may have been used for later translations.

Example: with lag_max 100, the records 0 to 250, copied to the same offsets, emit syncs at 0, 101 and 202, and 250 with
the next commit. With the syncs 0:0, 100:90 and 200:180, offset 150 translates to 91, 100 to 90, 250 to 181.

Source: Kafka connect-mirror OffsetSyncWriter and OffsetSyncStore, 4.3.1, compared with 3.9.1 and 4.1.0;
KAFKA-12468, KAFKA-14666, KAFKA-14797, KAFKA-15905, KAFKA-15906, KIP-382.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.ids import INT64_MAX, Offset, TopicPartition
from replication.mirror.records import OffsetSync

OFFSET_LAG_MAX: Final = 100
"""Kafka's default of offset.lag.max."""
OUTSTANDING_MAX: Final = 10
"""The greatest number of syncs that MirrorMaker has in flight."""
SYNC_COUNT: Final = 64
"""The number of places: one for each bit of an offset."""
TOO_OLD: Final = Offset(-1)
"""The translation of an offset before all stored syncs."""


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


class SyncStore:
    """Store the syncs of all partitions of a source; `must_read_to_end` means that earlier checkpoints are unknown."""

    def __init__(self, *, must_read_to_end: bool = True) -> None:
        self._must_read_to_end = must_read_to_end
        self._has_read_to_end = False
        self._syncs: dict[TopicPartition, tuple[OffsetSync, ...]] = {}

    def read_to_end(self) -> None:
        """Start translating: the topic was read to the end that it had at the start."""
        self._has_read_to_end = True

    def add(self, sync: OffsetSync) -> None:
        """Add the next sync of the topic. Cost: at most 64 places, each visited twice."""
        known = self._syncs.get(sync.source_partition)
        is_only_last_kept = self._must_read_to_end and not self._has_read_to_end
        if known is None or is_only_last_kept or sync.upstream < known[0].upstream:
            self._syncs[sync.source_partition] = (sync,) * SYNC_COUNT
        else:
            self._syncs[sync.source_partition] = added(known, sync)

    def syncs_of(self, source_partition: TopicPartition) -> tuple[OffsetSync, ...]:
        """Return the 64 places of a partition, the last sync first; empty without a sync."""
        return self._syncs.get(source_partition, ())

    def translate(self, source_partition: TopicPartition, upstream: Offset) -> Offset | None:
        """Return the target offset for a group at `upstream`; TOO_OLD before all syncs, None if nothing is known."""
        syncs = self._syncs.get(source_partition)
        if not self._has_read_to_end or syncs is None:
            return None
        for sync in syncs:
            if sync.upstream <= upstream:
                return Offset(sync.downstream + (sync.upstream != upstream))
        return TOO_OLD


def added(known: tuple[OffsetSync, ...], sync: OffsetSync) -> tuple[OffsetSync, ...]:
    """Return the 64 places after adding `sync`, which is not before known[0]."""
    assert len(known) == SYNC_COUNT, len(known)
    assert sync.upstream >= known[0].upstream, (sync, known[0])
    places = [sync, *known[1:]]
    replacement, place_in_known = sync, 0
    for current in range(1, SYNC_COUNT):
        previous = current - 1
        is_skipping = True
        while is_skipping:
            old = known[place_in_known]
            is_apart = _is_apart(places[previous], old, previous)
            is_used = (
                is_apart
                and _is_near(places[previous], old, previous, current)
                and (current + 1 == SYNC_COUNT or _is_apart(old, places[current + 1], current))
            )
            if is_used:
                replacement = old
            is_repeated = place_in_known + 1 < SYNC_COUNT and known[place_in_known + 1] is old
            is_skipped = is_repeated or not is_apart
            place_in_known += is_used or is_skipped
            is_skipping = is_skipped and place_in_known < current
        assert _is_near(places[previous], replacement, previous, current), (places, replacement)
        assert _is_apart(places[previous], replacement, previous), (places, replacement)
        if _is_near(places[previous], places[current], previous, current):
            # It holds for all later places, too.
            break
        places[current] = replacement
    return tuple(places)


def _is_near(one: OffsetSync, other: OffsetSync, i: int, j: int) -> bool:
    """Return whether B holds for neighbours; beyond an int64 it always holds, as Kafka's sum turns negative."""
    bound = other.upstream + (1 << j) - (1 << i)
    return one is other or bound > INT64_MAX or one.upstream <= bound


def _is_apart(one: OffsetSync, other: OffsetSync, i: int) -> bool:
    """Return whether C holds for neighbours; beyond an int64 it never holds, as Kafka's sum turns negative."""
    bound = other.upstream + (1 << max(i - 2, 0))
    return one is other or (bound <= INT64_MAX and one.upstream >= bound)
