"""Keep the segments of a log in the order of their base offsets.

Source: org.apache.kafka.storage.internals.log.LogSegments, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from sortedcontainers import SortedDict

from broker.ids import Offset
from broker.units import SizeBytes
from log.segments.segment import Segment


class Segments:
    """Keep segments in the order of their base offsets; look-ups cost O(log n)."""

    __slots__ = ("_by_base", "active")

    active: Segment
    """The last one, which is appended to."""

    def __init__(self) -> None:
        self._by_base: SortedDict[Offset, Segment] = SortedDict()

    def __len__(self) -> int:
        return len(self._by_base)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._by_base.values())

    def __contains__(self, base_offset: Offset) -> bool:
        return base_offset in self._by_base

    @property
    def all(self) -> tuple[Segment, ...]:
        """Return every segment, by base offset."""
        return tuple(self._by_base.values())

    @property
    def first(self) -> Segment:
        """Return the oldest segment."""
        first: Segment = self._by_base.peekitem(0)[1]
        return first

    @property
    def size_bytes(self) -> SizeBytes:
        """Return the size of all log files in bytes. Cost: linear."""
        return SizeBytes(sum(segment.size_bytes for segment in self._by_base.values()))

    def add(self, segment: Segment) -> None:
        """Add a segment, replacing one with the same base offset."""
        self._by_base[segment.base_offset] = segment
        self._update_active()

    def remove(self, base_offset: Offset) -> None:
        """Remove a segment, if present; its files stay."""
        self._by_base.pop(base_offset, None)
        self._update_active()

    def clear(self) -> None:
        """Remove all segments; their files stay."""
        self._by_base.clear()

    def floor(self, offset: Offset) -> Segment | None:
        """Return the segment with the greatest base offset at or below `offset`."""
        index = self._by_base.bisect_right(offset) - 1
        return self._by_base.peekitem(index)[1] if index >= 0 else None

    def higher(self, base_offset: Offset) -> Segment | None:
        """Return the segment with the smallest base offset above `base_offset`."""
        index = self._by_base.bisect_right(base_offset)
        return self._by_base.peekitem(index)[1] if index < len(self._by_base) else None

    def between(self, start_offset: Offset, end_offset: Offset | None = None) -> tuple[Segment, ...]:
        """Return the segments that may hold offsets of [start, end); None means no end.

        As in Kafka an empty range has no segment, even where it lies inside one.
        """
        if start_offset == end_offset:
            return ()
        assert end_offset is None or start_offset < end_offset, (start_offset, end_offset)
        first = max(self._by_base.bisect_right(start_offset) - 1, 0)
        last = len(self._by_base) if end_offset is None else self._by_base.bisect_left(end_offset)
        return tuple(self._by_base.values()[first:last])

    def _update_active(self) -> None:
        if self._by_base:
            self.active = self._by_base.peekitem(-1)[1]
