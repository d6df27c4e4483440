"""Write one line per state change of a run, and compute a digest of everything that happened.

Only whole numbers and text are hashed, never Python's own hash; so the digest is the same in every process.
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
    """Discard a line."""


class Trace:
    """Collect the lines, pass each to `on_line`, and hash everything into a digest."""

    def __init__(self, on_line: LineSink = discard_line) -> None:
        self.lines: list[str] = []
        self._on_line = on_line
        self._hash = hashlib.blake2b(digest_size=16)
        self.kinds: defaultdict[type, int] = defaultdict(count().__next__)
        """The numbers of the message types, in the order in which they first occur."""
        self.events: list[int] = []
        """Delivered messages that are not hashed yet: `at_ms << 20 ^ node << 6 ^ kind`."""
        self._folded_count = 0

    def line(self, at_ms: TimeMs, text: str) -> None:
        """Add a line for a state change."""
        line = f"{at_ms:>9} ms  {text}"
        self.lines.append(line)
        self._on_line(line)

    def fold(self) -> None:
        """Hash the messages delivered since the last call; call it now and then, as they take memory."""
        if self.events:
            self._hash.update(_as_bytes(self.events))
            self._folded_count += len(self.events)
            self.events.clear()

    @property
    def event_count(self) -> int:
        """Return the number of messages delivered."""
        return self._folded_count + len(self.events)

    @property
    def digest(self) -> str:
        """Return the digest of the history, 32 hexadecimal digits."""
        told = self._hash.copy()
        told.update(_as_bytes(self.events))
        for line in self.lines:
            told.update(line.encode())
            told.update(b"\n")
        return told.hexdigest()


def _as_bytes(numbers: list[int]) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)
