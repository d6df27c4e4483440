"""Escape untrusted text so that a terminal does not interpret it."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return `text` with every character that is not printable written as an escape: \\x1b, \\u202e."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text.encode("utf-8", "backslashreplace").decode("utf-8")
    )
