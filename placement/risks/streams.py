"""Draw random words, chances and waiting times from SplitMix64, inside compiled loops.

What it decides: the plain functions that kernels compile into themselves. A stream is an array of one word, its state.

Example:
    >>> stream = np.array([7], dtype=np.uint64)
    >>> with np.errstate(over="ignore"):
    ...     0.0 < next_chance(stream) < 1.0
    True

Source: `broker.entropy.SplitMix64`, to which a test holds `next_word` equal.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

WordArray: TypeAlias = NDArray[np.uint64]


def next_word(stream: WordArray) -> np.uint64:
    """Return the next 64 random bits."""
    stream[0] += np.uint64(0x9E3779B97F4A7C15)
    word = stream[0]
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.uint64 = word ^ (word >> np.uint64(31))
    return mixed


def next_chance(stream: WordArray) -> float:
    """Return a number between 0 and 1, neither included."""
    return (float(next_word(stream) >> np.uint64(11)) + 0.5) * 1.1102230246251565e-16


def next_below(stream: WordArray, bound: int) -> int:
    """Return a number in 0..bound-1; `bound` is below 2^31, so that none is likelier by more than one part in 2^32."""
    return int(((next_word(stream) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


def next_wait(stream: WordArray, mean: float) -> float:
    """Return an exponentially distributed time with this mean."""
    return -mean * math.log(next_chance(stream))
