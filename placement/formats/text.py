"""Split bytes of any origin into blocks of whole UTF-8 lines.

Constraints: a block ends at a line's end and is about two mebibytes; a line longer than
`LINE_BYTES_MAX` is never held whole: its head comes as a block of its own, marked.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

BLOCK_BYTES: Final = 1 << 21  # Large enough that numpy's cost per call does not show.
LINE_BYTES_MAX: Final = 1 << 20  # A topic's Configs take kilobytes; a longer line is not a describe's.
HEAD_BYTES: Final = 4096  # What is kept of a line that is too long: enough to see whether it is a row.


@attrs.frozen
class Block:
    """Hold whole lines with their newlines; `first_line` counts from 1; `overlong` marks the head of one long line."""

    first_line: int
    data: bytes
    overlong: bool = False


def utf8_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Return the chunks without a byte order mark, UTF-16 decoded and encoded as UTF-8."""
    stream = iter(chunks)
    head = b""
    for chunk in stream:
        head += chunk
        if len(head) >= len(codecs.BOM_UTF8):
            break
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decoder = codecs.getincrementaldecoder("utf-16")("backslashreplace")
        yield decoder.decode(head).encode("utf-8")
        for chunk in stream:
            yield decoder.decode(chunk).encode("utf-8")
        yield decoder.decode(b"", True).encode("utf-8")
        return
    yield head.removeprefix(codecs.BOM_UTF8)
    yield from stream


def pieces(chunks: Iterable[bytes], size_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Return the same bytes in pieces of `size_bytes`; the last piece may be shorter."""
    held: list[bytes] = []
    held_bytes = 0
    for chunk in chunks:
        held.append(chunk)
        held_bytes += len(chunk)
        if held_bytes < size_bytes:
            continue
        joined = b"".join(held)
        whole = held_bytes - held_bytes % size_bytes
        for start in range(0, whole, size_bytes):
            yield joined[start : start + size_bytes]
        held, held_bytes = [joined[whole:]], held_bytes - whole
    if held_bytes:
        yield b"".join(held)


def line_blocks(chunks: Iterable[bytes]) -> Iterator[Block]:
    """Return blocks of whole lines of UTF-8 `chunks`; a missing final newline is added."""
    line = 1
    carry = b""
    head: bytes | None = None
    for piece in pieces(chunks):
        rest = piece
        if head is not None:
            end = piece.find(b"\n")
            if end < 0:
                continue
            yield Block(line, head, overlong=True)
            line, head, rest = line + 1, None, piece[end + 1 :]
        data = carry + rest
        cut = data.rfind(b"\n") + 1
        if cut:
            yield Block(line, data[:cut])
            line += data.count(b"\n", 0, cut)
        carry = data[cut:]
        if len(carry) > LINE_BYTES_MAX:
            head, carry = carry[:HEAD_BYTES], b""
    if head is not None:
        yield Block(line, head, overlong=True)
    elif carry:
        yield Block(line, carry + b"\n")


def escaped(data: bytes | bytearray) -> str:
    """Return `data` as text, bytes that are not UTF-8 shown as ``\\xff``."""
    return data.decode("utf-8", "backslashreplace")
