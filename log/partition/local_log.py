"""Keep the segments of one partition on one disk: roll, truncate, replace, flush, and delete with a delay.

Source: kafka.log.LocalLog and org.apache.kafka.storage.internals.log.LocalLog, 4.3.1.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TypeAlias

from broker.entropy import RandomSource
from broker.errors import UsageError
from broker.ids import INT32_MAX, Offset
from broker.units import DurationMs, TimeMs
from log.errors import SegmentExistsError
from log.log_config import LogConfig
from log.segments.file_names import CLEANED, DELETED, SWAP
from log.segments.log_segments import Segments
from log.segments.segment import NO_JITTER, Segment
from log.segments.segment_files import SegmentPlace
from log.storage.protocol import Storage

Task: TypeAlias = Callable[[TimeMs], None]
"""Work to be done; it gets the time at which it runs."""


class Schedule:
    """Queue tasks in the order of the times at which they are due."""

    __slots__ = ("_count", "_tasks")

    def __init__(self) -> None:
        self._tasks: list[tuple[TimeMs, int, Task]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, due_ms: TimeMs, task: Task) -> None:
        """Add `task`, to run in the first `run` at or after `due_ms`. Cost: log n."""
        heapq.heappush(self._tasks, (due_ms, self._count, task))
        self._count += 1

    def run(self, now_ms: TimeMs) -> None:
        """Run every due task, including due tasks that the tasks themselves add."""
        while self._tasks and self._tasks[0][0] <= now_ms:
            _, _, task = heapq.heappop(self._tasks)
            task(now_ms)


class LocalLog:
    """Manage a partition's segments; there are none until `log.partition.recovery` loads or creates them."""

    def __init__(
        self, storage: Storage, directory: str, config: LogConfig, *, now_ms: TimeMs, entropy: RandomSource | None
    ) -> None:
        self.storage = storage
        self.directory = directory
        self.config = config
        self.segments = Segments()
        self.schedule = Schedule()
        self.end_offset = Offset(0)
        self.recovery_point = Offset(0)
        self.flushed_ms = now_ms
        self._entropy = entropy

    def place(self, base_offset: Offset, suffix: str = "") -> SegmentPlace:
        """Return the file paths of the segment at `base_offset`."""
        return SegmentPlace(self.storage, self.directory, base_offset, suffix)

    def open_segment(self, base_offset: Offset, *, now_ms: TimeMs, suffix: str = "") -> Segment:
        """Open a segment, new or not, and draw its roll jitter; do not add it to `segments`."""
        place = self.place(base_offset, suffix)
        return Segment(place, self.config, now_ms=now_ms, jitter_ms=self._draw_jitter_ms())

    def new_cleaned_segment(self, base_offset: Offset, *, now_ms: TimeMs) -> Segment:
        """Create an empty `.cleaned` segment; replace one that an aborted pass left behind."""
        self.place(base_offset, CLEANED).remove_files()
        return self.open_segment(base_offset, now_ms=now_ms, suffix=CLEANED)

    def set_end_offset(self, offset: Offset) -> None:
        """Set the log's end; lower a higher recovery point to it."""
        self.end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)

    def roll(self, expected_next_offset: Offset, *, now_ms: TimeMs) -> Segment:
        """Begin a new active segment at the log's end, or at a higher `expected_next_offset`; return the segment.

        An empty active segment that begins there is replaced. Raises SegmentExistsError, and then changes nothing.
        """
        base_offset = max(expected_next_offset, self.end_offset)
        active = self.segments.active
        if base_offset in self.segments:
            if active.base_offset == base_offset and active.size_bytes == 0:
                return self._replace_last(active, base_offset, now_ms=now_ms)
            raise SegmentExistsError(f"{self.directory}: cannot roll to {base_offset}, where a segment begins already")
        if base_offset < active.base_offset:
            raise SegmentExistsError(
                f"{self.directory}: cannot roll to {base_offset}, below the last segment's base {active.base_offset}"
            )
        self.place(base_offset).remove_files()
        active.become_inactive()
        segment = self.open_segment(base_offset, now_ms=now_ms)
        self.segments.add(segment)
        return segment

    def truncate_to(self, offset: Offset, *, now_ms: TimeMs) -> tuple[Segment, ...]:
        """Truncate the log to `offset`, which must lie in the log; return the deleted segments."""
        gone = tuple(segment for segment in self.segments if segment.base_offset > offset)
        self.remove_and_delete(gone, now_ms=now_ms)
        self.segments.active.truncate_to(offset, now_ms=now_ms)
        self.set_end_offset(offset)
        return gone

    def truncate_fully_and_start_at(self, offset: Offset, *, now_ms: TimeMs) -> tuple[Segment, ...]:
        """Delete all segments and begin anew at `offset`; return the deleted segments."""
        gone = self.segments.all
        self.remove_and_delete(gone[:-1], now_ms=now_ms)
        self._replace_last(gone[-1], offset, now_ms=now_ms)
        self.set_end_offset(offset)
        return gone

    def flush(self, offset: Offset) -> None:
        """Flush the segments from the recovery point up to `offset`; the recovery point stays where it is."""
        segments = self.segments.between(self.recovery_point, offset)
        for segment in segments:
            segment.flush()
        # The name of a segment made since the last flush is not durable yet.
        if any(segment.base_offset >= self.recovery_point for segment in segments):
            self.storage.sync_directory(self.directory)

    def mark_flushed(self, offset: Offset, *, now_ms: TimeMs) -> None:
        """Move the recovery point up to `offset`."""
        if offset > self.recovery_point:
            self.recovery_point = offset
            self.flushed_ms = now_ms

    def remove_and_delete(self, segments: Sequence[Segment], *, now_ms: TimeMs) -> None:
        """Remove segments from the log and delete their files after file.delete.delay.ms."""
        for segment in segments:
            self.segments.remove(segment.base_offset)
        self.delete_files(segments, now_ms=now_ms)

    def delete_files(self, segments: Sequence[Segment], *, now_ms: TimeMs) -> None:
        """Rename the files of removed segments to `.deleted`, and delete them after file.delete.delay.ms."""
        for segment in segments:
            if segment.suffix != DELETED:
                segment.change_suffix(DELETED)
            self.schedule.add(TimeMs(now_ms + self.config.file_delete_delay_ms), _remover(segment))

    def replace_segments(self, new: Sequence[Segment], old: Sequence[Segment], *, now_ms: TimeMs) -> list[Segment]:
        """Replace old segments by `.cleaned` ones; return the old segments whose base offset no new segment has."""
        assert new, "nothing to put in their place"
        assert all(segment.suffix == CLEANED for segment in new), new
        in_order = sorted(new, key=lambda segment: segment.base_offset)
        replaced = [
            segment
            for segment in sorted(old, key=lambda segment: segment.base_offset)
            if segment.base_offset in self.segments
        ]
        # From the last to the first: an opener that finds some of them takes none, as long as one is still .cleaned.
        for segment in reversed(in_order):
            segment.change_suffix(SWAP)
            self.segments.add(segment)
        for segment in replaced:
            if segment.base_offset != in_order[0].base_offset:
                self.segments.remove(segment.base_offset)
            self.delete_files([segment], now_ms=now_ms)
        for segment in in_order:
            segment.change_suffix("")
        self.storage.sync_directory(self.directory)
        bases = {segment.base_offset for segment in in_order}
        return [segment for segment in replaced if segment.base_offset not in bases]

    def rename_directory(self, directory: str) -> None:
        """Rename the log's directory; open files stay open."""
        self.storage.rename(self.directory, directory)
        self.directory = directory
        for segment in self.segments:
            segment.follow(directory)

    def _replace_last(self, last: Segment, base_offset: Offset, *, now_ms: TimeMs) -> Segment:
        """Begin an empty segment at `base_offset` and delete `last`, the only one left or an empty active one."""
        if base_offset == last.base_offset:
            last.change_suffix(DELETED)
        segment = self.open_segment(base_offset, now_ms=now_ms)
        self.segments.add(segment)
        if base_offset != last.base_offset:
            self.segments.remove(last.base_offset)
        self.delete_files([last], now_ms=now_ms)
        return segment

    def _draw_jitter_ms(self) -> DurationMs:
        config = self.config
        if config.segment_jitter_ms == 0:
            return NO_JITTER
        if self._entropy is None:
            raise UsageError("a log with segment.jitter.ms needs a source of chance to draw it from")
        # Java's abs() of its least int is negative, and Kafka takes 0 instead.
        drawn = abs(self._entropy.next_int())
        return DurationMs((0 if drawn > INT32_MAX else drawn) % min(config.segment_jitter_ms, config.segment_ms))


def _remover(segment: Segment) -> Task:
    return lambda _now_ms: segment.delete_files()
