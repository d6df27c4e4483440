"""Read small texts as Java does: lines and fields.

Source: the specifications of BufferedReader.readLine and String.split, Java 17.
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
