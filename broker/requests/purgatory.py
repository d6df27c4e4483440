"""Hold requests in the purgatory until their condition is met or their time expires.

What it decides: when a delayed operation completes: a produce with acks=all when its records are committed, a fetch
when enough bytes are there, each at the latest when its time is over.

How:
Watch lists by key hold the operations; a heap holds their times, in the order of their arrival where
equal. An operation that completed through one key stays on its other lists until they are walked, or
until more than `purge_interval` such leftovers are estimated: then all lists are swept.

Example: a fetch of partitions p and q is on two lists; bytes arriving at p complete it, and the entry
under q is dropped when q is next looked at.

Left out: Kafka's hierarchical timing wheel, which fires the same operations at the same milliseconds.

Source: org.apache.kafka.server.purgatory DelayedOperationPurgatory and DelayedOperation, 4.0.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence
from typing import Final, Generic, Protocol, TypeVar

import attrs

from broker.errors import UsageError
from broker.units import DurationMs, TimeMs

Key = TypeVar("Key", bound=Hashable)

PURGE_INTERVAL: Final = 1000
"""Leftovers that may stay on watch lists; `producer.purgatory.purge.interval.requests` and its likes."""


class DelayedOperation(Protocol):
    """Define the interface of a delayed operation: its condition, and its action at the end."""

    def can_complete(self) -> bool:
        """Return whether the operation's condition is met."""
        ...

    def on_complete(self, *, expired: bool) -> None:
        """Complete the operation, once; `expired` is true if its time ran out."""
        ...


@attrs.define(eq=False)
class _Waiting:
    operation: DelayedOperation
    is_completed: bool = False

    def complete(self, *, expired: bool) -> None:
        assert not self.is_completed
        self.is_completed = True
        self.operation.on_complete(expired=expired)

    def try_complete(self) -> bool:
        if self.is_completed or not self.operation.can_complete():
            return False
        self.complete(expired=False)
        return True


class Purgatory(Generic[Key]):
    """Hold delayed operations, each watched under keys and with an expiry time."""

    def __init__(self, *, start_ms: TimeMs, purge_interval: int = PURGE_INTERVAL) -> None:
        self._now_ms = start_ms
        self._times: list[tuple[int, int, _Waiting]] = []
        self._added_count = 0
        self._watched: dict[Key, list[_Waiting]] = {}
        self._purge_interval = purge_interval
        self._delayed_count = 0
        self._estimated_count = 0

    @property
    def delayed_count(self) -> int:
        """Return the number of delayed operations (Kafka's metric NumDelayedOperations)."""
        return self._delayed_count

    @property
    def watched_count(self) -> int:
        """Return the number of watched entries with the completed ones (PurgatorySize). Cost: linear in keys."""
        return sum(map(len, self._watched.values()))

    def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Sequence[Key], *, now_ms: TimeMs, delay_ms: DurationMs
    ) -> bool:
        """Complete `operation` now if its condition is met; otherwise watch it under `keys` for at most `delay_ms`.

        Returns whether it completed now by its condition; without any delay it expires now, and the answer is False.
        """
        waiting = _Waiting(operation)
        if waiting.try_complete():
            return True
        for key in keys:
            self._watched.setdefault(key, []).append(waiting)
        # Watched first and tried once more: an event between the first try and the watching would otherwise be missed.
        self._estimated_count += bool(keys)
        if waiting.try_complete():
            return True
        if now_ms + delay_ms <= self._now_ms:
            waiting.complete(expired=True)
        else:
            self._added_count += 1
            heapq.heappush(self._times, (now_ms + delay_ms, self._added_count, waiting))
            self._delayed_count += 1
        return False

    def check_and_complete(self, key: Key) -> int:
        """Try the operations watched under `key`, in order of arrival, and return how many completed."""
        listed = self._watched.get(key, [])
        completed_count = sum(waiting.try_complete() for waiting in listed)
        self._delayed_count -= completed_count
        self._keep(key)
        return completed_count

    def advance(self, now_ms: TimeMs) -> int:
        """Move the clock, expire the operations whose time is over, and return how many expired.

        Raises UsageError if time goes back.
        """
        if now_ms < self._now_ms:
            raise UsageError(f"a purgatory at {self._now_ms} ms cannot go back to {now_ms} ms")
        self._now_ms = now_ms
        expired_count = 0
        while (stop_ms := self.next_stop_ms()) is not None and stop_ms <= now_ms:
            _, _, waiting = heapq.heappop(self._times)
            self._delayed_count -= 1
            expired_count += 1
            waiting.complete(expired=True)
        if self._estimated_count - self._delayed_count > self._purge_interval:
            self._estimated_count = self._delayed_count
            for key in list(self._watched):
                self._keep(key)
        return expired_count

    def next_stop_ms(self) -> TimeMs | None:
        """Return the time at which `advance` next has work; None if no operation waits."""
        while self._times and self._times[0][2].is_completed:
            heapq.heappop(self._times)
        return TimeMs(self._times[0][0]) if self._times else None

    def _keep(self, key: Key) -> None:
        """Drop the completed operations of `key`, and its watch list if that becomes empty."""
        left = [waiting for waiting in self._watched.get(key, []) if not waiting.is_completed]
        if left:
            self._watched[key] = left
        else:
            self._watched.pop(key, None)
