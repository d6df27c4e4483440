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
KIND_BITS: Final = 3


def numbers(seed: int) -> Iterator[int]:
    """Yield numbers of 62 random bits for ever."""
    generator = np.random.default_rng(seed)
    while True:
        yield from generator.integers(0, 2**62, DRAWS_AT_ONCE).tolist()


def mutated(seeds: Sequence[bytes], count: int, seed: int) -> Iterator[bytearray]:
    """Yield `count` damaged inputs."""
    drawn = numbers(seed)
    for _ in range(count):
        number, which = divmod(next(drawn), len(seeds))
        data = bytearray(seeds[which])
        for _ in range(1 + number % 4):
            _change(data, next(drawn), seeds)
        yield data


def _change(data: bytearray, number: int, seeds: Sequence[bytes]) -> None:
    """Damage `data` once; `number` says how and where, from its lowest bits up."""
    kind, number = number % (1 << KIND_BITS), number >> KIND_BITS
    if not data:
        data += seeds[number % len(seeds)]
        return
    number, at = divmod(number, len(data))
    if kind == 0:
        data[at] ^= 1 << number % 8
    elif kind == 1:
        data[at] = number % 256
    elif kind == 2:
        number, which = divmod(number, len(WIDTHS))
        width = WIDTHS[which]
        data[at : at + width] = (EDGES[number % len(EDGES)] % (1 << 8 * width)).to_bytes(width, "big")
    elif kind == 3:
        del data[at : at + 1 + number % 16]
    elif kind == 4:
        data[at:at] = data[at : at + 1 + number % 64]
    elif kind == 5:
        del data[at:]
    elif kind == 6:
        end = min(at + 1 + number % 32, len(data))
        data[at:end] = bytes(end - at)
    else:
        number, which = divmod(number, len(seeds))
        other = seeds[which]
        data[at:] = other[number % len(other) if other else 0 :]
