"""Generate member ids in the form of Kafka's random UUIDs, from a RandomSource."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from broker.entropy import RandomSource

_CUTS: Final = (0, 8, 12, 16, 20, 32)


def random_uuid(entropy: RandomSource) -> str:
    """Return 32 random hexadecimal digits, grouped as in a UUID."""
    digits = "".join(f"{entropy.next_int() & 0xFFFFFFFF:08x}" for _ in range(4))
    return "-".join(digits[start:end] for start, end in pairwise(_CUTS))
