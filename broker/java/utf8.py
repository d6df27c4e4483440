"""Decode UTF-8 as Java does, with U+FFFD for malformed bytes.

Source: java.lang.String's UTF-8 decoder (malformed3, malformed4), OpenJDK 17.
"""

from __future__ import annotations

import codecs
from typing import Final

REPLACEMENT: Final = "\ufffd"
_ERRORS: Final = "brokerside.java"


def decode_java_utf8(data: bytes) -> str:
    """Return the string that Java's `new String(data, UTF_8)` makes of `data`."""
    return data.decode("utf-8", _ERRORS)


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return REPLACEMENT, error.start + _malformed_length(error.object[error.start : error.start + 4])


def _malformed_length(data: bytes) -> int:
    """Return the length in bytes of the malformed sequence at the start of `data` that becomes one U+FFFD."""
    first = data[0]
    if 0xE0 <= first <= 0xEF:
        wanted = 3
    elif 0xF0 <= first <= 0xF4:
        wanted = 4
    else:
        return 1
    if len(data) == 1 or not _may_follow(first, data[1]):
        return 1
    length = 2
    while length < min(wanted, len(data)) and 0x80 <= data[length] <= 0xBF:
        length += 1
    return length


def _may_follow(first: int, second: int) -> bool:
    """Return whether Java accepts `second` after a lead byte: not for an overlong or too large character."""
    lowest = {0xE0: 0xA0, 0xF0: 0x90}.get(first, 0x80)
    highest = 0x8F if first == 0xF4 else 0xBF
    return lowest <= second <= highest


codecs.register_error(_ERRORS, _replace)
