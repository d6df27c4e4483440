"""Read small texts as Java does: lines and fields.

What it decides: what a checkpoint file says when it is not as tidy as Kafka writes it: Java accepts some texts that
Python refuses, and the other way round.

Goals, most important first: the same texts are accepted, with the same meaning, and the same fault is found first.

Constraints: nothing here is slower than linear, whatever the text.

Example:

    >>> split_fields("a 0 5 ")
    ('a', '0', '5')
    >>> split_fields(" a 0 5")
    ('', 'a', '0', '5')

Source: the specifications of BufferedReader.readLine, String.split, Java 17.
"""

from __future__ import annotations

import re
from typing import Final

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_WHITE_SPACE: Final = re.compile(r"[ \t\n\x0b\f\r]+")


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
