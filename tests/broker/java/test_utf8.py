"""Text as Java decodes it. The answers were printed by OpenJDK 17."""

from __future__ import annotations

import pytest

from broker.java.utf8 import decode_java_utf8

REPLACEMENT = "\ufffd"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("é€😀".encode(), "é€😀"),
        (b"\x80", REPLACEMENT),
        (b"\xc0\xaf", REPLACEMENT * 2),
        (b"\xe0\x80\xaf", REPLACEMENT * 3),
        (b"\xed\xa0\x80", REPLACEMENT),
        (b"\xed\xa0A", REPLACEMENT + "A"),
        (b"\xe2\x82", REPLACEMENT),
        (b"\xf0\x9f\x98", REPLACEMENT),
        (b"\xf4\x90\x80\x80", REPLACEMENT * 4),
        (b"\xf5\x80\x80\x80", REPLACEMENT * 4),
        (b"a\xffb", f"a{REPLACEMENT}b"),
    ],
)
def test_what_is_not_utf8_becomes_as_many_marks_as_in_java(data: bytes, text: str) -> None:
    assert decode_java_utf8(data) == text
