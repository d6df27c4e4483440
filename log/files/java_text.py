"""Read small texts as Java does: lines, fields and numbers.

What it decides: what a checkpoint file says when it is not as tidy as Kafka writes it: Java accepts some texts that
Python refuses, and the other way round.

Goals, most important first: the same texts are accepted, with the same meaning, and the same fault is found first.

Constraints: nothing here is slower than linear, whatever the text.

Example:

    >>> split_fields("a 0 5 ")
    ('a', '0', '5')
    >>> split_fields(" a 0 5")
    ('', 'a', '0', '5')

Source: the specifications of BufferedReader.readLine, String.split and Integer.parseInt, Java 17.
"""

from __future__ import annotations

import re
from typing import Final

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_WHITE_SPACE: Final = re.compile(r"[ \t\n\x0b\f\r]+")
_NUMBER: Final = re.compile(r"([+-]?)(\d+)")
_DIGITS_MAX: Final = 19  # Of the largest 64-bit number; more, and the text is out of every range.


def lines_of(text: str) -> tuple[str, ...]:
    """Return the lines as Java's `readLine` returns them: ended by CR, LF or both."""
    lines = _LINE_END.split(text)
    return tuple(lines[:-1] if lines[-1] == "" else lines)


def split_fields(line: str, separator: re.Pattern[str] = _WHITE_SPACE) -> tuple[str, ...]:
    """Return `line` split as Java's `String.split` does: drop empty fields at the end, keep those at the start."""
    fields = separator.split(line)
    if len(fields) == 1:
        return (line,)
    while fields and fields[-1] == "":
        fields.pop()
    return tuple(fields)


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
