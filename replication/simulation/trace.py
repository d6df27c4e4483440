"""What is told of a run: one line a change of state, and a digest of everything that happened.
 It decides what counts as the same history: the digest covers each delivered message with its time, receiver and
type, and every line. Two runs of equal digests went the same way.

Constraints: only whole numbers and text are hashed, never Python's own hash; so the digest is the same in every
process.

Example: `    4210 ms  broker 2 dies`.
"""

from __future__ import annotations

import hashlib
import struct
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from typing import Final

from broker.units import TimeMs

_BLOCK: Final = 4_096
"""So many events are hashed at a time."""

Tell = Callable[[str], None]


def silent(line: str) -> None:
    """Tell nobody."""


class Trace:
    """Keeps the lines, hands each to `tell`, and folds everything into a digest."""

    def __init__(self, tell: Tell = silent) -> None:
        self.lines: list[str] = []
        self._tell = tell
        self._hash = hashlib.blake2b(digest_size=16)
        self._events: list[int] = []
        self._hashed_count = 0
        self._types: defaultdict[type, int] = defaultdict(count().__next__)
        """Types are numbered as they first occur."""

    def line(self, at_ms: TimeMs, text: str) -> None:
        """Note a change of state."""
        line = f"{at_ms:>9} ms  {text}"
        self.lines.append(line)
        self._tell(line)

    def event(self, at_ms: int, node: int, message_type: type) -> None:
        """Fold a delivered message in."""
        events = self._events
        events.append(at_ms << 20 ^ node << 6 ^ self._types[message_type])
        if len(events) == _BLOCK:
            self._hash.update(_as_bytes(events))
            self._hashed_count += _BLOCK
            events.clear()

    @property
    def event_count(self) -> int:
        """How many messages were delivered."""
        return self._hashed_count + len(self._events)

    @property
    def digest(self) -> str:
        """What the history comes to, in 32 hexadecimal digits."""
        told = self._hash.copy()
        told.update(_as_bytes(self._events))
        for line in self.lines:
            told.update(line.encode())
            told.update(b"\n")
        return told.hexdigest()


def _as_bytes(numbers: list[int]) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)
