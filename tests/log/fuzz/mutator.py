"""Damaged inputs from sound ones, the same for the same seed: a few microseconds each.

What it decides: how an input is damaged. One to four changes: a bit, a byte, a number of 2, 4 or 8 bytes at the edge of
its range, a piece cut out, doubled, moved or filled with zeros, the end torn off, two inputs spliced.

Constraints: no more than twice the size of the largest sound input comes out. Numbers are drawn thousands at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

EDGES: Final = (0, 1, -1, 2**7 - 1, -(2**7), 2**15 - 1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 13, 14, 48, 49, 61)
WIDTHS: Final = (2, 4, 8)
DRAWS_AT_ONCE: Final = 1 << 14
KIND_COUNT: Final = 8


class Draws:
    """Numbers from 0 to below a bound, drawn from a seeded stream."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.drawn: list[int] = []

    def below(self, bound: int) -> int:
        """Return a number from 0 to `bound` - 1; 0 for no bound."""
        if not self.drawn:
            self.drawn = self.generator.integers(0, 2**62, DRAWS_AT_ONCE).tolist()
        return self.drawn.pop() % bound if bound else 0


def mutated(seeds: Sequence[bytes], count: int, seed: int) -> Iterator[bytearray]:
    """Yield `count` damaged inputs."""
    draws = Draws(seed)
    for _ in range(count):
        data = bytearray(seeds[draws.below(len(seeds))])
        for _ in range(1 + draws.below(4)):
            _change(data, draws, seeds)
        yield data


def _change(data: bytearray, draws: Draws, seeds: Sequence[bytes]) -> None:
    kind = draws.below(KIND_COUNT)
    at = draws.below(len(data))
    if not data:
        data += seeds[draws.below(len(seeds))]
    elif kind == 0:
        data[at] ^= 1 << draws.below(8)
    elif kind == 1:
        data[at] = draws.below(256)
    elif kind == 2:
        width = WIDTHS[draws.below(3)]
        edge = EDGES[draws.below(len(EDGES))] % (1 << 8 * width)
        data[at : at + width] = edge.to_bytes(width, "big")
    elif kind == 3:
        del data[at : at + 1 + draws.below(16)]
    elif kind == 4:
        data[at:at] = data[at : at + 1 + draws.below(64)]
    elif kind == 5:
        del data[at:]
    elif kind == 6:
        size = 1 + draws.below(32)
        data[at : at + size] = bytes(len(data[at : at + size]))
    else:
        other = seeds[draws.below(len(seeds))]
        data[at:] = other[draws.below(len(other)) :]
