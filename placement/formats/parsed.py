"""Hold the result of reading one input: clusters, rejects, and row counts that must add up.

Every entry of an input (a row) is either analysed or rejected; `ParsedDump` checks that rows in = rows analysed + rows
rejected, and that each rejected row is listed. Lines that describe nothing (blank lines, headings, warnings) are no
rows; they are skipped and counted.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.cluster import ClusterView
from broker.errors import InputError, NothingUsableError, UsageError, shorten
from broker.wholeness import unread

VALUE_LENGTH_MAX: Final = 200  # Characters: enough to find the entry in its file, too few to fill a table.
BROKERS_MAX: Final = 10_000  # Ten times the largest clusters known; some answers look at each pair of brokers.
REJECTS_MAX: Final = 500_000  # About 250 MB of Python objects: a file with more is no dump with some damage.


def shown(text: str) -> str:
    """Return `text` cut to 200 characters, without code points that UTF-8 cannot encode."""
    return text[:VALUE_LENGTH_MAX].encode("utf-8", "backslashreplace").decode("utf-8")[:VALUE_LENGTH_MAX]


@attrs.frozen
class Reject:
    """Describe one entry that could not be used; `line` counts from 1, None where the format has no lines.

    `is_repeat` says that it repeats an entry that was used, so that nothing of the cluster is lost with it.
    """

    source: str
    line: int | None
    reason: str
    value: str = attrs.field(converter=shown)
    is_repeat: bool = False


@attrs.define
class RowCounts:
    """Count rows and collect rejects while one input is read; `dump` checks and returns the result."""

    source: str
    format: str
    lines_passed_over: int = 0
    first_passed_over: tuple[int, str] | None = None
    rows_analysed: int = 0
    rejects: list[Reject] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)

    def reject(self, reason: str, value: str, *, line: int | None = None, is_repeat: bool = False) -> None:
        """Reject one row; raise InputError when there are too many to list."""
        if len(self.rejects) >= REJECTS_MAX:
            raise InputError(
                f"more than {REJECTS_MAX} entries cannot be used; the latest: {reason}",
                source=self.source,
                line=line,
                value=value,
            )
        self.rejects.append(Reject(self.source, line, reason, value, is_repeat))

    def pass_over(self, line: int, text: str) -> None:
        """Count a line that is not blank and describes nothing."""
        self.lines_passed_over += 1
        self.first_passed_over = self.first_passed_over or (line, text)

    def _said_of_lines(self) -> tuple[str, ...]:
        """Return the note on lines that describe nothing."""
        if self.first_passed_over is None:
            return ()
        number, text = self.first_passed_over
        count = self.lines_passed_over
        are = "line is no row and was" if count == 1 else "lines are no rows and were"
        return (f"{count:,} {are} passed over; the first: line {number}, {shorten(text.strip())!r}",)

    def dump(self, clusters: tuple[ClusterView, ...]) -> ParsedDump:
        """Return the finished dump, its clusters not whole where a row is lost; see broker/wholeness.py.

        Raises NothingUsableError when nothing could be used, InputError for more than `BROKERS_MAX` brokers.
        """
        if self.rows_analysed == 0:
            raise self._nothing_usable()
        widest = max((len(cluster.brokers) for cluster in clusters), default=0)
        if widest > BROKERS_MAX:
            what = f"the rows name {widest:,} brokers; clusters of at most {BROKERS_MAX:,} are read"
            raise InputError(what, source=self.source)
        lost = self._lost()
        return ParsedDump(
            source=self.source,
            format=self.format,
            clusters=tuple(attrs.evolve(each, missing=(*lost, *each.missing)) for each in clusters),
            rejects=tuple(self.rejects),
            rows_in=self.rows_analysed + len(self.rejects),
            rows_analysed=self.rows_analysed,
            rows_rejected=len(self.rejects),
            lines_passed_over=self.lines_passed_over,
            notes=(*self.notes, *self._said_of_lines()),
        )

    def _lost(self) -> tuple[str, ...]:
        """Return the reason why clusters are not whole of which rows could not be read."""
        lost = [each for each in self.rejects if not each.is_repeat]
        total = self.rows_analysed + len(self.rejects)
        return (unread(len(lost), total, lost[0].line, lost[0].reason),) if lost else ()

    def _nothing_usable(self) -> NothingUsableError:
        if not self.rejects:
            what = f"nothing in this {self.format} input describes a cluster"
            return NothingUsableError(what, source=self.source)
        first = self.rejects[0]
        count = len(self.rejects)
        others = "" if count == 1 else f" (and {count - 1} more entries cannot be used)"
        return NothingUsableError(
            f"nothing can be used: {first.reason}{others}", source=self.source, line=first.line, value=first.value
        )


@attrs.frozen(kw_only=True)
class ParsedDump:
    """Hold the result of one input: rows_in == rows_analysed + rows_rejected, and `rejects` has every rejected row."""

    source: str
    format: str
    clusters: tuple[ClusterView, ...]
    rejects: tuple[Reject, ...]
    rows_in: int
    rows_analysed: int
    rows_rejected: int
    lines_passed_over: int
    notes: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.rows_in != self.rows_analysed + self.rows_rejected or self.rows_rejected != len(self.rejects):
            raise UsageError(
                f"{self.source}: {self.rows_in} rows in are not {self.rows_analysed} analysed "
                f"and {self.rows_rejected} rejected, of which {len(self.rejects)} are listed"
            )


def first_few(sentences: list[str], *, total: int | None = None, shown_max: int = 10) -> list[str]:
    """Return the first ten sentences, and a sentence that counts the rest of `total`."""
    count = len(sentences) if total is None else total
    more = count - min(len(sentences), shown_max)
    return sentences[:shown_max] + ([f"and {more} more of this kind"] if more else [])
