"""Read and write Java's properties files: `key=value` lines with escapes.

What it decides: what `meta.properties` says to Java, which reads it as Latin-1 with escapes.

Goals, most important first: what Java reads is read the same; what is written is what Java would write, but for the
date.

Constraints: linear in the text; a key named twice has its last value.

Example: parse_properties(b"# made by hand\\nnode.id : 2\\ncluster.id=a\\\\\\n  b\\n") gives node.id "2", cluster.id
"ab".

Left out: the comment with the date that Java writes on the second line; nothing reads it, and no clock is asked here.

Source: the specification of java.util.Properties, Java 17.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from log.errors import CheckpointError
from log.files.java_text import lines_of
from log.storage.protocol import Buffer

_BLANKS: Final = " \t\f"
_KEY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)\\?[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u(.{0,4})|.|$)", re.DOTALL)
_HEX: Final = re.compile(r"[0-9A-Fa-f]{4}")
_NAMED_SIGNS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ILLEGAL_ARGUMENT: Final = "java.lang.IllegalArgumentException"


def parse_properties(data: Buffer, *, source: str = "") -> dict[str, str]:
    """Return the properties in the file's order; raise CheckpointError for a malformed escape."""
    found = {}
    for line in _logical_lines(bytes(data).decode("latin-1")):
        key = _KEY.match(line)
        assert key is not None, line  # An empty key matches.
        found[_unescaped(key[1], source)] = _unescaped(line[key.end() :], source)
    return found


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Return the properties file in the order given, in UTF-8 as Kafka writes it."""
    lines = [f"{_escaped(key, is_key=True)}={_escaped(value)}\n" for key, value in properties.items()]
    return "".join(["#\n", *lines]).encode("utf-8")


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines that are neither blank nor comments; a backslash at the end joins the next to a line."""
    parts: list[str] = []
    for natural in lines_of(text):
        line = natural.lstrip(_BLANKS)
        if not parts and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            parts.append(line[:-1])
            continue
        yield "".join([*parts, line])
        parts.clear()
    if any(parts) or (parts and text.endswith("\\")):  # An empty line, joined to nothing, is one all the same.
        yield "".join(parts)


def _unescaped(text: str, source: str) -> str:
    def sign(match: re.Match[str]) -> str:
        if match[2] is None:
            return _NAMED_SIGNS.get(match[1], match[1])
        if _HEX.fullmatch(match[2]) is None:
            raise CheckpointError(f"malformed escape {match[0]!r}", source=source, kafka_class=_ILLEGAL_ARGUMENT)
        return chr(int(match[2], 16))

    return _ESCAPE.sub(sign, text)


def _escaped(text: str, *, is_key: bool = False) -> str:
    signs = re.sub(r"[\\=:#!]", lambda match: "\\" + match[0], text)
    for letter, sign in _NAMED_SIGNS.items():
        signs = signs.replace(sign, "\\" + letter)
    if is_key:
        return signs.replace(" ", "\\ ")
    return "\\" + signs if signs.startswith(" ") else signs
