"""Compute murmur2 over a column of keys, compiled; `placement.producer.keys.murmur2` is the readable twin.

Source: org.apache.kafka.common.utils.Utils.murmur2, 4.0.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from broker.cluster import Int32Array
from broker.compiled import compiled

MURMUR_SEED: Final = 0x9747B28C
MURMUR_MULTIPLIER: Final = 0x5BD1E995
MURMUR_SHIFT: Final = 24


@compiled
def murmur2_columns(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], hashes: Int32Array) -> None:
    """Write the murmur2 of key i, `data[offsets[i]:offsets[i + 1]]`, to `hashes[i]`.

    The offsets must rise within the data; the caller has seen to that.
    """
    multiplier = np.uint32(MURMUR_MULTIPLIER)
    for index in range(len(hashes)):
        start, end = offsets[index], offsets[index + 1]
        state = np.uint32(MURMUR_SEED) ^ np.uint32(end - start)
        position = start
        while position + 4 <= end:
            word = np.uint32(data[position]) | np.uint32(data[position + 1]) << np.uint32(8)
            word |= np.uint32(data[position + 2]) << np.uint32(16) | np.uint32(data[position + 3]) << np.uint32(24)
            word = np.uint32(word * multiplier)
            word = np.uint32((word ^ word >> np.uint32(MURMUR_SHIFT)) * multiplier)
            state = np.uint32(np.uint32(state * multiplier) ^ word)
            position += 4
        if position < end:
            shift = np.uint32(0)
            while position < end:
                state ^= np.uint32(data[position]) << shift
                shift += np.uint32(8)
                position += 1
            state = np.uint32(state * multiplier)
        state = np.uint32((state ^ state >> np.uint32(13)) * multiplier)
        hashes[index] = np.int32(state ^ state >> np.uint32(15))
