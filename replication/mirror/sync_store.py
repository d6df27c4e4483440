"""Translate offsets of the source into offsets of the target by the offset syncs.

What it decides: where a consumer group goes on after a failover. An offset is translated by the last stored sync at or
before it: to the sync's own target offset on an exact match, else to the offset after it, as nothing is known about the
records between syncs.

Goals, most important first:
1. Never past a record that the group has not read: a group may read again, it may not miss.
2. Near the live end as exact as the syncs are, far from it coarser: 64 syncs for a topic of any length.
3. Without a new sync, a later offset never translates to an earlier one.

Constraints: as Kafka states them, for places i < j with different syncs:
- place 0 holds the last sync;
- B: upstream(i) <= upstream(j) + 2**j - 2**i: syncs near the end are kept;
- C: upstream(i) >= upstream(j) + 2**max(i - 2, 0): no two places keep the same sync.
A sync that goes back on the source replaces all others, which name deleted records.

How: a new sync takes place 0 and moves the others towards the end as far as B demands. Each place gets the most recent
old sync that satisfies B and C; the work stops where B holds already. A store that has not read its topic to the end
translates nothing. One that must read to the end keeps only the last sync at first, since older ones may already have
been used for later translations.

Example: with the syncs 0:0, 100:90 and 200:180, offset 150 translates to 91, 100 to 90, 250 to 181.

Source: Kafka connect-mirror OffsetSyncStore, 4.3.1, compared with 3.9.1 and 4.1.0;
KAFKA-12468, KAFKA-14666, KAFKA-15905, KIP-382.
"""

from __future__ import annotations

from typing import Final

from broker.ids import INT64_MAX, Offset, TopicPartition
from replication.mirror.records import OffsetSync

SYNC_COUNT: Final = 64
"""The number of places: one for each bit of an offset."""
TOO_OLD: Final = Offset(-1)
"""The translation of an offset before all stored syncs."""


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
            has_twin = place_in_known + 1 < SYNC_COUNT and known[place_in_known + 1] is old
            is_skipped = has_twin or not is_apart
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
