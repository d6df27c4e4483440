"""Decode UTF-8 as Java does, with U+FFFD for malformed bytes.

Python replaces the same sequences, except for a surrogate, for which Java gives one U+FFFD and Python one a byte.

Source: java.lang.String's UTF-8 decoder (malformed3, malformed4), OpenJDK 17.
"""

from __future__ import annotations

import re
from typing import Final

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_NEVER_UTF8: Final = b"\xff"


def decode_java_utf8(data: bytes) -> str:
    """Return the string that Java's `new String(data, UTF_8)` makes of `data`."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _SURROGATE.sub(_NEVER_UTF8, data).decode("utf-8", "replace")
