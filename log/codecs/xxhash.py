"""Compute XXH32 with seed 0, the checksum inside LZ4 frames.

What it decides: whether an LZ4 frame's descriptor and, where the frame has them, its blocks are intact. Kafka writes
frames with a descriptor checksum only, but checks blocks' checksums where another client wrote them.

How: four lanes of 32 bits take 16 bytes a step, then words of 4 bytes, then single bytes; an avalanche ends it.
Descriptors are hashed by the plain Python function (`xxh32.__wrapped__`), as they have at most 14 bytes.

Example: the specification's own values, of no bytes and of b"a".

    >>> import numpy as np
    >>> [hex(xxh32(np.frombuffer(data, np.uint8))) for data in (b"", b"a")]
    ['0x2cc5d05', '0x550d7456']

Source: the xxHash specification, Yann Collet, 0.1.1.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broker.compiled import compiled_with

ByteArray: TypeAlias = NDArray[np.uint8]

MASK: Final = 0xFFFF_FFFF
PRIME_1: Final = 2654435761
PRIME_2: Final = 2246822519
PRIME_3: Final = 3266489917
PRIME_4: Final = 668265263
PRIME_5: Final = 374761393


def rotate(value: int, bits: int) -> int:
    """Return a 32-bit word rotated left by some bits."""
    return ((value << bits) | (value >> (32 - bits))) & MASK


def word(data: ByteArray, position: int) -> int:
    """Return the four little-endian bytes from `position` on as a uint32."""
    return (
        int(data[position])
        | int(data[position + 1]) << 8
        | int(data[position + 2]) << 16
        | int(data[position + 3]) << 24
    )


def stripe(lane: int, value: int) -> int:
    """Return a lane of XXH32 after mixing in one word, computed within int64."""
    return times(rotate((lane + times(value, PRIME_2)) & MASK, 13), PRIME_1)


def times(left: int, right: int) -> int:
    """Return the product modulo 2**32, computed within 63 bits."""
    return ((left & 0xFFFF) * right + ((((left >> 16) * right) & 0xFFFF) << 16)) & MASK


@compiled_with(rotate, word, stripe, times, allocates=False)
def xxh32(data: ByteArray) -> int:
    """Return XXH32 of uint8[N] with seed 0."""
    size = len(data)
    position = 0
    if size >= 16:
        one, two, three, four = (PRIME_1 + PRIME_2) & MASK, PRIME_2, 0, (MASK + 1 - PRIME_1) & MASK
        while position + 16 <= size:
            one = stripe(one, word(data, position))
            two = stripe(two, word(data, position + 4))
            three = stripe(three, word(data, position + 8))
            four = stripe(four, word(data, position + 12))
            position += 16
        total = (rotate(one, 1) + rotate(two, 7) + rotate(three, 12) + rotate(four, 18)) & MASK
    else:
        total = PRIME_5
    total = (total + size) & MASK
    while position + 4 <= size:
        total = times(rotate((total + times(word(data, position), PRIME_3)) & MASK, 17), PRIME_4)
        position += 4
    while position < size:
        total = times(rotate((total + times(int(data[position]), PRIME_5)) & MASK, 11), PRIME_1)
        position += 1
    total = times(total ^ (total >> 15), PRIME_2)
    total = times(total ^ (total >> 13), PRIME_3)
    return total ^ (total >> 16)
