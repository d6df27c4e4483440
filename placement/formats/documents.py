"""Find JSON documents in a text, bound their size, parse them, and look values up.

Source: RFC 8259.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs

from broker.errors import InputError
from placement.formats.text import escaped

JSON_BYTES_MAX: Final = 256 << 20  # Python's objects take some ten times the text: at most 2.5 GB.
_BEGIN: Final = re.compile(r"^[ \t\r]*(?=[{\[])", re.MULTILINE)


@attrs.frozen
class Document:
    """Hold one parsed object, its first line number, and the last line of text before it."""

    value: dict[str, Any]
    line: int
    caption: str


@attrs.frozen
class Documents:
    """Hold the documents of a text, and the number of other non-blank lines around them."""

    documents: tuple[Document, ...]
    lines_passed_over: int


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector, which takes four fifths of the time in which a JSON of 100 MB is parsed."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def collect(chunks: Iterable[bytes], *, source: str) -> str:
    """Return the whole text; raise InputError when it is larger than `JSON_BYTES_MAX`."""
    held, size_bytes = [], 0
    for chunk in chunks:
        size_bytes += len(chunk)
        if size_bytes > JSON_BYTES_MAX:
            what = f"the JSON text is larger than {JSON_BYTES_MAX} bytes, the most that is read"
            raise InputError(what, source=source)
        held.append(chunk)
    return escaped(b"".join(held))


def find_documents(text: str, *, source: str) -> Documents:
    """Return the JSON objects in `text`; raise InputError for invalid JSON or a list."""
    found: list[Document] = []
    others = 0
    place = 0
    while (begin := _BEGIN.search(text, place)) is not None:
        between = [line.strip() for line in text[place : begin.start()].splitlines() if line.strip()]
        others += len(between)
        line = text.count("\n", 0, begin.end()) + 1
        value, place = _decode(text, begin.end(), source)
        if not isinstance(value, dict):
            raise InputError("the JSON is a list; every known format is an object", source=source, line=line)
        found.append(Document(value, line, between[-1] if between else ""))
    others += sum(1 for line in text[place:].splitlines() if line.strip())
    return Documents(tuple(found), others)


def parse_object(text: str, *, source: str, shown_by: str = "") -> dict[str, Any]:
    """Return the one JSON object in `text`; raise InputError for any other text.

    `shown_by` is the command that shows the form of such an object; the error names it.
    """
    begin = len(text) - len(text.lstrip())
    value, end = _decode(text, begin, source) if text.startswith("{", begin) else (None, begin)
    if not isinstance(value, dict) or text[end:].strip():
        hint = f"; `{shown_by}` shows one" if shown_by else ""
        raise InputError(f"not one JSON object{hint}", source=source, value=text[:200])
    return value


def _decode(text: str, place: int, source: str) -> tuple[Any, int]:
    try:
        with collector_paused():
            return _DECODER.raw_decode(text, place)
    except RecursionError:
        what = "the JSON is nested more deeply than any known format"
        raise InputError(what, source=source, line=text.count("\n", 0, place) + 1) from None
    except json.JSONDecodeError as error:
        what = f"the JSON is damaged at column {error.colno}: {error.msg}"
        raise InputError(
            what, source=source, line=error.lineno, value=text[error.pos : error.pos + 40] or None
        ) from None
    except ValueError as error:
        what = f"the JSON has a number that cannot be read: {error.args[0]}"
        raise InputError(what, source=source, line=text.count("\n", 0, place) + 1) from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def folded(value: Any) -> dict[str, Any]:
    """Return an object, its keys in lower case without punctuation, as tools print "min-isr", "minIsr" and "MinIsr".

    The first of equal keys stays; an empty dict if `value` is no object.
    """
    result: dict[str, Any] = {}
    for key, item in value.items() if isinstance(value, dict) else ():
        result.setdefault("".join(filter(str.isalnum, key.lower())), item)
    return result


def brief(value: Any) -> str:
    """Return the text shown for a rejected `value`: a string itself, or the first 400 characters of its JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=True, default=str)[:400]
    except (RecursionError, ValueError):
        return "(an entry too deep or too large to show)"


def plain(value: Any, length_max: int = 249) -> str | None:
    """Return the first `length_max` characters of a string without unpaired surrogates; None for other values."""
    if not isinstance(value, str) or not value:
        return None
    return value[:length_max].encode("utf-8", "backslashreplace").decode("utf-8")
