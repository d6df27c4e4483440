"""Names that a coordinator makes up: shaped as Kafka's random UUIDs, drawn from the source handed in."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from broker.entropy import RandomSource

_CUTS: Final = (0, 8, 12, 16, 20, 32)


def random_uuid(entropy: RandomSource) -> str:
    """Return 32 random hexadecimal digits, grouped as those of a UUID."""
    digits = "".join(f"{entropy.next_int() & 0xFFFFFFFF:08x}" for _ in range(4))
    return "-".join(digits[start:end] for start, end in pairwise(_CUTS))
