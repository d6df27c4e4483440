"""Read the files that users write by hand: their text, and the fields of their CSV lines.

A field may be quoted; in quotes a comma is text, and two quotes are one. Blanks around a field or its quotes are no
part of it; blank lines and those that begin with # are skipped. Left out: fields over several lines. Source: RFC 4180.

    >>> csv_fields('"0", "room 2, ""north"" row"', source="racks.csv", line=1)
    ('0', 'room 2, "north" row')
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Final

from broker.errors import InputError
from placement.formats.text import escaped, utf8_chunks

_BLANK_AFTER_QUOTE: Final = re.compile(r'(?<!")"[ \t]+,')


def own_text(data: bytes, what: str, *, size_bytes_max: int, source: str) -> str:
    """Return a file's bytes as text; raise InputError for more than `size_bytes_max` of them."""
    if len(data) > size_bytes_max:
        raise InputError(f"the {what} file is larger than {size_bytes_max} bytes", source=source)
    return escaped(b"".join(utf8_chunks([data])))


def csv_rows(text: str, *, source: str) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Yield the number, the text and the fields of each line; raise InputError as `csv_fields`."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line, csv_fields(line, source=source, line=number)


def csv_fields(text: str, *, source: str, line: int) -> tuple[str, ...]:
    """Return the fields of one line; raise InputError for quotes that are not closed, or not around a whole field."""
    bare = text.strip()
    if '"' not in bare:
        return tuple(field.strip() for field in bare.split(","))
    try:
        # A blank between a closing quote and the comma is no part of RFC 4180, but of files edited by hand.
        (fields,) = csv.reader([_BLANK_AFTER_QUOTE.sub('",', bare)], strict=True, skipinitialspace=True)
    except (csv.Error, ValueError):
        what = "the quotes of a field are not closed, or not around the whole of it"
        raise InputError(what, source=source, line=line, value=bare) from None
    return tuple(field.strip() for field in fields)
