"""Which segments a log may delete: those before its start, those beyond its size, those too old.

Decides how many of the oldest segments go, in three questions asked one after the other.

Goals, most important first
1. Nothing is deleted that consumers could not have read: a segment's end must not be above the high watermark.
2. Only whole segments, only the oldest, and none is left out: the first one that stays keeps all after it.
3. The log keeps at least retention.bytes, and every segment whose newest record is within retention.ms.

Constraints: an empty active segment is never deleted. Without "delete" in cleanup.policy only the first question is
asked. One record stamped far in the future therefore keeps its segment, and all behind it, as long as time demands.

How: a fold from the oldest segment on; each question is a predicate, the one about size remembers how much is left.

Example: segments of 100, 100 and 50 bytes, retention.bytes 120: the excess is 130, so the first goes (30 are left,
less than the second holds), and 150 bytes stay.

Left out: remote storage, whose copies let local segments go earlier.

Source: kafka.log.UnifiedLog.{deleteOldSegments,deletableSegments}, trunk 1eb7644 (2024-10); KAFKA-5634 for the bound
by the high watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import attrs

from broker.ids import Offset
from broker.units import DurationMs, SizeBytes, TimeMs


@attrs.frozen(kw_only=True)
class RetainedSegment:
    """What retention asks of a segment. `end_offset` is the next one's base, or the log's end for the active one."""

    size_bytes: SizeBytes
    end_offset: Offset
    largest_timestamp_ms: TimeMs
    is_active: bool


Breach: TypeAlias = Callable[[RetainedSegment], bool]
"""A question to each segment in turn, oldest first: may it go?"""


def deletable_count(segments: Iterable[RetainedSegment], *, high_watermark: Offset, breach: Breach) -> int:
    """Return how many of the oldest segments may go. Cost: one look at each of them and at the first that stays."""
    count = 0
    for segment in segments:
        is_empty_active = segment.is_active and segment.size_bytes == 0
        if high_watermark < segment.end_offset or not breach(segment) or is_empty_active:
            break
        count += 1
    return count


def before_start(log_start_offset: Offset) -> Breach:
    """Return the question whether a segment lies wholly before the log's start; the active one never does."""
    return lambda segment: not segment.is_active and segment.end_offset <= log_start_offset


def beyond_size(log_size_bytes: SizeBytes, retention_bytes: SizeBytes) -> Breach:
    """Return the question whether the log keeps at least `retention_bytes` without this segment and those before."""
    excess_bytes = log_size_bytes - retention_bytes

    def breaches(segment: RetainedSegment) -> bool:
        nonlocal excess_bytes
        if excess_bytes < segment.size_bytes:
            return False
        excess_bytes -= segment.size_bytes
        return True

    return breaches


def too_old(now_ms: TimeMs, retention_ms: DurationMs) -> Breach:
    """Return the question whether a segment's newest record is older than `retention_ms`; equal stays."""
    return lambda segment: now_ms - segment.largest_timestamp_ms > retention_ms
