"""Member ids are made of random bits that are used once."""

from __future__ import annotations

from broker.entropy import SplitMix64
from broker.group.members import random_uuid


def test_each_id_is_the_next_128_bits_in_the_form_of_a_uuid() -> None:
    same, entropy = SplitMix64(7), SplitMix64(7)
    digits = "".join(f"{same.next_int() % 2**32:08x}" for _ in range(8))
    for bits in (digits[:32], digits[32:]):
        assert random_uuid(entropy) == "-".join((bits[:8], bits[8:12], bits[12:16], bits[16:20], bits[20:]))
