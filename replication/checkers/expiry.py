"""Check what retention takes from a log's beginning and what it leaves there (K9).

It goes by the records' timestamps and the sizes of segments.
- What goes is older than retention.ms, to its last record, or leaves retention.bytes behind.
- What stays first, below the high watermark and not in the active segment, has a record that is not older, and without
  it less than retention.bytes would be left.

Source: Kafka core UnifiedLog.deleteOldSegments, 4.4.0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from broker.units import TimeMs
from replication.checkers.retention_model import RetainedObservedLog
from replication.retention.policy import Retention


def wrong_retention(observed: RetainedObservedLog, retention: Retention, now_ms: TimeMs) -> Iterator[str]:
    """Yield what is wrong with a log after retention; `observed` has not read the log since."""
    log, before = observed.log.log, observed.bounds
    if before is None or not retention.deletes:
        return
    start, size_bytes, keeps_ms = log.log_start_offset, int(log.size_bytes), retention.retention_ms
    limits_bytes, limits_ms = retention.retention_bytes >= 0, keeps_ms >= 0
    name = f"broker {observed.broker}"
    # What a compaction in the same event took from a segment does not date it.
    is_cleaned = observed.cleaning_count != observed.log.cleaning_count
    going = [] if is_cleaned else _timestamps(observed, before.start, start, observed.gaps)
    if going:
        age_ms = now_ms - going[-1]
        is_old = limits_ms and age_ms > keeps_ms
        if not is_old and not (limits_bytes and size_bytes >= retention.retention_bytes):
            yield f"{name} deleted up to {start}, of {age_ms} ms before, and has {size_bytes} bytes left; {retention}"
    if len(log.segments) < 2 or log.segments[1].base_offset > log.high_watermark:
        return
    first, end = log.segments[0], log.segments[1].base_offset
    # A batch that compaction has emptied keeps its timestamp.
    stamps = _timestamps(observed, first.base_offset, end)
    if limits_ms and len(stamps) == end - first.base_offset and now_ms - max(stamps) > keeps_ms:
        yield f"{name} keeps {first.base_offset} to {end}, the last of {now_ms - max(stamps)} ms before; {retention}"
    if limits_bytes and size_bytes - first.size_bytes >= retention.retention_bytes:
        yield f"{name} keeps {first.size_bytes} of {size_bytes} bytes too many; {retention}"


def _timestamps(
    observed: RetainedObservedLog, start: int, end: int, without: Collection[int] = frozenset()
) -> list[int]:
    """Return the timestamps of the records that the log had in a range of offsets when it was last read."""
    known, entries = observed.truth.known, observed.entries
    offsets = [offset for offset in range(start, min(end, len(entries))) if offset not in without]
    found = [known.get(entries[offset].value) for offset in offsets]
    return [held.timestamp_ms for held in found if held is not None]
