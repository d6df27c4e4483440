"""Rebuild the state of producers up to an offset: from the newest snapshot, then from the batches after it.

What it decides: from where the log is read again when it is opened or cut, and which snapshots are written on the way.

Goals, most important first:
1. Afterwards a retry is known as such, and an open transaction is open, as if the log had never been closed.
2. Little is read: only what the newest usable snapshot does not cover.
3. The next open is fast: snapshots are written for the last two segments and for the end.

Constraints: a log that was closed cleanly and has no snapshot at all is taken to have no producers, since brokers
before 0.11 left none; nothing is read then. A log that writes magic 0 or 1 has none either.

Example: segments 0, 100, 200, end 250, a snapshot at 100: read are the batches from 100 on; a snapshot is written at
200 when the reading comes to it, and one at 250.

Left out: how snapshots are named and read, see `log.producers.state`.

Source: org.apache.kafka.storage.internals.log.UnifiedLog.rebuildProducerState, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

import attrs

from broker.ids import Offset
from broker.units import TimeMs
from log.indexes.txn_index import AbortedTransaction
from log.producers.state import AppendAnalysis, ProducerState
from log.segments.log_segments import Segments
from log.segments.segment import Segment


@attrs.frozen(kw_only=True)
class RebuildRequest:
    """Hold the log's bounds, magic and last shutdown, which decide what a rebuild reads."""

    log_start_offset: Offset
    last_offset: Offset
    magic: int
    had_clean_shutdown: bool
    now_ms: TimeMs


def rebuild_producer_state(producers: ProducerState, segments: Segments, request: RebuildRequest) -> None:
    """Rebuild `producers` to the state at `request.last_offset`, and write snapshots."""
    last_offset = request.last_offset
    snapshot_offsets = _offsets_to_snapshot(segments)
    if request.magic < 2 or (producers.latest_snapshot_offset is None and request.had_clean_shutdown):
        for offset in (*snapshot_offsets, last_offset):
            producers.update_map_end_offset(offset)
            producers.take_snapshot()
        return
    was_empty_at_end = producers.is_empty and producers.map_end_offset >= last_offset
    producers.truncate_and_reload(request.log_start_offset, last_offset, request.now_ms)
    if last_offset > producers.map_end_offset and not was_empty_at_end:
        _replay(producers, segments, request, snapshot_offsets)
    producers.update_map_end_offset(last_offset)
    producers.take_snapshot()


def settle(segment: Segment, producers: ProducerState, analysis: AppendAnalysis, *, is_appended: bool = False) -> None:
    """Update `producers` with batches, and add their aborted transactions to the segment's index.

    `is_appended` tells a new append from batches that recovery reads again.
    """
    for append in analysis.appends:
        producers.update(append, is_placed=is_appended)
    for completed in analysis.completed:
        if completed.is_aborted:
            segment.txn_index.append(
                AbortedTransaction(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    producers.last_stable_offset_after(completed),
                )
            )
        producers.complete(completed)


def _offsets_to_snapshot(segments: Segments) -> tuple[Offset, ...]:
    """Return the base offsets of the last two segments."""
    return tuple(segment.base_offset for segment in segments.all[-2:])


def _replay(
    producers: ProducerState, segments: Segments, request: RebuildRequest, snapshot_offsets: tuple[Offset, ...]
) -> None:
    """Read the batches from where `producers` ends, with a snapshot at each of `snapshot_offsets` come to."""
    last_segment = segments.floor(request.last_offset)
    for segment in segments.between(Offset(producers.map_end_offset), request.last_offset):
        start_offset = Offset(max(segment.base_offset, producers.map_end_offset, request.log_start_offset))
        producers.update_map_end_offset(start_offset)
        if segment.base_offset in snapshot_offsets:
            producers.take_snapshot()
        end_position = _end_position(segment, request.last_offset if segment is last_segment else None)
        found = segment.translate_offset(start_offset)
        if found is not None:
            producers.replay(segment.batches(found.position, end_position))


def _end_position(segment: Segment, last_offset: Offset | None) -> int:
    """Return the position where the batch of `last_offset` begins, the end of the file if it is not in the segment."""
    found = None if last_offset is None else segment.translate_offset(last_offset)
    return segment.size_bytes if found is None else found.position
