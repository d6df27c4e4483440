"""Chance as a parameter: the protocol, our own generator, and exact twins of Java's.

(being written)
"""

from __future__ import annotations

from typing import Protocol


class RandomSource(Protocol):
    """A stream of whole numbers; the same seed gives the same stream on every machine."""

    def next_int(self) -> int:
        """Return a signed 32-bit number."""
        ...

    def next_int_bound(self, bound: int) -> int:
        """Return a number in 0..bound-1; raises UsageError unless bound is 1 or more."""
        ...

    def shuffle(self, items: list[int]) -> None:
        """Permute `items` in place."""
        ...
