"""Find JSON documents in a text, bound their size, parse them, and look values up.

Other text may stand around them, and before them on their line: log lines, captions, prompts. A line that begins with
`{` is JSON, damaged if it does not parse; a brace or a bracket elsewhere is JSON only if it parses. Where nothing is
found, or damage, the text is read again without what a paste added to it (pasted.py).

Source: RFC 8259.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import attrs

from broker.errors import InputError
from placement.formats.parsed import RowCounts
from placement.formats.pasted import JSON, Cleaning
from placement.formats.text import escaped

JSON_BYTES_MAX: Final = 256 << 20
OBJECTS_BYTES_MAX: Final = 512 << 20
OBJECTS_BYTES_PER_BYTE: Final = 20  # The densest dump, compact JSON of kcat, takes 15; empty objects take 68.
_OBJECT_BYTES, _LIST_BYTES, _ITEM_BYTES = 184, 56, 20
_CLEANED_MAX: Final = 8 << 20  # A text that somebody pasted is no larger.
_HEAD: Final = 1 << 16
_LOG_KEYS: Final = frozenset(
    {"level", "severity", "msg", "message", "time", "timestamp", "ts", "logger", "log", "stream"}
)
_TRIES_MAX: Final = 1_000  # So many braces in other text are looked at; each may read to the text's end.
_BEGIN: Final = re.compile(
    r"(?P<bare>^[ \t\r]*(?=\{|\[[ \t\r]*(?:[\[{\"\]]|$)))|(?=\{\s*[\"}]|\[\s*[\[{])", re.MULTILINE
)


_HEADING: Final = re.compile(
    r"(current partition replica assignment|proposed partition reassignment( configuration)?|save this to use as the "
    r"--reassignment-json-file option during rollback|successfully started .*reassignments?\b.*)[:.]?",
    re.IGNORECASE,
)
"""What kafka-reassign-partitions prints around its own documents; ReassignPartitionsCommand, 2.5 to 4.4."""


@attrs.frozen
class Document:
    """Hold one parsed object, its first line number, and the last line of text before it."""

    value: dict[str, Any]
    line: int
    caption: str
    is_inline: bool = False


@attrs.frozen
class Documents:
    """Hold the documents of a text, and the number and the first of other lines: not blank, and no tool's headings."""

    documents: tuple[Document, ...]
    lines_passed_over: int
    first_passed_over: tuple[int, str] | None = None

    def row_counts(self, source: str, format_name: str, notes: Iterable[str] = ()) -> RowCounts:
        """Return the account of an input of these documents, which begins with the lines passed over."""
        return RowCounts(source, format_name, self.lines_passed_over, self.first_passed_over, notes=[*notes])

    def known(self, is_known: Callable[[dict[str, Any]], bool]) -> Documents:
        """Return the documents without log lines, and without those inside other text of a kind that is not known."""
        noise = [not is_known(one.value) and (one.is_inline or _is_log_line(one.value)) for one in self.documents]
        if all(noise) or not any(noise):
            return self
        kept = tuple(one for one, is_noise in zip(self.documents, noise, strict=True) if not is_noise)
        strange = self.documents[noise.index(True)]
        first = strange.line, f"{strange.caption} {brief(strange.value)}"
        over = self.lines_passed_over + len(self.documents) - len(kept)
        return Documents(kept, over, min(filter(None, (self.first_passed_over, first))))


def _is_log_line(value: dict[str, Any]) -> bool:
    """Return whether an object is a line that a log collector or a logger has written."""
    return len(folded(value).keys() & _LOG_KEYS) > 1


class _DamageError(InputError):
    """Report what begins as JSON does and is none; `place` is where reading it ended."""

    place: int = 0


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector, which takes four fifths of the parsing time of a 100 MB JSON file."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def collect(chunks: Iterable[bytes], *, source: str) -> str:
    """Return the whole text; raise InputError when it is larger than `JSON_BYTES_MAX`."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        if len(held) > JSON_BYTES_MAX:
            what = f"the JSON text is larger than {JSON_BYTES_MAX} bytes, the most that is read"
            raise InputError(what, source=source)
    return escaped(held)


def check_objects(text: str, *, source: str) -> None:
    """Raise InputError for a text whose objects and lists would take far more memory than those of a dump or a plan."""
    counts = text.count("{"), text.count("["), text.count(",")
    needed = sum(count * size for count, size in zip(counts, (_OBJECT_BYTES, _LIST_BYTES, _ITEM_BYTES), strict=True))
    if needed > max(OBJECTS_BYTES_MAX, OBJECTS_BYTES_PER_BYTE * len(text)):
        what = (
            f"the JSON has {counts[0]:,} objects and {counts[1]:,} lists in {len(text):,} characters, more than fit in "
            "memory; kafka-topics --describe prints as text what a cluster of this size holds"
        )
        raise InputError(what, source=source)


def find_documents(text: str, *, source: str) -> Documents:
    """Return the JSON objects in `text`, those of a list of objects too; raise InputError for damaged JSON."""
    check_objects(text, source=source)
    damage: InputError | None = None
    try:
        found = _Finder(text, source).found()
    except InputError as error:
        damage, found = error, Documents((), 0)
    if found.documents or len(text) > _CLEANED_MAX:
        if damage is not None:
            raise damage
        return found
    cleaning = Cleaning.of(text[:_HEAD], JSON)
    if cleaning.is_needed:
        with suppress(InputError):
            again = _Finder(cleaning.applied(text), source).found()
            if again.documents:
                return again
    if damage is not None:
        raise damage
    return found


@attrs.define
class _Finder:
    """Read a text from one document to the next."""

    text: str
    source: str
    documents: list[Document] = attrs.field(factory=list)
    others: int = 0
    first_other: tuple[int, str] | None = None
    damage: _DamageError | None = None
    _place: int = 0
    _line: int = 1
    _caption: str = ""
    _tries_left: int = _TRIES_MAX

    def found(self) -> Documents:
        """Return the documents; raise InputError for what begins as one on a line of its own and is none."""
        begins_at = 0
        budget = 4 * len(self.text) + (1 << 20)
        while self._tries_left and budget > 0 and (begin := _BEGIN.search(self.text, begins_at)) is not None:
            try:
                value, end = _decode(self.text, begin.end(), self.source)
            except _DamageError as damage:
                follows = self.text[begin.end() : begin.end() + 200].lstrip("[{ \t\r\n")
                if begin["bare"] is not None and follows[:1] in ("", '"'):
                    raise
                self.damage = self.damage or damage
                self._tries_left -= 1
                budget -= damage.place - begin.end()
                begins_at = begin.end() + 1
                continue
            self._add(value, begin.end(), is_inline=begin["bare"] is None)
            self._place = begins_at = end
        self._pass_over(len(self.text))
        if self.damage is not None and not self.documents:
            raise self.damage
        return Documents(tuple(self.documents), self.others, self.first_other)

    def _add(self, value: Any, begin: int, *, is_inline: bool) -> None:
        self._pass_over(self.text.rfind("\n", 0, begin) + 1)
        self._line += self.text.count("\n", self._place, begin)
        before = self.text[self.text.rfind("\n", 0, begin) + 1 : begin] if is_inline else ""
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(each, dict) for each in values):
            what = "the JSON is a list; every known format is an object"
            raise InputError(what, source=self.source, line=self._line)
        caption = before.strip() or self._caption
        self.documents += [Document(each, self._line, caption, is_inline) for each in values]
        self._caption = ""

    def _pass_over(self, end: int) -> None:
        """Count the lines that are neither blank nor headings from the last document to `end`, and advance to it."""
        for number, line in enumerate(self.text[self._place : end].split("\n"), start=self._line):
            if bare := line.strip():
                self._caption = bare
                if _HEADING.fullmatch(bare) is None:
                    self.others += 1
                    self.first_other = self.first_other or (number, bare)
        if end > self._place:
            self._line += self.text.count("\n", self._place, end)
            self._place = end


def parse_object(text: str, *, source: str, shown_by: str = "") -> dict[str, Any]:
    """Return the one JSON object in `text`; raise InputError for any other text.

    `shown_by` is the command that shows the form of such an object; the error names it.
    """
    check_objects(text, source=source)
    begin = len(text) - len(text.lstrip())
    value, end = _decode(text, begin, source) if text.startswith("{", begin) else (None, begin)
    if not isinstance(value, dict) or text[end:].strip():
        hint = f"; `{shown_by}` shows one" if shown_by else ""
        raise InputError(f"not one JSON object{hint}", source=source, value=text[:200])
    return value


def _decode(text: str, place: int, source: str) -> tuple[Any, int]:
    """Return the value that begins at `place`, and where it ends; raise _DamageError, which names line and column."""
    value: str | None = None
    line = at = place
    try:
        with collector_paused():
            return _DECODER.raw_decode(text, place)
    except RecursionError:
        what = "the JSON is nested more deeply than any known format"
    except json.JSONDecodeError as error:
        what, line, at = f"the JSON is damaged at column {error.colno}: {error.msg}", error.pos, error.pos
        value = text[error.pos : error.pos + 40] or None
    except ValueError as error:
        what = f"the JSON has a number that cannot be read: {error.args[0]}"
    damage = _DamageError(what, source=source, line=text.count("\n", 0, line) + 1, value=value)
    damage.place = at
    raise damage


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
