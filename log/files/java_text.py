"""Read small texts as Java does: lines, fields, numbers, and Kafka's Base64 of a Uuid.

What it decides: what a checkpoint file says when it is not as tidy as Kafka writes it: Java accepts some texts that
Python refuses, and the other way round.

Goals, most important first: the same texts are accepted, with the same meaning, and the same fault is found first.

Constraints: nothing here is slower than linear, whatever the text.

Example:

    >>> split_fields("a 0 5 ")
    ('a', '0', '5')
    >>> split_fields(" a 0 5")
    ('', 'a', '0', '5')

Source: the specifications of BufferedReader.readLine, String.split, Integer.parseInt and Base64, Java 17.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

UUID_SIZE_BYTES: Final = 16
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_WHITE_SPACE: Final = re.compile(r"[ \t\n\x0b\f\r]+")
_NUMBER: Final = re.compile(r"([+-]?)(\d+)")
_BASE64_URL: Final = re.compile(r"[A-Za-z0-9_-]*={0,2}")
_DIGITS_MAX: Final = 19  # Of the largest 64-bit number; more, and the text is out of every range.
_UUID_TEXT_LENGTH_MAX: Final = 24  # Kafka's own bound: 22 digits and padding.


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


def encode_uuid(uuid: bytes) -> str:
    """Return the 22 characters that Kafka prints for an id of 16 bytes."""
    assert len(uuid) == UUID_SIZE_BYTES, uuid
    return urlsafe_b64encode(uuid).decode("ascii").rstrip("=")


def decode_uuid(text: str) -> bytes | None:
    """Return the 16 bytes of an id; None where Kafka's `Uuid.fromString` throws."""
    if len(text) > _UUID_TEXT_LENGTH_MAX or _BASE64_URL.fullmatch(text) is None:
        return None
    digits = text.rstrip("=")
    if len(digits) % 4 == 1 or (digits != text and len(text) % 4):
        return None
    decoded = urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
    return decoded if len(decoded) == UUID_SIZE_BYTES else None
