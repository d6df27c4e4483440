"""Escape untrusted text, format a count with its noun or a list that is cut, and find the nearest known name.

Example:

    >>> counted(1, "broker"), counted(2_000, "batch", "batches")
    ('1 broker', '2,000 batches')
    >>> listed(["a", "b"], 5)
    'a, b and 3 more'
    >>> nearest("log.retention.m", ["log.retention.ms", "log.roll.ms"])
    'log.retention.ms'
    >>> unknown("scenario", "M00", ["M01", "M11"], "brokerside mirror --list")
    "there is no scenario 'M00'; the nearest is 'M01'; `brokerside mirror --list` prints all names"

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from broker.errors import shorten

NAME_LENGTH_MAX: Final = 200
"""Characters of an unknown name that are compared: no known name is longer, and the comparison costs length squared."""


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun as text; `many` is the plural where it is not `one` with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(first: Sequence[str], count: int) -> str:
    """Return the first of `count` names as text, and how many more there are."""
    more = count - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


def first_of(names: Iterable[object], limit: int) -> str:
    """Return the first `limit` names as text, and how many more there are."""
    every = [str(each) for each in names]
    return listed(every[:limit], len(every))


def brokers_listed(ids: Iterable[object], limit: int = 5) -> str:
    """Return brokers as text, the first `limit` of them; `ids` may have more words each, such as a rack.

    >>> brokers_listed([4]), brokers_listed([4, 5, 6], 2)
    ('broker 4', 'brokers 4, 5 and 1 more')
    """
    every = list(ids)
    return f"broker{'' if len(every) == 1 else 's'} {first_of(every, limit)}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, in any case; None if none is like it."""
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name[:NAME_LENGTH_MAX].lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None


def unknown(kind: str, name: str, known: Iterable[str], command: str) -> str:
    """Return the error sentence for an unknown name: the nearest known name, and the command that lists all."""
    near = nearest(name, known)
    hint = "" if near is None else f"; the nearest is {near!r}"
    return f"there is no {kind} {shorten(name)!r}{hint}; `{command}` prints all names"


def printable(text: str) -> str:
    """Return `text` with every character that is not printable written as an escape: \\x1b, \\u202e."""
    if text.isprintable():  # Most names; surrogates are not printable.
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in encodable(text)
    )


def encodable(text: str) -> str:
    r"""Return `text` as UTF-8 can encode it: bytes of a file name that are not UTF-8, and surrogates, as escapes.

    >>> print(encodable("caf\udce9.txt"))
    caf\xe9.txt
    """
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
