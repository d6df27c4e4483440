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

from broker.units import TimeMs

LineSink = Callable[[str], None]


def discard_line(line: str) -> None:
    """LineSink nobody."""


class Trace:
    """Keeps the lines, hands each to `on_line`, and folds everything into a digest."""

    def __init__(self, on_line: LineSink = discard_line) -> None:
        self.lines: list[str] = []
        self._on_line = on_line
        self._hash = hashlib.blake2b(digest_size=16)
        self.kinds: defaultdict[type, int] = defaultdict(count().__next__)
        """Numbers of the types of messages, given as they first occur."""
        self.events: list[int] = []
        """Delivered messages that are not folded in yet: `at_ms << 20 ^ node << 6 ^ kind`."""
        self._folded_count = 0

    def line(self, at_ms: TimeMs, text: str) -> None:
        """Note a change of state."""
        line = f"{at_ms:>9} ms  {text}"
        self.lines.append(line)
        self._on_line(line)

    def fold(self) -> None:
        """Fold in the messages delivered since the last call; to be called now and then, as they take room."""
        if self.events:
            self._hash.update(_as_bytes(self.events))
            self._folded_count += len(self.events)
            self.events.clear()

    @property
    def event_count(self) -> int:
        """How many messages were delivered."""
        return self._folded_count + len(self.events)

    @property
    def digest(self) -> str:
        """What the history comes to, in 32 hexadecimal digits."""
        told = self._hash.copy()
        told.update(_as_bytes(self.events))
        for line in self.lines:
            told.update(line.encode())
            told.update(b"\n")
        return told.hexdigest()


def _as_bytes(numbers: list[int]) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)
