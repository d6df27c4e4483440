"""Write and read zig-zag varints, which take as few bytes as a number needs.

Source: org.apache.kafka.common.utils.ByteUtils (readVarint, readVarlong, writeVarint, writeVarlong), 4.0.
"""

from __future__ import annotations

from typing import Final

from log.codecs.crc import BytesLike
from log.errors import InvalidRecordError

VARINT_BYTES_MAX: Final = 5  # 32 bits at seven bits a byte.
VARLONG_BYTES_MAX: Final = 10  # 64 bits at seven bits a byte.


def write_varint(out: bytearray, value: int) -> None:
    """Append `value`, an int32 or an int64, to `out` as a zig-zag varint."""
    rest = value << 1 if value >= 0 else ~(value << 1)
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def read_varint(data: BytesLike, position: int) -> tuple[int, int]:
    """Return (value, position after it) of the int32 at `position`; raise InvalidRecordError."""
    size = len(data)
    if position < size:  # Most numbers in records take one byte, sizes often two.
        low = data[position]
        if low < 0x80:
            return low >> 1 ^ -(low & 1), position + 1
        if position + 1 < size and (high := data[position + 1]) < 0x80:
            return (low & 0x7F | high << 7) >> 1 ^ -(low & 1), position + 2
    return _read(data, position, VARINT_BYTES_MAX, 0xFFFF_FFFF)


def read_varlong(data: BytesLike, position: int) -> tuple[int, int]:
    """Return (value, position after it) of the int64 at `position`; raise InvalidRecordError."""
    if position < len(data) and (byte := data[position]) < 0x80:
        return byte >> 1 ^ -(byte & 1), position + 1
    return _read(data, position, VARLONG_BYTES_MAX, 0xFFFF_FFFF_FFFF_FFFF)


def _read(data: BytesLike, position: int, bytes_max: int, mask: int) -> tuple[int, int]:
    value = 0
    for index in range(bytes_max):
        if position + index >= len(data):
            raise InvalidRecordError("a number runs past the end of the records", position=position)
        byte = data[position + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            value &= mask
            return value >> 1 ^ -(value & 1), position + index + 1
    raise InvalidRecordError(f"a number takes more than {bytes_max} bytes", position=position)
