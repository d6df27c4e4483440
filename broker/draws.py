"""Draw waiting times from an exponential distribution, using integer arithmetic only.

How: draw numbers for as long as each is below the one before. The length of that falling row is odd with
probability e^-x, where x is the first number as a fraction; so a first number whose row is odd is the
fraction of an exponential draw, and each row of even length adds one whole mean. About four draws a time.

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
