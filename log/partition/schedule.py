"""Schedule a log's later work: deleting files after a delay, flushing after a roll.

What it decides: nothing but the order: what is due first runs first, and of equal times what was asked for first.

Goals, most important first: no threads and no timers; whoever owns the log says what time it is, and everything due
by then is done.

Constraints: a task runs once. When one fails, the error reaches the caller, and the tasks after
it wait for the next run.

Example:

    >>> schedule = Schedule()
    >>> schedule.add(TimeMs(60_000), lambda now_ms: print("deleted at", now_ms))
    >>> schedule.run(TimeMs(59_999))
    >>> schedule.run(TimeMs(60_000))
    deleted at 60000

Left out: periodic work (retention, cleaning), which the owner of many logs decides on.

Source: org.apache.kafka.server.util.Scheduler, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TypeAlias

from broker.units import TimeMs

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
