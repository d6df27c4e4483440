"""Split one line of CSV into its fields.

What it decides: a field may be quoted; in quotes a comma is text, and two quotes are one. Blanks around a field or its
quotes are no part of it.

Example:

    >>> csv_fields('"0", "room 2, ""north"" row"', source="racks.csv", line=1)
    ('0', 'room 2, "north" row')

Left out: fields that go on over several lines. Source: RFC 4180.
"""

from __future__ import annotations

import csv
import re
from typing import Final

from broker.errors import InputError

_BLANK_AFTER_QUOTE: Final = re.compile(r'(?<!")"[ \t]+,')


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
