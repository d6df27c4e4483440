"""Draw how many partitions each two of many brokers share, as a PNG of one dot a pair in seven steps.

Beyond `DOTS_MAX` brokers a side a dot stands for several brokers and shows their mean. The bytes depend on the numbers
alone: the pixels are stored, not compressed, as compressors differ from version to version.

>>> pair_image(np.array([[0, 3], [3, 0]]))[:22]
'data:image/png;base64,'

Source: PNG specification (third edition), 11.2 (chunks).
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

DOTS_MAX: Final = 120
LEVEL_COUNT: Final = 7
_COLOUR: Final = bytes((70, 110, 160))
"""The colour that the style sheet gives to heat; its opacity grows with the level."""
_OPACITIES: Final = bytes((0, 26, 58, 96, 138, 186, 240))


def levels_of(matrix: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return uint8 levels: 0 for no shared partition, 1 to 6 in equal steps up to the largest value.

    >>> levels_of(np.array([[0.0, 1.0], [3.0, 6.0]])).tolist()
    [[0, 1], [3, 6]]
    """
    most = float(matrix.max(initial=0.0))
    if most == 0:
        return np.zeros(matrix.shape, dtype=np.uint8)
    return np.ceil(matrix / most * (LEVEL_COUNT - 1) - 1e-9).astype(np.uint8)


def brokers_per_dot(broker_count: int) -> int:
    """Return how many brokers a row of dots stands for."""
    return -(-broker_count // DOTS_MAX)


def pair_image(matrix: NDArray[np.int64]) -> str:
    """Return the image of int64[B, B] shared partitions, with a diagonal of 0, as a data URI."""
    step = brokers_per_dot(len(matrix))
    starts = np.arange(0, len(matrix), step)
    sums = np.add.reduceat(np.add.reduceat(matrix.astype(np.float64), starts, axis=0), starts, axis=1)
    sizes = np.diff(np.append(starts, len(matrix)))
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    levels = levels_of(sums / np.maximum(pairs, 1))
    pixels = b"".join(b"\0" + row.tobytes() for row in levels)
    side = len(starts)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 3, 0, 0, 0)),
        (b"PLTE", _COLOUR * LEVEL_COUNT),
        (b"tRNS", _OPACITIES),
        (b"IDAT", zlib.compress(pixels, 0)),
        (b"IEND", b""),
    )
    png = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
