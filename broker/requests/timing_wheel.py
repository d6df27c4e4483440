"""Keep timers in a hierarchical timing wheel, where most timers are cancelled before they fire.

What it decides: which delayed operations are due. Putting one in, taking it out and moving the clock by a tick cost the
same however many wait: a broker holds tens of thousands, and nearly all complete early.

How:
A wheel has `wheel_size` buckets of one tick each, and so covers an interval of their product. What lies
further off goes to an overflow wheel, whose tick is that interval, made when it is first needed. When
the clock reaches a bucket of the overflow wheel, its tasks are put in again and so fall to the finer
wheel. A heap of the buckets in use says when the clock has to stop next; empty ticks cost nothing.

Example: ticks of 1 ms, wheels of 20. A task for 450 ms waits in the third wheel's first bucket [400, 800),
then from 400 on in the second wheel's bucket [440, 460), then from 440 on in the bucket of 450.

Source: org.apache.kafka.server.util.timer SystemTimer, TimingWheel and TimerTaskList, 4.0;
Varghese and Lauck, Hashed and Hierarchical Timing Wheels (SOSP 1987).
"""

from __future__ import annotations

import heapq
from typing import Final, Generic, TypeVar

import attrs

from broker.errors import UsageError
from broker.units import DurationMs, TimeMs

Task = TypeVar("Task")

WHEEL_SIZE: Final = 20
"""Buckets of a wheel; Kafka's SystemTimer."""
TICK_MS: Final = DurationMs(1)
"""The finest tick; Kafka's SystemTimer."""


@attrs.define(eq=False)
class TimerEntry(Generic[Task]):
    """Hold a task in a timer; `cancel` removes the task."""

    task: Task
    expiration_ms: int
    _bucket: _Bucket[Task] | None = None

    def cancel(self) -> bool:
        """Remove the task; return False if it has fired or was cancelled before."""
        if self._bucket is None:
            return False
        del self._bucket.entries[id(self)]
        self._bucket = None
        return True

    def put(self, bucket: _Bucket[Task]) -> None:
        """Move the entry to `bucket`."""
        bucket.entries[id(self)] = self
        self._bucket = bucket


@attrs.define(eq=False)
class _Bucket(Generic[Task]):
    expiration_ms: int = -1
    entries: dict[int, TimerEntry[Task]] = attrs.field(factory=dict)

    def take_all(self) -> list[TimerEntry[Task]]:
        taken = list(self.entries.values())
        for entry in taken:
            entry.cancel()
        self.expiration_ms = -1
        return taken


class _Wheel(Generic[Task]):
    """One level of the wheel: buckets of one tick each, and the next level for later times."""

    def __init__(
        self, tick_ms: int, wheel_size: int, start_ms: int, used: list[tuple[int, int, _Bucket[Task]]]
    ) -> None:
        self.tick_ms = tick_ms
        self.interval_ms = tick_ms * wheel_size
        self.now_ms = start_ms - start_ms % tick_ms
        self.buckets: list[_Bucket[Task]] = [_Bucket() for _ in range(wheel_size)]
        self.used = used
        self.overflow: _Wheel[Task] | None = None

    def add(self, entry: TimerEntry[Task]) -> bool:
        """Store `entry`; return False when it is already due."""
        if entry.expiration_ms < self.now_ms + self.tick_ms:
            return False
        if entry.expiration_ms >= self.now_ms + self.interval_ms:
            if self.overflow is None:
                self.overflow = _Wheel(self.interval_ms, len(self.buckets), self.now_ms, self.used)
            return self.overflow.add(entry)
        tick = entry.expiration_ms // self.tick_ms
        bucket = self.buckets[tick % len(self.buckets)]
        entry.put(bucket)
        # Only a bucket that is new in this round enters the queue (Kafka's DelayQueue): one entry per bucket, not per
        # task.
        if bucket.expiration_ms != tick * self.tick_ms:
            bucket.expiration_ms = tick * self.tick_ms
            heapq.heappush(self.used, (bucket.expiration_ms, id(bucket), bucket))
        return True

    def advance(self, now_ms: int) -> None:
        """Advance this level and those above it to `now_ms`."""
        if now_ms >= self.now_ms + self.tick_ms:
            self.now_ms = now_ms - now_ms % self.tick_ms
            if self.overflow is not None:
                self.overflow.advance(self.now_ms)


class Timer(Generic[Task]):
    """Hold tasks until their expiration time; adding and cancelling are O(1) in the number of tasks."""

    def __init__(self, *, start_ms: TimeMs, tick_ms: DurationMs = TICK_MS, wheel_size: int = WHEEL_SIZE) -> None:
        if tick_ms < 1 or wheel_size < 2:
            raise UsageError(f"a wheel of {wheel_size} ticks of {tick_ms} ms does not turn; 2 of 1 ms are the least")
        self._used: list[tuple[int, int, _Bucket[Task]]] = []
        self._wheel: _Wheel[Task] = _Wheel(tick_ms, wheel_size, start_ms, self._used)
        self._now_ms = int(start_ms)

    def add(self, task: Task, expiration_ms: TimeMs) -> TimerEntry[Task] | None:
        """Store `task` until `expiration_ms`; return None if that time has passed, and the caller runs the task."""
        entry = TimerEntry(task, expiration_ms)
        return entry if self._wheel.add(entry) else None

    def advance(self, now_ms: TimeMs) -> list[Task]:
        """Move the clock and return the due tasks in order; raise UsageError if time goes back."""
        if now_ms < self._now_ms:
            raise UsageError(f"a timer at {self._now_ms} ms cannot go back to {now_ms} ms")
        self._now_ms = now_ms
        due: list[Task] = []
        while self._used and self._used[0][0] <= now_ms:
            expiration_ms, _, bucket = heapq.heappop(self._used)
            self._wheel.advance(expiration_ms)
            due.extend(entry.task for entry in bucket.take_all() if not self._wheel.add(entry))
        self._wheel.advance(now_ms)
        return due

    def next_stop_ms(self) -> TimeMs | None:
        """Return the time at which a task or a bucket is next due; None when the timer is empty."""
        while self._used and not self._used[0][2].entries:
            _, _, bucket = heapq.heappop(self._used)
            bucket.expiration_ms = -1
        return TimeMs(self._used[0][0]) if self._used else None

    def __len__(self) -> int:
        """Return the number of tasks stored. Cost: linear in the buckets in use."""
        return sum(len(bucket.entries) for _, _, bucket in self._used)
