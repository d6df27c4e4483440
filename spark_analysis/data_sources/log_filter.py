"""Choose records by topic, partition, offset and time: which segments, which batches, which rows.

What it decides: what can be left out without being read. The driver leaves out segments by topic, partition and offset;
an executor leaves out batches by the offsets and the largest timestamp in their headers, and then single records.

Constraints: a batch that might hold a wanted record is read. Offsets and times are half-open ranges. Bytes that are
left out are not checked for damage.

How: a walk over headers joins neighbouring batches to runs of bytes; where the walk stops at damage, all that follows
is read.

Example:
    >>> LogFilter(topics=frozenset({"orders"}), start_offset=100).wants_segment(
    ...     LogSegment("…", "orders", 0, base_offset=0, size_bytes=9, end_offset=100)
    ... )
    False

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.ids import INT32_MAX, INT64_MAX
from log.batches.header_table import walk
from log.batches.record_columns import ByteArray, HeaderColumns, RecordColumns
from spark_analysis.data_sources.log_listing import LogSegment
from spark_analysis.data_sources.options import GivenOptions

INT64_MIN: Final = -(2**63)
OPTIONS: Final = ("topics", "partitions", "start_offset", "end_offset", "start_time", "end_time")


@attrs.frozen
class LogFilter:
    """Hold what is wanted: None is every topic or partition; ranges include their start and not their end."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int = 0
    end_offset: int = INT64_MAX
    start_ms: int = INT64_MIN
    end_ms: int = INT64_MAX

    @classmethod
    def of(cls, given: GivenOptions) -> LogFilter:
        """Return what the options ask for."""
        topics = given.names("topics")
        return cls(
            frozenset(topics) if topics else None,
            given.numbers("partitions", high=INT32_MAX),
            _or(given.number("start_offset", low=0, high=INT64_MAX), 0),
            _or(given.number("end_offset", low=0, high=INT64_MAX), INT64_MAX),
            _or(given.time_ms("start_time"), INT64_MIN),
            _or(given.time_ms("end_time"), INT64_MAX),
        )

    def wants_segment(self, segment: LogSegment) -> bool:
        """Return whether the segment may hold wanted records, by what the driver knows of it."""
        return (
            (self.topics is None or segment.topic in self.topics)
            and (self.partitions is None or segment.partition in self.partitions)
            and segment.base_offset < self.end_offset
            and (segment.end_offset is None or segment.end_offset > self.start_offset)
        )

    @property
    def takes_all(self) -> bool:
        """Return whether every record of a wanted segment is wanted."""
        whole = LogFilter()
        return attrs.evolve(self, topics=None, partitions=None) == whole

    def narrowed(self, column: str, relation: str, value: Any) -> LogFilter:
        """Return the filter that also leaves out what `column` `relation` `value` excludes, if it can say so.

        A relation is "=", "in", "<", "<=", ">" or ">="; any other leaves the filter as it is.
        """
        values = frozenset(value) if relation == "in" else frozenset([value])
        if column in ("topic", "partition") and relation in ("=", "in"):
            name = f"{column}s"
            known = getattr(self, name)
            wanted: dict[str, Any] = {name: values if known is None else known & values}
            return attrs.evolve(self, **wanted)
        names = {"offset": ("start_offset", "end_offset"), "timestamp_ms": ("start_ms", "end_ms")}.get(column)
        if names is None or not values or not all(isinstance(each, int) for each in values):
            return self
        low, high = min(values), max(values)
        starts = {"=": low, "in": low, ">=": low, ">": low + 1}
        ends = {"=": high + 1, "in": high + 1, "<=": high + 1, "<": high}
        start = max(getattr(self, names[0]), starts.get(relation, INT64_MIN))
        end = min(getattr(self, names[1]), ends.get(relation, INT64_MAX))
        return attrs.evolve(self, **{names[0]: min(start, INT64_MAX), names[1]: end})

    def runs(self, data: ByteArray) -> Iterator[tuple[int, int]]:
        """Yield the ranges of bytes with batches that may hold wanted records."""
        if self.takes_all:
            yield 0, len(data)
            return
        held: tuple[int, int] | None = None
        for start, end in self._wanted(data):
            if held is not None and held[1] == start:
                held = held[0], end
                continue
            if held is not None:
                yield held
            held = start, end
        if held is not None:
            yield held

    def rows(self, chunk: RecordColumns) -> NDArray[np.int64] | None:
        """Return which rows are wanted; None if all are."""
        if self.takes_all:
            return None
        wanted = (chunk.offset >= self.start_offset) & (chunk.offset < self.end_offset)
        wanted &= (chunk.timestamp >= self.start_ms) & (chunk.timestamp < self.end_ms)
        return None if wanted.all() else np.flatnonzero(wanted)

    def _wanted(self, data: ByteArray) -> Iterator[tuple[int, int]]:
        position = 0
        while position < len(data):  # Each turn moves on by a batch at least.
            headers = walk(data, position, len(data), True)
            wanted = np.flatnonzero(self._batches(headers))
            if wanted.size:
                breaks = np.flatnonzero(np.diff(wanted) > 1) + 1
                for run in np.split(wanted, breaks):
                    last = int(run[-1])
                    yield int(headers.position[run[0]]), int(headers.position[last] + headers.size_bytes[last])
            if headers.damage is not None:
                yield headers.damage.position, len(data)
                return
            if headers.end_position == position:
                return
            position = headers.end_position

    def _batches(self, headers: HeaderColumns) -> NDArray[np.bool_]:
        """Return which batches may hold wanted records; a wrapper of magic 0 or 1 has the offset of its last."""
        wanted = (headers.last_offset >= self.start_offset) & (headers.max_timestamp >= self.start_ms)
        return np.asarray(wanted & ((headers.base_offset < self.end_offset) | (headers.magic < 2)))


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
