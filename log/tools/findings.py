"""Describe damage by file, position and cause, count data read and skipped, and collect what kafka-dump-log reports.

Source: kafka.tools.DumpLogSegments, 4.3.1, for what it prints to standard error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Final

import attrs

from broker.errors import CorruptDataError, InputError
from broker.java.string_hash import java_string_hash
from broker.wording import counted
from log.batches.record_columns import Damage
from log.errors import ReadingLimitError

OFFSET_BYTES: Final = 8
_NOT_READ: Final = "not read further: "


@attrs.frozen
class Finding:
    """Describe one damage in a file; `more_count` counts unlisted damages of the same kind in the file.

    With `is_limit` it is no damage: a sound batch stands for more than is read.
    """

    file: str
    what: str
    position: int | None = None
    batch_offset: int | None = None
    more_count: int = 0
    is_limit: bool = False

    def line(self) -> str:
        """Return the finding as one line of text."""
        byte = "" if self.position is None else f" at byte {self.position}"
        batch = "" if self.batch_offset is None else f"{',' if byte else ''} batch at offset {self.batch_offset}"
        place = f"{byte}{batch}:" if byte or batch else ""
        more = f" ({self.more_count} more like it)" if self.more_count else ""
        return f"{self.file}:{place} {self.what}{more}"


@attrs.frozen
class Checked:
    """Count the data read, and the data skipped at damage."""

    file_count: int = 0
    batch_count: int = 0
    record_count: int = 0
    size_bytes: int = 0
    skipped_size_bytes: int = 0
    skipped_batch_count: int = 0
    """Batches that could be recognised in what was passed over."""

    def __add__(self, other: Checked) -> Checked:
        return Checked(*(mine + its for mine, its in zip(attrs.astuple(self), attrs.astuple(other), strict=True)))


def of_damage(file: str, damage: Damage) -> Finding:
    """Return the finding for damage that a scan has skipped."""
    what = damage.what
    if damage.is_torn_tail:
        what = _torn(damage.size_bytes)
    return Finding(file, what, damage.position, damage.base_offset)


def limit_finding(file: str, limits: Sequence[Damage]) -> tuple[Finding, ...]:
    """Return one finding for the batches of a file whose records stand for more than is read, if there are any."""
    if not limits:
        return ()
    first, what = of_damage(file, limits[0]), f"{_NOT_READ}{limits[0].what}; its checksum is right"
    return (attrs.evolve(first, what=what, more_count=len(limits) - 1, is_limit=True),)


def of_error(file: str, error: CorruptDataError, data: memoryview | None = None) -> Finding:
    """Return the finding for an error that ended the reading of a segment with the bytes `data`."""
    return Finding(file, error.what, error.position, None if data is None else claimed_offset(data, error.position))


def of_refusal(refusal: InputError) -> Finding:
    """Return the finding for a file that cannot be opened or parsed."""
    return Finding(refusal.source, refusal.what)


def of_tail(file: str, data: memoryview, position: int) -> Finding:
    """Return the finding for an incomplete batch at `position`, the end of a segment."""
    what = _torn(len(data) - position)
    return Finding(file, what, position, claimed_offset(data, position))


def _torn(size_bytes: int) -> str:
    last = "the last byte is" if size_bytes == 1 else f"the last {size_bytes} bytes are"
    return f"{last} not a whole batch"


def claimed_offset(data: memoryview, position: int | None) -> int | None:
    """Return the base offset in a batch's first eight bytes; None if the position or the bytes are missing."""
    if position is None or position + OFFSET_BYTES > len(data):
        return None
    return int.from_bytes(data[position : position + OFFSET_BYTES], "big", signed=True)


def passed_over(size_bytes: int, batch_count: int) -> str:
    """Return the amount of skipped data as text."""
    return f"passed over: {counted(size_bytes, 'byte')}, {counted(batch_count, 'batch', 'batches')}"


TABLE_SIZE_MIN: Final = 16


def java_map_order(calls: Iterable[str]) -> list[str]:
    """Return the distinct names in the order of a Java HashMap that `computeIfAbsent` filled."""
    size, names = TABLE_SIZE_MIN, list[str]()
    for name in calls:
        if len(names) > size * 3 // 4:
            size *= 2
        if name not in names:
            names.insert(0, name)
    # Growing keeps the order inside a bin, and so does a sort by bin.
    return sorted(names, key=lambda name: _mixed(name) % size)


def _mixed(name: str) -> int:
    """Return Java's hash of a name with its upper half mixed into its lower one, signed."""
    code = java_string_hash(name)
    return code ^ (code % 2**32 >> 16)


PROBLEMS_MAX: Final = 10_000


class ProblemKind(Enum):
    """List the kinds of problems in printing order: a heading with the file name, a line with two numbers."""

    INDEX_MISMATCH = ("Mismatches in :{}", "  Index offset: {}, log offset: {}")
    TIMESTAMP_MISMATCH = ("Found timestamp mismatch in :{}", "  Index timestamp: {}, log timestamp: {}")
    TIMESTAMP_ORDER = (
        "Found out of order timestamp in :{}",
        "  Index timestamp: {}, Previously indexed timestamp: {}",
    )
    OFFSET_NOT_FOUND = (
        "The following indexed offsets are not found in :{}",
        "Indexed offset: {}, found log offset: {}",
    )
    NON_CONSECUTIVE = ("Non-consecutive offsets in {}", "  {} is followed by {}")

    def heading(self, file: str) -> str:
        """Return the line above a file's problems."""
        return str(self.value[0]).format(file)

    def line(self, first: int, second: int) -> str:
        """Return one problem as a line of text."""
        return str(self.value[1]).format(first, second)

    def sorted(self, pairs: list[tuple[int, int]]) -> Iterable[tuple[int, int]]:
        """Return a file's problems, given in the order of finding, in printing order."""
        if self not in (ProblemKind.INDEX_MISMATCH, ProblemKind.NON_CONSECUTIVE):
            return pairs
        return sorted(dict(pairs).items(), reverse=self is ProblemKind.INDEX_MISMATCH)


class Problems:
    """Collect the problems found so far, by kind and file."""

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._found: dict[tuple[ProblemKind, str], list[tuple[int, int]]] = {}
        self._more: dict[tuple[ProblemKind, str], int] = {}
        self._damages: list[Finding] = []
        self._limits: dict[str, Finding] = {}
        self._untrimmed: dict[str, int] = {}
        self._damage_count = self._skipped_bytes = self._skipped_batches = 0

    def __bool__(self) -> bool:
        return bool(self._found or self._notes)

    def note(self, line: str) -> None:
        """Add a line that Kafka's tool prints at once, before all problems."""
        self._notes.append(line)

    def add(self, kind: ProblemKind, file: str, first: int, second: int) -> None:
        """Add one problem with the two numbers that its line prints."""
        pairs = self._found.setdefault((kind, file), [])
        if len(pairs) < PROBLEMS_MAX:
            pairs.append((first, second))
        else:
            self._more[kind, file] = self._more.get((kind, file), 0) + 1

    def damage(self, finding: Finding, *, skipped_bytes: int = 0, skipped_batches: int = 0) -> None:
        """Add damage and the amount of data skipped, which Kafka's tool does not print."""
        self._damage_count += 1
        self._skipped_bytes += skipped_bytes
        self._skipped_batches += skipped_batches
        if self._damage_count <= PROBLEMS_MAX:
            self._damages.append(finding)

    def note_untrimmed(self, folder: str) -> None:
        """Count an index in `folder` that ends in the zeros that a running broker reserves."""
        self._untrimmed[folder] = self._untrimmed.get(folder, 0) + 1

    def untrimmed_lines(self) -> Iterator[str]:
        """Yield one line per folder with untrimmed indexes; kafka-dump-log reports each file as corrupt."""
        for folder, count in self._untrimmed.items():
            indexes = "1 index ends" if count == 1 else f"{count} indexes end"
            yield f"{folder}: {indexes} in zeros that a running broker reserves; without them the check passes"

    def pass_over(self, file: str, damage: Damage) -> None:
        """Add damage that a scan of `file` has skipped, or a batch beyond the reading limit."""
        if damage.is_limit:
            self._not_read(*limit_finding(file, [damage]))
            return
        is_batch = damage.base_offset is not None
        self.damage(of_damage(file, damage), skipped_bytes=damage.size_bytes, skipped_batches=is_batch)

    @contextmanager
    def within_limits(self, file: str, data: memoryview) -> Iterator[None]:
        """Note a batch beyond the reading limit, in a file of the bytes `data`; swallow ReadingLimitError."""
        try:
            yield
        except ReadingLimitError as limit:
            found = of_error(file, limit, data)
            self._not_read(attrs.evolve(found, what=f"{_NOT_READ}{found.what}", is_limit=True))

    def _not_read(self, finding: Finding) -> None:
        known = self._limits.get(finding.file)
        if known is not None:
            finding = attrs.evolve(known, more_count=known.more_count + 1 + finding.more_count)
        self._limits[finding.file] = finding

    def merge(self, later: Problems) -> None:
        """Add the problems of files that were read later."""
        for limit in later._limits.values():
            self._not_read(limit)
        self._notes.extend(later._notes)
        for (kind, file), pairs in later._found.items():
            for pair in pairs:
                self.add(kind, file, *pair)
        for key, count in later._more.items():
            self._more[key] = self._more.get(key, 0) + count
        for folder, count in later._untrimmed.items():
            self._untrimmed[folder] = self._untrimmed.get(folder, 0) + count
        self._damages.extend(later._damages[: max(0, PROBLEMS_MAX - self._damage_count)])
        self._damage_count += later._damage_count
        self._skipped_bytes += later._skipped_bytes
        self._skipped_batches += later._skipped_batches

    @property
    def has_damage(self) -> bool:
        """Return whether any damage was added."""
        return self._damage_count > 0

    def damage_lines(self) -> Iterator[str]:
        """Yield a line for each file with batches beyond the reading limit, each damage, and the bytes skipped."""
        yield from (limit.line() for limit in self._limits.values())
        yield from (finding.line() for finding in self._damages)
        if self._damage_count > PROBLEMS_MAX:
            yield f"and {self._damage_count - PROBLEMS_MAX} more"
        if self._skipped_bytes:
            yield passed_over(self._skipped_bytes, self._skipped_batches)

    def lines(self) -> Iterator[str]:
        """Yield the lines that Kafka's tool prints to standard error; none without a problem."""
        yield from self._notes
        for kind in ProblemKind:
            for file in self._files(kind):
                yield kind.heading(file)
                pairs = kind.sorted(self._found[kind, file])
                yield from (kind.line(*pair) for pair in pairs)
                if (kind, file) in self._more:
                    yield f"  and {self._more[kind, file]} more"

    def _files(self, kind: ProblemKind) -> list[str]:
        """Return the files with problems of a kind, in printing order."""
        files = [file for found, file in self._found if found is kind]
        return java_map_order(file for file in files for _ in self._found[kind, file])
