"""Codecs, checksums and varints: what goes in comes out, framed as Kafka frames it, within the memory allowed."""

from __future__ import annotations

import gzip
import tracemalloc

import lz4.block  # type: ignore[import-untyped]  # The wheel has no types.
import lz4.frame  # type: ignore[import-untyped]  # The wheel has no types.
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from log.codecs.compression import Codec, compress, decompress, decompress_into
from log.codecs.crc import crc32, crc32c
from log.codecs.lz4_frame import BLOCK_SIZE_BYTES as LZ4_BLOCK
from log.codecs.lz4_frame import header_checksum, xxh32
from log.codecs.varint import read_varint, read_varlong, write_varint
from log.errors import DecompressionError, InvalidRecordError

COMPRESSING = tuple(codec for codec in Codec if codec is not Codec.NONE)
TEXT = b"alpha bravo charlie delta echo " * 5000
LIMIT = 1 << 20


def refused(codec: Codec, data: bytes, bytes_max: int) -> tuple[str, int]:
    """What refuses the data, and how many bytes were taken at most until then."""
    tracemalloc.start()
    try:
        with pytest.raises(DecompressionError) as refusal:
            decompress(codec, data, bytes_max=bytes_max)
        return str(refusal.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def taken(codec: Codec, data: bytes, room_bytes: int, bytes_max: int = LIMIT) -> bytes:
    """What stands in the room afterwards, or was returned instead."""
    room = bytearray(room_bytes)
    size = decompress_into(codec, memoryview(data), memoryview(room), bytes_max=bytes_max)
    return bytes(room[:size]) if isinstance(size, int) else bytes(size)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("size", [0, 1, 9000, LZ4_BLOCK, LZ4_BLOCK + 1, 2 * LZ4_BLOCK + 9])
def test_a_room_takes_what_would_be_returned(codec: Codec, size: int) -> None:
    random = np.random.default_rng(size).bytes(size)  # Of this, lz4 stores blocks as they are.
    for data in ((TEXT * 2)[:size], random):
        for room_bytes in (0, size, LZ4_BLOCK, 4 * LZ4_BLOCK):
            assert taken(codec, compress(codec, data), room_bytes) == data


@given(st.integers(0, 2000), st.integers(0, 2000), st.integers(1, 255))
def test_damaged_lz4_is_refused_in_the_same_words_with_a_room(size: int, at: int, flip: int) -> None:
    packed = bytearray(compress(Codec.LZ4, TEXT[:size]))
    packed[at % len(packed)] ^= flip
    outcomes: list[bytes | str] = []
    for room_bytes in (0, 2 * LZ4_BLOCK):
        try:
            outcomes.append(taken(Codec.LZ4, bytes(packed), room_bytes))
        except DecompressionError as refusal:
            outcomes.append(str(refusal))
    assert outcomes[0] == outcomes[1]


def test_a_block_larger_than_its_content_may_be_is_refused_with_and_without_a_room() -> None:
    block = lz4.block.compress(np.random.default_rng(1).bytes(LZ4_BLOCK), store_size=False)
    assert len(block) > LZ4_BLOCK
    frame = compress(Codec.LZ4, b"")[:-4] + len(block).to_bytes(4, "little") + block + bytes(4)
    for room_bytes in (0, 4 * LZ4_BLOCK):
        with pytest.raises(DecompressionError, match=rf"^lz4: a block of {len(block)} bytes exceeds the frame or"):
            taken(Codec.LZ4, frame, room_bytes)


@pytest.mark.parametrize("size", [9000, 2 * LZ4_BLOCK])
def test_a_room_takes_no_more_than_is_allowed(size: int) -> None:
    packed = compress(Codec.LZ4, (TEXT * 2)[:size])
    assert taken(Codec.LZ4, packed, 4 * LZ4_BLOCK, bytes_max=size) == (TEXT * 2)[:size]
    with pytest.raises(
        DecompressionError, match=rf"^lz4: the records decompress to more than the allowed {size - 1} b"
    ):
        taken(Codec.LZ4, packed, 4 * LZ4_BLOCK, bytes_max=size - 1)


def test_the_framings_are_kafkas() -> None:
    assert compress(Codec.LZ4, b"").hex() == "04224d18604082" + "00000000"
    assert compress(Codec.SNAPPY, b"").hex() == "82534e4150505900" + "00000001" + "00000001"
    assert gzip.decompress(compress(Codec.GZIP, TEXT)) == TEXT
    assert lz4.frame.decompress(compress(Codec.LZ4, TEXT)) == TEXT
    assert zstandard.frame_content_size(compress(Codec.ZSTD, TEXT)) == -1
    assert compress(Codec.NONE, TEXT) is TEXT


def test_the_header_checksum_of_magic_0_is_wrong_on_purpose_and_not_looked_at() -> None:
    old = compress(Codec.LZ4, TEXT, magic=0)
    new = compress(Codec.LZ4, TEXT)
    assert (old[:6], old[7:]) == (new[:6], new[7:])
    assert old[6] != new[6]
    assert bytes(decompress(Codec.LZ4, old, magic=0)) == bytes(decompress(Codec.LZ4, new, magic=0)) == TEXT
    with pytest.raises(DecompressionError, match=r"^lz4: the header's checksum is wrong$"):
        decompress(Codec.LZ4, old, magic=1)


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("store_size", [False, True])
def test_lz4_frames_of_other_writers_are_read(block_size: int, store_size: bool) -> None:
    packed = lz4.frame.compress(
        TEXT * 3,
        block_size=block_size,
        block_linked=False,
        block_checksum=True,
        content_checksum=True,
        store_size=store_size,
    )
    assert bytes(decompress(Codec.LZ4, packed)) == TEXT * 3
    with pytest.raises(DecompressionError, match=r"^lz4: "):
        decompress(Codec.LZ4, packed[:40] + bytes((packed[40] ^ 1,)) + packed[41:])


@pytest.mark.parametrize(("data", "hashed"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)])
def test_xxh32_is_that_of_the_specification(data: bytes, hashed: int) -> None:
    assert xxh32(np.frombuffer(data, np.uint8)) == hashed
    assert xxh32.__wrapped__(np.frombuffer(data, np.uint8)) == hashed  # type: ignore[attr-defined]  # The plain function.
    assert header_checksum(data) == hashed >> 8 & 0xFF


def test_members_frames_and_streams_may_follow_one_another() -> None:
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.ZSTD):
        assert bytes(decompress(codec, compress(codec, b"abc") + compress(codec, TEXT))) == b"abc" + TEXT
    assert bytes(decompress(Codec.ZSTD, compress(Codec.ZSTD, b"") + zstandard.compress(TEXT))) == TEXT
    assert bytes(decompress(Codec.GZIP, compress(Codec.GZIP, b"abc") + b"rubbish")) == b"abc"
    assert bytes(decompress(Codec.LZ4, compress(Codec.LZ4, b"abc") + b"rubbish")) == b"abc"


@pytest.mark.parametrize("versions", ["8000000100000001", "0000000180000001", "0000000000000000"])
def test_the_versions_in_the_first_header_of_a_snappy_stream_are_not_looked_at(versions: str) -> None:
    """Read so by SnappyInputStream 1.1.10.7."""
    packed = compress(Codec.SNAPPY, TEXT)
    assert bytes(decompress(Codec.SNAPPY, packed[:8] + bytes.fromhex(versions) + packed[16:])) == TEXT


def test_of_a_second_snappy_header_only_a_version_below_1_is_refused() -> None:
    first, second = compress(Codec.SNAPPY, b"abc"), bytearray(compress(Codec.SNAPPY, TEXT))
    second[12] ^= 0x80
    assert bytes(decompress(Codec.SNAPPY, first + second)) == b"abc" + TEXT
    second[4:12] = bytes(8)
    assert bytes(decompress(Codec.SNAPPY, first + second)) == b"abc" + TEXT


def test_snappy_without_its_stream_header_is_one_raw_block() -> None:
    packed = compress(Codec.SNAPPY, b"abcabcabcabcabc")
    assert bytes(decompress(Codec.SNAPPY, packed[20:])) == b"abcabcabcabcabc"


@pytest.mark.parametrize("codec", COMPRESSING)
def test_the_limit_is_the_last_size_allowed(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert len(decompress(codec, packed, bytes_max=len(TEXT))) == len(TEXT)
    with pytest.raises(DecompressionError):
        decompress(codec, packed, bytes_max=len(TEXT) - 1)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_bomb_takes_no_more_memory_than_allowed(codec: Codec) -> None:
    bomb = compress(codec, bytes(64 << 20))
    what, peak = refused(codec, bomb, LIMIT)
    assert peak < 16 * LIMIT
    assert what == f"{codec.label}: the records decompress to more than the allowed {LIMIT} bytes"


@pytest.mark.parametrize("announced", [1 << 30, 1 << 60])
def test_a_frame_that_announces_much_and_holds_little_takes_little(announced: int) -> None:
    packed = zstandard.compress(b"abc")
    lying = packed[:4] + bytes((0xE0,)) + announced.to_bytes(8, "little") + packed[6:]
    assert zstandard.frame_content_size(lying) == announced
    what, peak = refused(Codec.ZSTD, lying, 64 << 20)
    assert peak < LIMIT
    assert what.startswith("zstd: ")


@pytest.mark.parametrize("codec", COMPRESSING)
def test_every_torn_end_is_noticed(codec: Codec) -> None:
    packed = compress(codec, TEXT[:5000])
    for end in range(len(packed)):
        if codec is Codec.SNAPPY and end in (16, 17, 18, 19):
            assert bytes(decompress(codec, packed[:end])) == b""  # A stream may end after any block.
            continue
        with pytest.raises(DecompressionError, match=f"^{codec.label}: "):
            decompress(codec, packed[:end])


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("05224d18604082", "not a frame"),
        ("04224d18004082", "flags 0x00 ask for more than Kafka reads"),
        ("04224d18404082", "flags 0x40 ask for more than Kafka reads"),
        ("04224d18603082", "block size code 0x30 is not one of 0x40, 0x50, 0x60, 0x70"),
        ("04224d18684082", "the frame ends inside its header"),
        ("04224d18604082", "the frame ends before its end mark"),
        ("04224d1860408205000000", "a block of 5 bytes exceeds the frame or its block size"),
        ("04224d1860408201000180", "a block of 65537 bytes exceeds the frame or its block size"),
    ],
)
def test_what_is_wrong_with_an_lz4_frame_is_said(data: str, what: str) -> None:
    with pytest.raises(DecompressionError) as refusal:
        decompress(Codec.LZ4, bytes.fromhex(data))
    assert str(refusal.value) == f"lz4: {what}"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("", "nothing to decompress"),
        (
            "82534e4150505900000000010000000182534e41505059000000000000000001",
            "a second stream has the version 0; at least 1 is read",
        ),
        ("82534e4150505900000000010000000100000005", "a block of 5 bytes exceeds the stream"),
        ("82534e41505059000000000100000001ffffffff", "a block of -1 bytes exceeds the stream"),
        ("82534e4150505900000000010000000182534e41", "a second stream has half a header"),
        ("ffffffffff", "a block does not announce its size"),
        ("ffffffff0f", "the records decompress to more than the allowed 67108864 bytes"),
    ],
)
def test_what_is_wrong_with_a_snappy_stream_is_said(data: str, what: str) -> None:
    with pytest.raises(DecompressionError) as refusal:
        decompress(Codec.SNAPPY, bytes.fromhex(data))
    assert str(refusal.value) == f"snappy: {what}"


INT32 = st.integers(-(2**31), 2**31 - 1)


def written(value: int) -> bytes:
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_numbers_have_the_bytes_of_the_specification(value: int, data: str) -> None:
    assert written(value).hex() == data
    assert read_varlong(bytes.fromhex(data), 0) == (value, len(data) // 2)


@given(INT32)
def test_an_int32_comes_back(value: int) -> None:
    assert read_varint(b"x" + written(value), 1) == (value, 1 + len(written(value)))


def test_bits_beyond_the_width_are_dropped_as_in_java() -> None:
    assert read_varint(bytes.fromhex("feffffff7f"), 0) == (2**31 - 1, 5)


@pytest.mark.parametrize(("read", "size"), [(read_varint, 5), (read_varlong, 10)])
def test_a_number_that_does_not_end_is_refused(read: object, size: int) -> None:
    assert callable(read)
    with pytest.raises(InvalidRecordError, match=rf"at byte 1: a number takes more than {size} bytes$"):
        read(b"x" + b"\x80" * 20, 1)
    with pytest.raises(InvalidRecordError, match=r"at byte 0: a number runs past the end of the records$"):
        read(b"\x80" * (size - 1), 0)


def test_checksums_have_the_check_values_of_their_standards_and_go_on_from_what_stands_before() -> None:
    assert (crc32c(b"123456789"), crc32(b"123456789")) == (0xE3069283, 0xCBF43926)
    assert crc32c(memoryview(b"6789"), crc32c(bytearray(b"12345"))) == 0xE3069283
