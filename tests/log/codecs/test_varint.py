"""Checksums, and zig-zag varints: the specification's examples, the largest and smallest, and what is no number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from log.codecs.crc import crc32, crc32c
from log.codecs.varint import read_varint, read_varlong, write_varint
from log.errors import InvalidRecordError

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
