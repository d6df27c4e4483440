"""Draw waiting times from an exponential distribution, using integer arithmetic only.

What it decides: how long the next thing takes. No logarithm is taken, so that the same seed gives the same times on
every machine, whatever its mathematical library.

How: draw numbers for as long as each is below the one before. The length of that falling row is odd with
probability e^-x, where x is the first number as a fraction; so a first number whose row is odd is the
fraction of an exponential draw, and each row of even length adds one whole mean. About four draws a time.

Example: ten thousand waiting times of mean 1,000; of an exponential distribution, one in e^3 = 20 is above three means:

    >>> from broker.entropy import SplitMix64
    >>> entropy = SplitMix64(1)
    >>> times = [exponential(entropy, 1_000) for _ in range(10_000)]
    >>> sum(times) // len(times)
    1008
    >>> sum(time > 3_000 for time in times)
    505

Source: J. von Neumann, Various techniques used in connection with random digits (1951).
"""

from __future__ import annotations

from typing import Final

from broker.entropy import RandomSource

_MASK_32: Final = (1 << 32) - 1
_WHOLE_MAX: Final = 64  # e^-64: never met; it bounds the loop.


def exponential(entropy: RandomSource, mean: int) -> int:
    """Return a whole number >= 0, drawn from the exponential distribution with mean `mean`."""
    for whole in range(_WHOLE_MAX):
        first = last = entropy.next_int() & _MASK_32
        is_odd = True
        while (number := entropy.next_int() & _MASK_32) < last:
            last = number
            is_odd = not is_odd
        if is_odd:
            return ((whole << 32) | first) * mean >> 32
    return _WHOLE_MAX * mean
