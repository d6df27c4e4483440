"""What is told of a run: one line a change of state, and a digest of everything that happened.
 It decides what counts as the same history: the digest covers each delivered message with its time, receiver and
type, and every line. Two runs of equal digests went the same way.

Constraints: only whole numbers and text are hashed, never Python's own hash; so the digest is the same in every
process.

Example: `    4210 ms  broker 2 dies`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from broker.units import TimeMs

_MASK: Final = (1 << 64) - 1
_PRIME: Final = 0x100000001B3
"""Of the 64-bit FNV hash: multiplying by it spreads what was added."""

Tell = Callable[[str], None]


def silent(line: str) -> None:
    """Tell nobody."""


class Trace:
    """Keeps the lines, hands each to `tell`, and folds everything into a digest."""

    def __init__(self, tell: Tell = silent) -> None:
        self.lines: list[str] = []
        self._tell = tell
        self._folded = 0xCBF29CE484222325
        self._types: dict[str, int] = {}

    def line(self, at_ms: TimeMs, text: str) -> None:
        """Note a change of state."""
        line = f"{at_ms:>9} ms  {text}"
        self.lines.append(line)
        self._tell(line)

    def event(self, at_ms: int, node: int, type_name: str) -> None:
        """Fold a delivered message in."""
        kind = self._types.get(type_name)
        if kind is None:
            kind = self._types[type_name] = len(self._types)
        self._folded = ((self._folded ^ (at_ms << 20) ^ (node << 6) ^ kind) * _PRIME) & _MASK

    @property
    def digest(self) -> str:
        """What the history comes to, in 32 hexadecimal digits."""
        told = hashlib.blake2b(digest_size=16)
        told.update(self._folded.to_bytes(8, "big"))
        for line in self.lines:
            told.update(line.encode())
            told.update(b"\n")
        return told.hexdigest()
