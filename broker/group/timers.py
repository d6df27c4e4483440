"""Keep named timers, each with an action that runs unless the timer is cancelled.

Constraints: a name has one time; setting it again replaces the former. Timers that are due together fire in the order
of their times, then of their setting.

Source: org.apache.kafka.coordinator.common.runtime.CoordinatorTimer, 4.0.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from broker.units import DurationMs, TimeMs


class Timers:
    """Keep timers by name, each with its action; setting and cancelling cost O(log timers)."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str]] = []
        self._set: dict[str, tuple[int, Callable[[], None]]] = {}
        self._count = 0

    def set(self, name: str, now_ms: TimeMs, delay_ms: DurationMs, action: Callable[[], None]) -> None:
        """Set the timer `name` to fire `delay_ms` after `now_ms`, replacing an earlier setting."""
        self._count += 1
        self._set[name] = (self._count, action)
        heapq.heappush(self._heap, (now_ms + delay_ms, self._count, name))

    def cancel(self, name: str) -> None:
        """Cancel the timer `name`; do nothing if it is not set."""
        self._set.pop(name, None)

    def next_ms(self) -> TimeMs | None:
        """Return the time at which the next timer fires; None when none is set."""
        while self._heap and not self._is_live(self._heap[0]):
            heapq.heappop(self._heap)
        return TimeMs(self._heap[0][0]) if self._heap else None

    def due(self, now_ms: TimeMs) -> Iterator[tuple[TimeMs, Callable[[], None]]]:
        """Yield (time, action) of every timer due by `now_ms`, also of timers that the actions set.

        Each timer is unset before its action is yielded.
        """
        while (next_ms := self.next_ms()) is not None and next_ms <= now_ms:
            _, _, name = heapq.heappop(self._heap)
            yield next_ms, self._set.pop(name)[1]

    def __contains__(self, name: object) -> bool:
        return name in self._set

    def _is_live(self, entry: tuple[int, int, str]) -> bool:
        _, number, name = entry
        return name in self._set and self._set[name][0] == number
