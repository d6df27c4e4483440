"""Both checksums against the check values of their standards, and piece by piece."""

from __future__ import annotations

from log.codecs.crc import crc32, crc32c


def test_the_check_values_of_the_standards() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32(b"123456789") == 0xCBF43926


def test_a_checksum_goes_on_from_what_stands_before() -> None:
    assert crc32c(memoryview(b"6789"), crc32c(bytearray(b"12345"))) == 0xE3069283
