"""Write and read snappy streams as Kafka does: raw snappy blocks, each after its length.

Source: org.xerial.snappy.{SnappyInputStream,SnappyOutputStream} 1.1.10.7, which Kafka 4.4 uses.
"""

from __future__ import annotations

import struct
from typing import Final

import cramjam

from log.errors import DecompressionError, ReadingLimitError

MAGIC: Final = b"\x82SNAPPY\x00"
HEADER: Final = MAGIC + struct.pack(">ii", 1, 1)
BLOCK_SIZE_BYTES: Final = 32_768
SIZE_VARINT_BYTES_MAX: Final = 5
VERSION_MIN: Final = 1
_SIZE: Final = struct.Struct(">i")


def compress_stream(data: bytes | memoryview) -> bytes:
    """Return `data` as one snappy stream."""
    parts = [HEADER]
    for start in range(0, len(data), BLOCK_SIZE_BYTES):
        packed = bytes(cramjam.snappy.compress_raw(data[start : start + BLOCK_SIZE_BYTES]))
        parts += (_SIZE.pack(len(packed)), packed)
    return b"".join(parts)


def decompress_stream(data: memoryview, *, bytes_max: int) -> bytes | bytearray:
    """Return the content of the snappy streams in `data`; raise DecompressionError."""
    if len(data) == 0:
        raise DecompressionError("snappy: nothing to decompress")
    if len(data) < len(HEADER) or bytes(data[: len(MAGIC)]) != MAGIC:
        return bytes(_decompress_block(data, 0, bytes_max))
    position = len(HEADER)  # Its versions are not looked at, unlike those of a header that follows.
    out = bytearray()
    while position + 4 <= len(data):  # Each turn reads at least four bytes.
        if bytes(data[position : position + 4]) == MAGIC[:4]:
            _check_header(data[position : position + len(HEADER)])
            position += len(HEADER)
            continue
        (size,) = _SIZE.unpack_from(data, position)
        position += 4
        if not 0 <= size <= len(data) - position:
            raise DecompressionError(f"snappy: a block of {size} bytes exceeds the stream")
        try:
            out += _decompress_block(data[position : position + size], len(out), bytes_max)
        except DecompressionError as error:
            raise type(error).after(len(out), error.what) from None
        position += size
    return out


def _check_header(header: memoryview) -> None:
    """Refuse what SnappyInputStream refuses of the header of a stream that follows another."""
    if len(header) < len(HEADER):
        raise DecompressionError("snappy: a second stream has half a header")
    (version,) = _SIZE.unpack_from(header, len(MAGIC))
    if bytes(header[: len(MAGIC)]) == MAGIC and version < VERSION_MIN:
        raise DecompressionError(f"snappy: a second stream has the version {version}; at least {VERSION_MIN} is read")


def _decompress_block(block: memoryview, before: int, bytes_max: int) -> memoryview:
    size = _content_size(block)
    if before + size > bytes_max:
        raise ReadingLimitError(f"snappy: the records decompress to more than the allowed {bytes_max} bytes")
    out = bytearray(size)
    try:
        written = cramjam.snappy.decompress_raw_into(block, out)
    except cramjam.DecompressionError as error:
        raise DecompressionError(f"snappy: {error}") from None
    if written != size:
        raise DecompressionError(f"snappy: a block announces {size} bytes and holds {written}")
    return memoryview(out)


def _content_size(block: memoryview) -> int:
    size = 0
    for index, byte in enumerate(block[:SIZE_VARINT_BYTES_MAX]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return size
    raise DecompressionError("snappy: a block does not announce its size")
