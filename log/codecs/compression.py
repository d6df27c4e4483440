"""Compress and decompress records with Kafka's four codecs, in Kafka's framings.

Decompression never takes more memory than `bytes_max`, whatever the bytes claim; bytes that cannot be read raise
DecompressionError, nothing else. gzip is one or more members, bytes after them ignored; zstd is one or more frames,
with or without the content's size. A zstd context costs more to make than a small batch to decompress, so each thread
keeps its own. Compressed bytes are not those of the Java compressors.

    >>> decompress(Codec.ZSTD, compress(Codec.ZSTD, b"abc"))
    b'abc'

Source: org.apache.kafka.common.compress.*Compression and org.apache.kafka.common.record.CompressionType, 4.0.
"""

from __future__ import annotations

import enum
import threading
import zlib
from typing import Final

import zstandard

from broker.units import KIB, MIB
from log.codecs.crc import BytesLike
from log.codecs.lz4_frame import (
    compress_frame,
    compress_frame_into,
    decompress_frame,
    decompress_frame_into,
    frame_bytes_max,
)
from log.codecs.snappy_stream import compress_stream, decompress_stream
from log.errors import DecompressionError, ReadingLimitError, UnknownCodecError

DECOMPRESSED_BYTES_MAX: Final = 64 * MIB
"""The largest decompressed batch: 64 times a producer's default max.request.size."""

CODEC_MASK: Final = 0x07
GZIP_LEVEL: Final = -1  # zlib's default, as Java's.
ZSTD_LEVEL: Final = 3
GZIP_WINDOW: Final = 31  # zlib's way to say: the largest window, with gzip's header and trailer.
GZIP_SYSTEM_AT: Final = 9  # The byte of the header that names the system which made the member,
GZIP_SYSTEM_UNKNOWN: Final = 255  # as Java 16 and later write it.
GZIP_MAGIC: Final = b"\x1f\x8b"
STEP_BYTES: Final = MIB  # What one step of a long decompression adds at most.
ZSTD_GUESS_FACTOR: Final = 16  # Records seldom shrink further; what does is decompressed in steps.
ZSTD_GUESS_MIN: Final = 256 * KIB
ZSTD_REPEATED_BYTE: Final = 1  # A block type: one byte, many times.
ZSTD_CHECKSUM_FLAG: Final = 4  # In the frame header's descriptor: four bytes follow the last block.
ZSTD_STEP_BYTES: Final = 256  # Four bytes can stand for a block of 128 KiB, so one step adds 8 MiB at most.


class Codec(enum.IntEnum):
    """List the compression codecs; the value is a codec's number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def label(self) -> str:
        """Return Kafka's name of the codec: none, gzip, snappy, lz4 or zstd."""
        return self.name.lower()


CODECS: Final = tuple(Codec)
_LZ4: Final = Codec.LZ4  # Naming a member of an enum takes 0.2 µs in Python 3.11.
_ZSTD: Final = Codec.ZSTD


class _Contexts(threading.local):
    """The zstd contexts of one thread."""

    def __init__(self) -> None:
        self.decompressor = zstandard.ZstdDecompressor()
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}

    def compressor(self, level: int) -> zstandard.ZstdCompressor:
        if level not in self.compressors:
            self.compressors[level] = zstandard.ZstdCompressor(level=level, write_content_size=False)
        return self.compressors[level]


_CONTEXTS: Final = _Contexts()


def codec_of(attributes: int) -> Codec:
    """Return the codec that a batch's or message's attributes name; raise UnknownCodecError."""
    number = attributes & CODEC_MASK
    if number >= len(CODECS):
        raise UnknownCodecError(f"Unknown compression type id: {number}")
    return CODECS[number]


def compress(codec: Codec, data: bytes | memoryview, *, magic: int = 2, level: int | None = None) -> bytes:
    """Return `data` compressed; `level` is the level of gzip or zstd, None the level that Kafka uses by default."""
    if codec is Codec.GZIP:
        member = bytearray(zlib.compress(data, GZIP_LEVEL if level is None else level, GZIP_WINDOW))
        member[GZIP_SYSTEM_AT] = GZIP_SYSTEM_UNKNOWN
        return bytes(member)
    if codec is Codec.SNAPPY:
        return compress_stream(data)
    if codec is Codec.LZ4:
        return bytes(compress_frame(data, magic=magic))
    if codec is Codec.ZSTD:
        stream = _CONTEXTS.compressor(ZSTD_LEVEL if level is None else level).compressobj()
        # Java closes its streams from the outside in: all is flushed as a block, then an empty one ends the frame.
        return stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + stream.flush()
    return bytes(data)


def compress_into(codec: Codec, data: memoryview, room: memoryview, *, level: int | None = None) -> int | BytesLike:
    """Compress records into `room` and return their size in bytes, or return the compressed bytes.

    The codec writes into `room` if that saves a copy and `room` is certainly large enough. zstd compresses in one call,
    not as a stream, as Java does: knowing the size it takes a sixth less time, but its bytes differ from Java's.
    """
    if codec is _LZ4 and len(room) >= frame_bytes_max(len(data)):
        return compress_frame_into(data, room, magic=2)
    if codec is _ZSTD:
        return _CONTEXTS.compressor(ZSTD_LEVEL if level is None else level).compress(data)
    return compress(codec, data, level=level)


def decompress(codec: Codec, data: BytesLike, *, magic: int = 2, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> BytesLike:
    """Return the decompressed `data`, at most `bytes_max` bytes; raise DecompressionError."""
    if codec is _LZ4:
        return decompress_frame(memoryview(data), magic=magic, bytes_max=bytes_max)
    if codec is _ZSTD:
        return _unzstd(data, bytes_max)
    if codec is Codec.GZIP:
        return _gunzip(data, bytes_max)
    if codec is Codec.SNAPPY:
        return decompress_stream(memoryview(data), bytes_max=bytes_max)
    return data


def decompress_into(codec: Codec, data: memoryview, room: memoryview, *, bytes_max: int) -> int | BytesLike:
    """Decompress records into `room` and return their size in bytes, or return the decompressed bytes.

    The codec writes into `room` if that saves a copy and `room` is certainly large enough. Raises DecompressionError.
    """
    if codec is _LZ4:
        size = decompress_frame_into(data, room, magic=2, bytes_max=bytes_max)
        if size is not None:
            return size
    return decompress(codec, data, bytes_max=bytes_max)


def _too_much(codec: str, bytes_max: int) -> DecompressionError:
    what = f"{codec}: the records decompress to more than the allowed {bytes_max} bytes"
    return ReadingLimitError.after(bytes_max, what)


def _gunzip(data: BytesLike, bytes_max: int) -> BytesLike:
    out = bytearray()
    rest: BytesLike = data
    while True:  # Each turn ends one member, which has at least 18 bytes.
        member = zlib.decompressobj(GZIP_WINDOW)
        while not member.eof:
            try:
                piece = member.decompress(rest, STEP_BYTES)
            except zlib.error as error:
                raise DecompressionError.after(len(out), f"gzip: {error}") from None
            rest = member.unconsumed_tail
            out += piece
            if len(out) > bytes_max:
                raise _too_much("gzip", bytes_max)
            if not piece and not rest and not member.eof:
                raise DecompressionError.after(len(out), "gzip: the data ends inside a member")
        rest = member.unused_data
        if rest[:2] != GZIP_MAGIC:
            return out


def _unzstd(data: BytesLike, bytes_max: int) -> BytesLike:
    size_max = min(bytes_max, max(ZSTD_GUESS_MIN, ZSTD_GUESS_FACTOR * len(data)))
    try:
        announced = zstandard.frame_content_size(data)  # -1 where the frame does not say.
        if announced <= size_max and _zstd_frame_end(memoryview(data)) == len(data):
            return _CONTEXTS.decompressor.decompress(data, max_output_size=size_max)
    except zstandard.ZstdError:
        pass  # Longer than guessed, or damaged: decompressing without room finds out.
    return _unzstd_in_steps(memoryview(data), bytes_max)


def _zstd_frame_end(data: memoryview) -> int:
    """Return where the first frame ends, by its block sizes: the library does not say, and frames may follow."""
    position = zstandard.frame_header_size(data)
    is_last = False
    while not is_last and position + 3 <= len(data):
        block_header = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        is_last = bool(block_header & 1)
        position += 3 + (1 if block_header >> 1 & 3 == ZSTD_REPEATED_BYTE else block_header >> 3)
    return position + (4 if data[4] & ZSTD_CHECKSUM_FLAG else 0)


def _unzstd_in_steps(data: memoryview, bytes_max: int) -> BytesLike:
    out = bytearray()
    while True:  # Each turn ends one frame, which has at least 5 bytes.
        frame = _CONTEXTS.decompressor.decompressobj()
        position = 0
        while not frame.eof:
            if position >= len(data):
                raise DecompressionError.after(len(out), "zstd: the data ends inside a frame")
            try:
                out += frame.decompress(data[position : position + ZSTD_STEP_BYTES])
            except zstandard.ZstdError as error:
                raise DecompressionError.after(len(out), f"zstd: {error}") from None
            position += ZSTD_STEP_BYTES
            if len(out) > bytes_max:
                raise _too_much("zstd", bytes_max)
        data = data[min(position, len(data)) - len(frame.unused_data) :]
        if len(data) == 0:
            return out
