"""Inputs that a stranger may hand over: few bytes that stand for many records, batches, headers or entries."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from broker.units import MIB
from log.batches.batch_v2 import CRC_POSITION, HEADER, BatchHeader
from log.codecs.compression import DECOMPRESSED_BYTES_MAX, Codec, compress
from log.codecs.crc import crc32, crc32c
from log.partition.producer_entry import SNAPSHOT_VERSION

SMALLEST_RECORD: Final = bytes((12, 0, 0, 0, 1, 1, 0))
"""No key, no value, no header: seven bytes."""
PAYLOAD_BYTES: Final = DECOMPRESSED_BYTES_MAX - 64
CONTROL: Final = 0x30
"""The bits of a transaction marker's batch."""


def signed(number: int) -> bytes:
    """A zig-zag varint."""
    raw, out = number << 1 ^ number >> 63, bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes((*out, raw))


def batch(payload: bytes, count: int, codec: Codec = Codec.NONE, *, bits: int = 0, last_delta: int = 0) -> bytes:
    """A batch of magic 2 with a right checksum around any records section."""
    packed = bytes(compress(codec, payload))
    size = HEADER.size - 12 + len(packed)
    data = bytearray(
        HEADER.pack(*BatchHeader(0, size, 0, 2, 0, codec | bits, last_delta, 0, 0, 7, 0, 0, count)) + packed
    )
    data[CRC_POSITION : CRC_POSITION + 4] = crc32c(bytes(data[CRC_POSITION + 4 :])).to_bytes(4, "big")
    return bytes(data)


def record(key: bytes | None, value: bytes | None, headers: bytes = b"\0", delta: int = 0) -> bytes:
    """A record with these parts; `headers` are their count and what follows."""
    parts = [signed(-1) if part is None else signed(len(part)) + part for part in (key, value)]
    body = b"\0\0" + signed(delta) + b"".join(parts) + headers
    return signed(len(body)) + body


def many_records(codec: Codec, *, bits: int = 0) -> bytes:
    """Nine million records in one batch."""
    count = PAYLOAD_BYTES // len(SMALLEST_RECORD)
    return batch(SMALLEST_RECORD * count, count, codec, bits=bits)


def broken_at_the_end(codec: Codec) -> bytes:
    """Nine million records, and one more that does not add up."""
    count = PAYLOAD_BYTES // len(SMALLEST_RECORD)
    return batch(SMALLEST_RECORD * count + b"\x0c\0", count + 1, codec)


def many_keys(codec: Codec = Codec.ZSTD) -> bytes:
    """A million records with keys of their own and ascending offsets."""
    payload = b"".join(record(b"%d" % number, b"", delta=number) for number in range(MIB))
    return batch(payload, MIB, codec, last_delta=MIB - 1)


def many_headers(codec: Codec, count: int = 20_000_000) -> bytes:
    """A record with twenty million headers."""
    return batch(record(None, None, signed(count) + b"\0\1" * count), 1, codec)


def headers_each(codec: Codec) -> bytes:
    """Records of a thousand headers each."""
    one = record(None, None, signed(1000) + b"\0\1" * 1000)
    count = PAYLOAD_BYTES // len(one)
    return batch(one * count, count, codec)


def one_value(octets: bytes, codec: Codec = Codec.ZSTD, *, key: bytes = b"k") -> bytes:
    """A record whose value fills the batch."""
    return batch(record(key, octets * ((PAYLOAD_BYTES - 64) // len(octets))), 1, codec)


def repeated(one: bytes, size_bytes: int = MIB) -> bytes:
    """A batch again and again, with offsets that follow, up to a size in bytes."""
    return b"".join(number.to_bytes(8, "big") + one[8:] for number in range(max(1, size_bytes // len(one))))


def wrapper(codec: Codec, magic: int) -> bytes:
    """A wrapper of magic 0 or 1 around as many of the smallest messages as decompress."""
    body = (b"\0\0" if magic == 0 else b"\1\0" + bytes(8)) + b"\xff" * 8
    inner = struct.pack(">qiI", 0, 4 + len(body), crc32(body)) + body
    value = bytes(compress(codec, inner * (PAYLOAD_BYTES // len(inner)), magic=magic))
    outer = bytes((magic, codec)) + (bytes(8) if magic else b"") + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", 0, 4 + len(outer), crc32(outer)) + outer


def snapshot(size_bytes: int) -> bytes:
    """A producer snapshot with a right checksum."""
    count = size_bytes // 46
    body = struct.pack(">i", count) + b"".join(struct.pack(">qhiqiqiq", n, 0, 0, n, 0, 0, 0, n) for n in range(count))
    return struct.pack(">hI", SNAPSHOT_VERSION, crc32c(body)) + body


def transactions(size_bytes: int) -> bytes:
    """A batch of a transaction of every producer, none of which ends."""
    one, out = batch(record(b"k", b""), 1, bits=0x10), bytearray()
    for number in range(size_bytes // len(one)):
        data = bytearray(one)
        data[:8] = number.to_bytes(8, "big")
        data[43:51] = number.to_bytes(8, "big")
        data[CRC_POSITION : CRC_POSITION + 4] = crc32c(bytes(data[CRC_POSITION + 4 :])).to_bytes(4, "big")
        out += data
    return bytes(out)


def internal(key: bytes, value: bytes, count: int = 1) -> bytes:
    """A batch of equal records of an internal topic."""
    return batch(record(key, value) * count, count, Codec.ZSTD)


def _elements(element: bytes, size_bytes: int = 60 * MIB) -> tuple[int, bytes]:
    count = size_bytes // len(element)
    return count, element * count


def offsets_group() -> bytes:
    """A classic group with members of the fewest bytes there can be."""
    count, members = _elements(b"\0\0" * 3 + bytes(8) + bytes(8))
    value = struct.pack(">h", 3) + b"\0\x08consumer" + bytes(4) + b"\0\0" * 2 + bytes(8) + struct.pack(">i", count)
    return internal(struct.pack(">hh", 2, 1) + b"g", value + members)


def unsigned(number: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def transaction_state() -> bytes:
    """A transaction with topics of three bytes."""
    count, topics = _elements(b"\x01\x01\x00")
    value = struct.pack(">hqhiB", 1, 1, 0, 0, 1) + unsigned(count + 1) + topics + bytes(16) + b"\0"
    return internal(struct.pack(">hh", 0, 1) + b"t", value)


def share_group_state() -> bytes:
    """A share group's snapshot with state batches of the fewest bytes."""
    count, batches = _elements(bytes(20))
    value = struct.pack(">hiii", 0, 0, 0, 0) + bytes(8) + unsigned(count + 1) + batches + bytes(17)
    return internal(struct.pack(">h", 0) + b"\x02g" + bytes(16) + bytes(4) + b"\0", value)


def metadata_partition() -> bytes:
    """A PartitionRecord with fifteen million replicas."""
    count, replicas = _elements(b"\0\0\0\1")
    value = bytes((1, 3, 0)) + bytes(4) + bytes(16) + unsigned(count + 1) + replicas + b"\1" * 3 + bytes(12) + b"\0"
    return internal(b"", value)


CODECS: Final = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
SEGMENTS: Final[Mapping[str, Callable[[], bytes]]] = {
    **{f"records-{codec.label}": partial(many_records, codec) for codec in CODECS},
    "bombs": lambda: repeated(many_records(Codec.ZSTD)),
    "broken-at-the-end": lambda: repeated(broken_at_the_end(Codec.ZSTD)),
    "control": lambda: repeated(many_records(Codec.ZSTD, bits=CONTROL)),
    "keys": many_keys,
    "headers-zstd": partial(many_headers, Codec.ZSTD),
    "headers-none": partial(many_headers, Codec.NONE),
    "headers-each": partial(headers_each, Codec.ZSTD),
    "value-not-utf8": partial(one_value, b"\xff"),
    "values-escaped": lambda: repeated(one_value(b"\1")),
    "wrapper-gzip-0": partial(wrapper, Codec.GZIP, 0),
    "wrapper-lz4-1": partial(wrapper, Codec.LZ4, 1),
    "wrappers": lambda: repeated(wrapper(Codec.GZIP, 1)),
    "empty-batches": lambda: repeated(batch(b"", 0)),
    "wrong-checksums": lambda: repeated(batch(b"", 0)[:-1] + b"\1"),
    "open-transactions": partial(transactions, MIB),
    "size-too-large": lambda: struct.pack(">qi", 0, 2**31 - 1) + bytes(MIB),
    "count-too-large": lambda: repeated(batch(b"\x0c", 2**31 - 1, Codec.ZSTD)),
    "zeros": lambda: bytes(MIB),
}
TOPICS: Final[Mapping[str, tuple[str, Callable[[], bytes]]]] = {
    "__consumer_offsets-0": ("--offsets-decoder", offsets_group),
    "__transaction_state-0": ("--transaction-log-decoder", transaction_state),
    "__share_group_state-0": ("--share-group-state-decoder", share_group_state),
    "__cluster_metadata-0": ("--cluster-metadata-decoder", metadata_partition),
}
