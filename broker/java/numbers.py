"""Parse whole numbers as Java's Integer.parseInt and Long.parseLong do, digits of other scripts included.

Example:

    >>> parse_number("+12", bits=32), parse_number("1.0", bits=32), parse_number("2147483648", bits=32)
    (12, None, None)

Source: the specification of Integer.parseInt, Java 17.
"""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = re.compile(r"([+-]?)(\d+)")
_DIGITS_MAX: Final = 19  # Of the largest 64-bit number; more, and the text is out of every range.


def parse_number(text: str, *, bits: int) -> int | None:
    """Return the signed number of 32 or 64 `bits` that parseInt or parseLong returns; None where Java throws."""
    match = _NUMBER.fullmatch(text)
    if match is None or any(sign > "\uffff" for sign in text):  # Java looks at UTF-16 units, and knows no such digit.
        return None
    digits = match[2].lstrip("0٠") or "0"
    if len(digits) > _DIGITS_MAX:
        # Zeros of other scripts in front are rare enough to be found the slow way.
        digits = "".join(str(int(digit)) for digit in digits).lstrip("0") or "0"
        if len(digits) > _DIGITS_MAX:
            return None
    number = int(match[1] + digits)
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None
