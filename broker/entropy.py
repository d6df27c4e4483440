"""Pass randomness as a parameter: a protocol, SplitMix64, and an exact reimplementation of java.util.Random.

    >>> JavaRandom(42).next_int()
    -1170105035
    >>> dice = JavaRandom(42)
    >>> [dice.next_int_bound(6) for _ in range(8)]
    [2, 3, 0, 2, 0, 1, 5, 2]
    >>> cards = [1, 2, 3, 4, 5]
    >>> JavaRandom(42).shuffle(cards)
    >>> cards
    [2, 3, 4, 5, 1]
    >>> derive(7, 0) == derive(7, 0), derive(7, 0) == derive(7, 1)
    (True, False)

Source: the specification of java.util.Random and java.util.Collections.shuffle (Java 17);
Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (OOPSLA 2014).
"""

from __future__ import annotations

from typing import Final, Protocol

from broker.errors import UsageError
from broker.ids import INT64_MAX

_MASK_48: Final = (1 << 48) - 1
_MASK_64: Final = (1 << 64) - 1
_INT32_MAX: Final = (1 << 31) - 1

JAVA_MULTIPLIER: Final = 0x5DEECE66D
"""Multiplies the state of java.util.Random at each step; also scrambles its seed."""
JAVA_INCREMENT: Final = 0xB
"""Added to the state of java.util.Random at each step."""

_GOLDEN_GAMMA: Final = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, odd: visits every 64-bit state.


class RandomSource(Protocol):
    """Define the interface of a random generator; the same seed gives the same numbers on every machine."""

    def next_int(self) -> int:
        """Return a signed 32-bit number."""
        ...

    def next_int_bound(self, bound: int) -> int:
        """Return a number in 0..bound-1; raise UsageError unless `bound` is 1..2147483647."""
        ...

    def shuffle(self, items: list[int]) -> None:
        """Permute `items` in place."""
        ...


class SplitMix64:
    """Generate random numbers where Kafka draws none (SplitMix64); the seed is any Java long."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = _checked_long(seed, "seed") & _MASK_64

    def next_int(self) -> int:
        """Return a signed 32-bit number."""
        # `_next_64` spelt out: a simulation draws once a message.
        state = self._state = (self._state + _GOLDEN_GAMMA) & _MASK_64
        value = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & _MASK_64
        value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _MASK_64
        value = (value ^ value >> 31) >> 32
        return value - (1 << 32) if value > _INT32_MAX else value

    def next_int_bound(self, bound: int) -> int:
        """Return a number in 0..bound-1, uniformly; raise UsageError unless `bound` is 1..2147483647."""
        _check_bound(bound)
        # The last, incomplete run of `bound` values would favour the small ones: draw again.
        complete = (1 << 64) - (1 << 64) % bound
        while True:
            drawn = self._next_64()
            if drawn < complete:
                return drawn % bound

    def shuffle(self, items: list[int]) -> None:
        """Permute `items` in place; every order is equally likely. Cost: one draw per item."""
        _shuffle(items, self)

    def _next_64(self) -> int:
        self._state = (self._state + _GOLDEN_GAMMA) & _MASK_64
        return _mix_64(self._state)


class JavaRandom:
    """Generate the numbers of `new java.util.Random(seed)`, call by call.

    `state` is the 48-bit state, to be read and set by compiled kernels that go on drawing
    from this stream and hand it back.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = (_checked_long(seed, "seed") ^ JAVA_MULTIPLIER) & _MASK_48

    @property
    def state(self) -> int:
        """Return the generator's 48-bit state; equal states give equal streams."""
        return self._state

    @state.setter
    def state(self, value: int) -> None:
        if not 0 <= value <= _MASK_48:
            raise UsageError(f"generator state is {value}; allowed are whole numbers from 0 to {_MASK_48}")
        self._state = value

    def next_int(self) -> int:
        """Return a signed 32-bit number, as `nextInt()` does."""
        return _signed_32(self._next_bits(32))

    def next_int_bound(self, bound: int) -> int:
        """Return a number in 0..bound-1, as `nextInt(bound)` does; raise UsageError unless `bound` is 1..2147483647."""
        _check_bound(bound)
        drawn = self._next_bits(31)
        if bound & (bound - 1) == 0:
            # The high bits of such a generator are the better ones.
            return (bound * drawn) >> 31
        while True:
            value = drawn % bound
            # Java sees an int overflow here: the run of `bound` values that holds `drawn` is cut off at 2^31.
            if drawn - value + (bound - 1) <= _INT32_MAX:
                return value
            drawn = self._next_bits(31)

    def shuffle(self, items: list[int]) -> None:
        """Permute `items` in place, as `Collections.shuffle(items, random)` does."""
        _shuffle(items, self)

    def _next_bits(self, count: int) -> int:
        self._state = (self._state * JAVA_MULTIPLIER + JAVA_INCREMENT) & _MASK_48
        return self._state >> (48 - count)


def derive(seed: int, *keys: int) -> int:
    """Return a seed in 0..2^63-1 that depends only on `seed` and on `keys` in their order.

    Neighbouring seeds and keys give unrelated results: derive(seed, k) for k = 0, 1, … seeds as
    many independent generators. Raises UsageError unless all are Java longs.
    """
    mixed = _mix_64((_checked_long(seed, "seed") + _GOLDEN_GAMMA) & _MASK_64)
    for key in keys:
        # Mixed apart first, so that no sum of seed and key can meet another pair's.
        scrambled = _mix_64((_checked_long(key, "key") + _GOLDEN_GAMMA) & _MASK_64)
        mixed = _mix_64((mixed + _GOLDEN_GAMMA ^ scrambled) & _MASK_64)
    return mixed >> 1


def _mix_64(value: int) -> int:
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & _MASK_64
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & _MASK_64
    return value ^ value >> 31


def _shuffle(items: list[int], source: RandomSource) -> None:
    for count in range(len(items), 1, -1):
        other = source.next_int_bound(count)
        items[count - 1], items[other] = items[other], items[count - 1]


def _signed_32(bits: int) -> int:
    return bits - (1 << 32) if bits > _INT32_MAX else bits


def _check_bound(bound: int) -> None:
    if not 1 <= bound <= _INT32_MAX:
        raise UsageError(f"bound is {bound}; allowed are whole numbers from 1 to {_INT32_MAX}")


def _checked_long(value: int, name: str) -> int:
    if not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise UsageError(f"{name} is {value}; allowed are whole numbers from {-INT64_MAX - 1} to {INT64_MAX}")
    return value
