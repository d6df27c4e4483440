"""Compute the two checksums of a log: CRC-32C over magic-2 batches, plain CRC-32 over older messages.

Source: org.apache.kafka.common.utils.Crc32C and java.util.zip.CRC32; RFC 3720 for the Castagnoli polynomial.
"""

from __future__ import annotations

import zlib
from typing import Final, TypeAlias

import crc32c as _wheel

BytesLike: TypeAlias = bytes | bytearray | memoryview
"""Bytes that are read and not kept; a memoryview is of single bytes."""


crc32c: Final = _wheel.crc32c
"""Return the CRC-32C (Castagnoli) of bytes, unsigned; a second number is that of the bytes that stand before them."""


def crc32(data: BytesLike) -> int:
    """Return the CRC-32 (IEEE) of `data` as an unsigned 32-bit number."""
    return zlib.crc32(data)
