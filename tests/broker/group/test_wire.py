"""Binary fields that claim what the bytes do not hold, or what no field may be, are refused; the place is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.errors import CorruptDataError
from broker.group.wire import ByteReader


def refused(data: bytes, read: Callable[[ByteReader], object], *, is_flexible: bool = False) -> str:
    with pytest.raises(CorruptDataError) as refusal:
        read(ByteReader(data, what="fields", is_flexible=is_flexible))
    return str(refusal.value)


@pytest.mark.parametrize(
    ("data", "is_flexible", "told"),
    [
        (b"\xff\xff\xff\xff", False, "an array of -1 elements does not fit into the 0 bytes that are left"),
        (b"\x00", True, "an array of -1 elements does not fit into the 0 bytes that are left"),
        (b"\x00\x00\x00\x02abc", False, "an array of 2 elements does not fit into the 3 bytes that are left"),
        (b"\x03abc", True, "an array of 2 elements does not fit into the 3 bytes that are left"),
    ],
)
def test_an_array_that_is_null_or_longer_than_its_bytes_is_refused(data: bytes, is_flexible: bool, told: str) -> None:
    assert told in refused(data, lambda reader: reader.array_length(2), is_flexible=is_flexible)


@pytest.mark.parametrize(("data", "is_flexible"), [(b"\x00\x00\x00\x02abcd", False), (b"\x03abcd", True)])
def test_an_array_that_just_fits_is_read(data: bytes, is_flexible: bool) -> None:
    assert ByteReader(data, is_flexible=is_flexible).array_length(2) == 2


@pytest.mark.parametrize(("data", "is_flexible"), [(b"\xff\xff", False), (b"\x00", True)])
def test_a_string_is_null_only_where_it_may_be(data: bytes, is_flexible: bool) -> None:
    assert ByteReader(data, is_flexible=is_flexible).nullable_string() is None
    assert "a string is null that must not be" in refused(data, ByteReader.string, is_flexible=is_flexible)


@pytest.mark.parametrize(("data", "length"), [(b"\x80\x01", 128), (b"\xff\xff\xff\xff\x07", 2**31 - 1)])
def test_a_length_takes_seven_bits_of_each_byte_the_lowest_first(data: bytes, length: int) -> None:
    """KIP-482: an unsigned varint is one more than the length; here it stands for the number of tagged fields."""
    claimed = refused(data, lambda reader: reader.array_length(1), is_flexible=True)
    assert f"an array of {length - 1} elements" in claimed


def test_a_length_of_six_bytes_is_none() -> None:
    told = refused(b"\x80\x80\x80\x80\x80\x01", lambda reader: reader.array_length(1), is_flexible=True)
    assert "a length takes more than 5 bytes" in told


def test_tagged_fields_stand_only_in_flexible_versions() -> None:
    data = b"\x02\x00\x01a\x05\x02bc!"
    flexible, fixed = ByteReader(data, is_flexible=True), ByteReader(data)
    assert (flexible.tags(), flexible.left) == ({0: b"a", 5: b"bc"}, 1)
    fixed.end_structure()
    assert fixed.left == len(data)
