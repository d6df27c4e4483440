"""Units: sizes are read and printed in powers of 1024, and never beyond what Kafka counts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import UsageError
from broker.units import SIZE_BYTES_MAX, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("512", 512),
        ("512 B", 512),
        ("64 KiB", 65_536),
        ("64KiB", 65_536),
        (" 2 GiB ", 2 * 1024**3),
        ("1.5 MiB", 1_572_864),
        ("7 EiB", 7 * 1024**6),
        (str(SIZE_BYTES_MAX), SIZE_BYTES_MAX),
    ],
)
def test_a_size_is_read(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["", "B", "-1", "1 KB", "1kib", "1e3", "1,5 MiB", "٣", "1 2", "0x10", "1." + "0" * 10])
def test_what_is_no_size_is_refused(text: str) -> None:
    message = f"size {text!r} is not a number of bytes, KiB, MiB, GiB, TiB, PiB or EiB"
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        parse_size(text)


@pytest.mark.parametrize("text", [str(SIZE_BYTES_MAX + 1), "8 EiB", "9999999999999999999 EiB"])
def test_more_than_a_java_long_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"^size '{text}' is more than {SIZE_BYTES_MAX} bytes$"):
        parse_size(text)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (2 * 1024**3, "2 GiB"),
        (-1536, "-1.5 KiB"),
        (1.5, "1.5 B"),
        (1024**6, "1 EiB"),
        (1024**7, "1024 EiB"),
    ],
)
def test_a_size_is_printed_for_people(size_bytes: float, text: str) -> None:
    assert format_size(size_bytes) == text


@given(st.integers(0, SIZE_BYTES_MAX // 2))
def test_a_printed_size_reads_back_within_its_rounding(size_bytes: int) -> None:
    # One decimal of a number that is at least 1: half of a tenth is the worst.
    assert abs(parse_size(format_size(size_bytes)) - size_bytes) <= max(1, size_bytes * 0.0501)
