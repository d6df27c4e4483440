"""Write and read LZ4 frames as Kafka does, around a library's raw blocks.

Kafka's frames are narrower than the format: blocks are independent and of 64 KiB, dictionaries are unknown, and the
content's checksum is not read; wheels' frame functions take more and write other descriptors. Magic 0 hashes the wrong
bytes for the header checksum, and its readers do not check it (KAFKA-3160). A block of n bytes decompresses to at most
255·n + 16, so a tiny block does not cost a buffer of 4 MiB.

    >>> bytes(compress_frame(b"", magic=2)).hex(" ")
    '04 22 4d 18 60 40 82 00 00 00 00'

Source: org.apache.kafka.common.compress.{Lz4BlockInputStream,Lz4BlockOutputStream}, 4.0; LZ4 frame format 1.6.
"""

from __future__ import annotations

import functools
import struct
import threading
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

import cramjam
import numpy as np
from numpy.typing import NDArray

from broker.compiled import compiled_with
from broker.units import MIB
from log.errors import DecompressionError, ReadingLimitError

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


MAGIC: Final = b"\x04\x22\x4d\x18"
DESCRIPTOR: Final = b"\x60\x40"  # Version 1, independent blocks, no checksums; blocks of 64 KiB.
KAFKA_HEADER: Final = MAGIC + DESCRIPTOR + b"\x82"
"""What nearly every frame begins with: known to be sound, it need not be looked into."""
BLOCK_SIZE_BYTES: Final = 65_536
STORED: Final = 0x8000_0000
END_MARK: Final = bytes(4)
PACKED_BYTES_MAX: Final = BLOCK_SIZE_BYTES + BLOCK_SIZE_BYTES // 255 + 16  # LZ4's own bound of what a block becomes.
KEPT_BYTES_MAX: Final = 2 * MIB  # A batch of a producer with default settings fits; more is not held on to.
EXPANSION_MAX: Final = 255  # What one byte of an LZ4 block can stand for, at most.
_SIZE: Final = struct.Struct("<I")
_BEGINNING: Final = struct.Struct("<7sI")
"""Kafka's header and the first block's size."""


class _Block(NamedTuple):
    """One block of a frame: its bytes, compressed or not, and how many bytes they stand for at most."""

    data: memoryview
    is_stored: bool
    content_bytes_max: int


def frame_bytes_max(size_bytes: int) -> int:
    """Return the size in bytes of the buffer that `compress_frame_into` needs for `size_bytes` bytes."""
    block_count = -(-size_bytes // BLOCK_SIZE_BYTES)
    return len(KAFKA_HEADER) + block_count * (_SIZE.size + BLOCK_SIZE_BYTES) + PACKED_BYTES_MAX


class _Scratch(threading.local):
    """The reused buffer of one thread for blocks: a new buffer costs as much as filling it."""

    def __init__(self) -> None:
        self.buffer = bytearray(BLOCK_SIZE_BYTES)
        self.frame = memoryview(bytearray(frame_bytes_max(BLOCK_SIZE_BYTES)))


_SCRATCH: Final = _Scratch()


def compress_frame(data: bytes | memoryview, *, magic: int) -> memoryview:
    """Return `data` as one LZ4 frame; the thread's next call may overwrite it, so use or copy it before.

    `magic` is the message format: magic 0 has another header checksum.
    """
    size_bytes_max = frame_bytes_max(len(data))
    frame = _SCRATCH.frame
    if size_bytes_max > len(frame):
        frame = memoryview(bytearray(size_bytes_max))
        if size_bytes_max <= KEPT_BYTES_MAX:
            _SCRATCH.frame = frame
    return frame[: compress_frame_into(data, frame, magic=magic)]


def compress_frame_into(data: bytes | memoryview, room: memoryview, *, magic: int) -> int:
    """Write `data` as one LZ4 frame into `room`, of at least `frame_bytes_max` bytes; return its size in bytes."""
    assert len(room) >= frame_bytes_max(len(data)), (len(room), len(data))
    hashed = MAGIC + DESCRIPTOR if magic == 0 else DESCRIPTOR
    position = len(KAFKA_HEADER)
    room[:position] = MAGIC + DESCRIPTOR + bytes((header_checksum(hashed),))
    for start in range(0, len(data), BLOCK_SIZE_BYTES):
        block = memoryview(data)[start : start + BLOCK_SIZE_BYTES]
        packed = room[position + _SIZE.size :][:PACKED_BYTES_MAX]
        field = size = cramjam.lz4.compress_block_into(block, packed, store_size=False)
        if size >= len(block):
            size = len(block)
            field = size | STORED
            packed[:size] = block
        _SIZE.pack_into(room, position, field)
        position += _SIZE.size + size
    end = position + len(END_MARK)
    room[position:end] = END_MARK
    return end


def decompress_frame(data: memoryview, *, magic: int, bytes_max: int) -> bytes | bytearray:
    """Return the content of an LZ4 frame, ignoring bytes after its end mark; raise DecompressionError."""
    out = bytearray()
    for block in _blocks(data, magic):
        try:
            content = block.data if block.is_stored else _decompress_block(block)
        except DecompressionError as error:
            raise DecompressionError.after(len(out), error.what) from None
        if len(out) + len(content) > bytes_max:
            raise _too_much(bytes_max)
        out += content
    return out


def decompress_frame_into(data: memoryview, room: memoryview, *, magic: int, bytes_max: int) -> int | None:
    """Write a frame's content into `room`; return its size, None if it may not fit; raise DecompressionError."""
    used = 0
    if len(room) >= BLOCK_SIZE_BYTES and _is_single_block(data):
        used = _decompress_into(data[_BEGINNING.size : -len(END_MARK)], room[:BLOCK_SIZE_BYTES])
        if used > bytes_max:
            raise _too_much(bytes_max)
        return used
    for block in _blocks(data, magic):
        if block.content_bytes_max > len(room) - used:
            return None
        if block.is_stored:
            room[used : used + len(block.data)] = block.data
            used += len(block.data)
        else:
            used += _decompress_into(block.data, room[used:])
        if used > bytes_max:
            raise _too_much(bytes_max)
    return used


def _is_single_block(data: memoryview) -> bool:
    """Return whether a frame is Kafka's header, one compressed block and the end mark, as most batches are."""
    if len(data) < _BEGINNING.size + len(END_MARK):
        return False
    header, size = _BEGINNING.unpack_from(data)
    end = _BEGINNING.size + size
    is_whole = end + len(END_MARK) == len(data) and data[end:] == END_MARK
    return is_whole and header == KAFKA_HEADER and 0 < size <= BLOCK_SIZE_BYTES


def _blocks(data: memoryview, magic: int) -> Iterator[_Block]:
    """Yield the blocks of a frame up to its end mark."""
    if data[: len(KAFKA_HEADER)] == KAFKA_HEADER:
        position, block_size_max, has_block_checksums = len(KAFKA_HEADER), BLOCK_SIZE_BYTES, False
    else:
        position, block_size_max, has_block_checksums = _read_header(data, magic)
    while True:  # Each turn reads at least four bytes.
        if position + 4 > len(data):
            raise DecompressionError("lz4: the frame ends before its end mark")
        (field,) = _SIZE.unpack_from(data, position)
        position += 4
        if field == 0:
            return
        size = field & ~STORED
        block = data[position : position + size]
        position += len(block) + 4 * has_block_checksums
        if size > block_size_max or len(block) < size or position > len(data):
            raise DecompressionError(f"lz4: a block of {size} bytes exceeds the frame or its block size")
        if has_block_checksums and xxh32(np.frombuffer(block, np.uint8)) != _SIZE.unpack_from(data, position - 4)[0]:
            raise DecompressionError("lz4: a block's checksum is wrong")
        is_stored = field != size
        yield _Block(block, is_stored, size if is_stored else min(block_size_max, EXPANSION_MAX * size + 16))


@functools.lru_cache(maxsize=64)
def header_checksum(descriptor: bytes) -> int:
    """Return the checksum byte of a frame's descriptor."""
    plain = xxh32.__wrapped__  # type: ignore[attr-defined]  # functools.wraps sets it.
    return int(plain(np.frombuffer(descriptor, np.uint8))) >> 8 & 0xFF


def _read_header(data: memoryview, magic: int) -> tuple[int, int, bool]:
    """Return (position of the first block, largest block, whether blocks have checksums)."""
    if len(data) < 7 or bytes(data[:4]) != MAGIC:
        raise DecompressionError("lz4: not a frame")
    flags, sizes = data[4], data[5]
    if flags & 0b1110_0011 != 0b0110_0000:
        raise DecompressionError(f"lz4: flags {flags:#04x} ask for more than Kafka reads")
    if sizes & 0b1000_1111 or sizes < 0x40:
        raise DecompressionError(f"lz4: block size code {sizes:#04x} is not one of 0x40, 0x50, 0x60, 0x70")
    end = 14 if flags & 0b1000 else 6
    if len(data) <= end:
        raise DecompressionError("lz4: the frame ends inside its header")
    if magic != 0 and header_checksum(bytes(data[4:end])) != data[end]:
        raise DecompressionError("lz4: the header's checksum is wrong")
    return end + 1, 1 << 2 * (sizes >> 4) + 8, bool(flags & 0b1_0000)


def _decompress_block(block: _Block) -> memoryview:
    """Return the content of a block, to be copied before the next one is asked for."""
    if block.content_bytes_max > len(_SCRATCH.buffer):
        _SCRATCH.buffer = bytearray(block.content_bytes_max)
    room = memoryview(_SCRATCH.buffer)[: block.content_bytes_max]
    return room[: _decompress_into(block.data, room)]


def _decompress_into(data: memoryview, room: memoryview) -> int:
    try:
        return cramjam.lz4.decompress_block_into(data, room)
    except cramjam.DecompressionError as error:
        raise DecompressionError(f"lz4: {error}") from None


def _too_much(bytes_max: int) -> DecompressionError:
    return ReadingLimitError.after(bytes_max, f"lz4: the records decompress to more than the allowed {bytes_max} bytes")
