r"""Undo what terminals, log collectors, pagers and chats do to what a tool printed; lines keep their numbers.

Only what the text shows is undone: colours, zero-width characters and borders; the prefix that most rows share, and the
suffix that all do; tabs and newlines that stand as text; rows that were wrapped, which leave an empty line. Two
prefixes are alike where they differ in digits and in the width of blanks only. Nothing is guessed of a row.

    >>> cleaned("[pod/kafka-0] Topic: a\tPartition: 0\n[pod/kafka-0] Topic: a\tPartition: 1\n", DESCRIBE)
    'Topic: a\tPartition: 0\nTopic: a\tPartition: 1\n'
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import attrs

from placement.formats.text import escaped, line_blocks

_BLANKS: Final = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_NOTHING: Final = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_BORDERS: Final = "\u2502\u2503\u2506\u2507\u250a\u250b\u2551\u00a6\uff5c"
_TYPOGRAPHY: Final = str.maketrans(
    dict.fromkeys(_BLANKS, " ")
    | dict.fromkeys(_BORDERS, "|")
    | dict.fromkeys(_NOTHING, "")
    | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
)
# Control sequences (colours, the cursor), titles of windows, and the rest of two characters. Source: ECMA-48.
_SEQUENCES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_ESCAPES: Final = re.compile(r"(?:\\t|\\n|\\r|\^I|\^M)(?=[ \\^]*(?:[A-Za-z\[{}\"$]|\\|$))", re.MULTILINE)
_UNESCAPED: Final = {"\\t": "\t", "\\n": "\n", "\\r": "", "^I": "\t", "^M": ""}
_DIGITS: Final = re.compile(r"[0-9][0-9.:,]*")
_GAPS: Final = re.compile(r"\s+")
_SUFFIX: Final = re.compile(r"[\"'|,;$\\\s]*$")
_HELD_MAX: Final = 8 << 20
_ROW_LENGTH_MAX: Final = 1 << 16  # Each line that is joined to a row copies it.
PREFIX_LENGTH_MAX: Final = 300  # A pod's name and a timestamp take about a hundred characters.


@attrs.frozen
class Rows:
    """Distinguish the rows of one kind of text from other lines.

    `start` matches where a row begins, at any place of a line. `is_open` returns whether the row in the first line
    goes on in the second, given whether the first is as wide as any; None where no row of the kind is wrapped.
    """

    start: re.Pattern[str]
    is_open: Callable[[str, str, bool], bool] | None = None


_FIELD: Final = re.compile(
    r"\s*(TopicId|PartitionCount|ReplicationFactor|Configs|Partition|Leader|Replicas|Isr|Elr|LastKnownElr|Offline|"
    r"Observers|LiveObservers|Adding Replicas|Removing Replicas|MarkedForDeletion):",
    re.IGNORECASE,
)
_PAIRS: Final = re.compile(r"\s*,?[a-z][a-z0-9._-]*=\S*\s*$")
_WHOLE: Final = re.compile(r"(?:Configs|Isr|ReplicationFactor):", re.IGNORECASE)
# The rest of a list of ids, or of one id; alone, or before the field that follows.
_IDS_LEFT: Final = re.compile(r"[0-9,]*[0-9](?=\s*$|\s+[A-Z])")
_ID_ENDS: Final = tuple("0123456789,")
_HAS_CONFIGS: Final = re.compile(r"Configs:", re.IGNORECASE)


def _goes_on(row: str, line: str, is_widest: bool) -> bool:
    """Return whether `line` continues `row`, a row of kafka-topics --describe; `is_widest` of the line above it."""
    ends, field = row.rstrip(), _FIELD.match(line)
    if field is not None:
        return f"{field[1].lower()}:" not in row.lower()
    if ends.endswith(",") or (ends.endswith(":") and line.lstrip()[:1].isdigit()):
        return True
    if not _WHOLE.search(row):
        return True
    if _IDS_LEFT.match(line) and row[-1:] in _ID_ENDS and (is_widest or not line.strip().isdigit()):
        return True
    if is_widest and _HAS_CONFIGS.search(row) and " " not in line.strip():
        return True
    return _HAS_CONFIGS.search(row) is not None and _PAIRS.match(line) is not None


DESCRIBE: Final = Rows(re.compile(r"topic:(?=\s*\S)", re.IGNORECASE), _goes_on)
JSON: Final = Rows(re.compile(r"[{}\"]"))
KCAT: Final = Rows(re.compile(r"(?:topic \"|partition \d+, leader|broker \d+ at |\d+ (?:brokers|topics):)"))

TABLE: Final = Rows(re.compile(r"(?:PARTITION\s+LEADER\s|\d+\s+-?\d+\s+\d+\s+\[|[A-Z]+ +\| |BROKER +[A-Z(_])"))


def plain(text: str) -> str:
    """Return `text` without escape sequences, its blanks and quotes in ASCII."""
    shown = _SEQUENCES.sub("", text) if "\x1b" in text else text
    return shown if shown.isascii() else shown.translate(_TYPOGRAPHY)


@attrs.frozen
class Cleaning:
    """Hold what has to be undone in a text, as its first lines show it; `applied` does it line by line."""

    rows: Rows
    is_plain: bool = True
    is_escaped: bool = False
    prefix: re.Pattern[str] | None = None
    suffix: str = ""
    is_wrapped: bool = False
    width: int = 0
    is_broken: bool = False

    @classmethod
    def of(cls, head: str, rows: Rows) -> Cleaning:
        """Return what has to be undone in a text that begins with the lines `head`."""
        shown = plain(head)
        is_escaped = _is_escaped(shown, rows)
        shown = _unescaped(shown) if is_escaped else shown
        lines = [line for line in shown.split("\n") if line.strip()]
        prefix = _shared_prefix(lines, rows.start)
        suffix = _shared_suffix([line for line in lines if rows.start.search(line)]) if prefix or is_escaped else ""
        if prefix is not None or suffix:
            lines = [_cut(line, prefix, suffix) for line in lines]
        width = max(map(_columns, lines), default=0)
        is_broken = _is_broken(lines, rows, width)
        is_wrapped = is_broken or any(goes_on for _, goes_on in _joined(lines, rows, width, is_broken))
        return cls(
            rows,
            is_plain=plain(head) == head,
            is_escaped=is_escaped,
            prefix=prefix,
            suffix=suffix,
            is_wrapped=is_wrapped,
            width=width if is_wrapped else 0,
            is_broken=is_broken,
        )

    @property
    def is_needed(self) -> bool:
        """Return whether anything has to be undone."""
        return self != Cleaning(self.rows)

    def applied(self, text: str) -> str:
        """Return whole lines of text, cleaned."""
        shown = text if self.is_plain else plain(text)
        shown = _unescaped(shown) if self.is_escaped else shown
        if self.prefix is not None or self.suffix:
            shown = "\n".join(_cut(line, self.prefix, self.suffix) for line in shown.split("\n"))
        if not self.is_wrapped:
            return shown
        found: list[str] = []
        empty = 0
        for line, goes_on in _joined(shown.split("\n"), self.rows, self.width, self.is_broken):
            if goes_on:
                empty += 1
                found[-1] = line
                continue
            found += [""] * empty + [line]
            empty = 0
        return "\n".join(found + [""] * empty)

    def chunks(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Return the same text in blocks of whole lines, cleaned; the last row of a block waits for the next one."""
        held = ""
        for block in line_blocks(chunks):
            text = held + escaped(block.data)
            cut = self._last_row(text) if self.is_wrapped and len(text) < _HELD_MAX else len(text)
            held = text[cut:]
            yield self.applied(text[:cut]).encode()
        yield self.applied(held).encode()

    def _last_row(self, text: str) -> int:
        """Return where the line of the last row of `text` begins."""
        end = len(text)
        while end > 0:
            begin = text.rfind("\n", 0, end - 1) + 1
            if self.rows.start.search(text, begin, end):
                return begin
            end = begin
        return 0


def cleaned(text: str, rows: Rows) -> str:
    """Return `text` as it was printed; the same text where nothing was done to it."""
    cleaning = Cleaning.of(text, rows)
    return cleaning.applied(text) if cleaning.is_needed else text


def _is_escaped(text: str, rows: Rows) -> bool:
    """Return whether tabs and newlines stand as text in most of the rows."""
    starts = sum(1 for _ in rows.start.finditer(text))
    return (rows is JSON and '{\\"' in text) or 0 < starts <= len(_ESCAPES.findall(text))


def _unescaped(text: str) -> str:
    return _ESCAPES.sub(lambda found: _UNESCAPED[found[0]], text).replace('\\"', '"')


def _shared_prefix(lines: list[str], start: re.Pattern[str]) -> re.Pattern[str] | None:
    """Return a pattern of what stands before most rows, up to the blanks before their start; None for nothing."""
    before = [line[: found.start()].rstrip(" \t") for line in lines if (found := start.search(line)) is not None]
    if not before:
        return None
    counts = Counter(_shape(one) for one in before if len(one) <= PREFIX_LENGTH_MAX)
    shape, count = counts.most_common(1)[0] if counts else ("", 0)
    if not shape or count * 2 <= len(before):
        return None
    parts = (re.escape(part) for part in re.split(r"([0 ])", shape) if part)
    pattern = "".join({"0": r"[0-9][0-9.:,]*", r"\ ": r"\s+"}.get(part, part) for part in parts)
    return re.compile(rf"\s*{pattern} ?")


def _shape(prefix: str) -> str:
    return _GAPS.sub(" ", _DIGITS.sub("0", prefix.strip()))


def _shared_suffix(rows: list[str]) -> str:
    """Return what all rows end with of quotes, borders and blanks."""
    ends = [found[0] for row in rows if (found := _SUFFIX.search(row)) is not None]
    shortest = min(ends, key=len, default="")
    tails = (shortest[start:] for start in range(len(shortest)))
    return next((tail for tail in tails if all(end.endswith(tail) for end in ends)), "").strip()


def _cut(line: str, prefix: re.Pattern[str] | None, suffix: str) -> str:
    found = None if prefix is None else prefix.match(line)
    rest = line if found is None else line[found.end() :]
    return rest.rstrip().removesuffix(suffix) if suffix else rest


def _joined(lines: Iterable[str], rows: Rows, width: int, is_broken: bool) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it goes on with the row above, with which it is then joined.

    No line has more than `width` columns; with `is_broken` those that have as many go on, as a terminal breaks them.
    """
    row: str | None = None
    piece = ""
    for line in lines:
        if row is not None and len(row) < _ROW_LENGTH_MAX and line.strip() and rows.start.search(line) is None:
            is_widest = _fills(piece, line, width)
            if is_broken and is_widest:
                row, piece = row + line.rstrip("\r"), line.rstrip("\r")
                yield row, True
                continue
            if rows.is_open is not None and rows.is_open(row, line, is_widest):
                gap = " " if _FIELD.match(line) else ""
                row, piece = row.rstrip("\r") + gap + line.lstrip(), line.rstrip("\r")
                yield row, True
                continue
        row = line.rstrip("\r") if rows.start.search(line) else None
        piece = line.rstrip("\r")
        yield line, False


def _columns(line: str) -> int:
    """Return the width of a line on a terminal, where a tab goes on to the next multiple of 8."""
    return len(line.rstrip("\r").expandtabs())


def _fills(piece: str, line: str, width: int) -> bool:
    """Return whether a terminal of `width` columns ends its line between `piece` and the start of `line`."""
    columns = _columns(piece)
    return columns == width or (line.startswith("\t") and columns < width < _columns(piece + "\t"))


def _is_broken(lines: list[str], rows: Rows, width: int) -> bool:
    """Return whether a terminal of `width` columns has broken most of the rows that reach its edge."""
    if rows.is_open is None:
        return False
    full = [
        rows.start.search(after) is None
        for line, after in itertools.pairwise(lines)
        if rows.start.search(line) and _fills(line, after, width)
    ]
    return len(full) > 1 and sum(full) * 2 > len(full)
