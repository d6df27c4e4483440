"""Collect the problems that kafka-dump-log prints after the dump.

What it decides: the order and the words of those lines: wrong index entries, wrong time index entries, offsets that
do not follow one another.

Constraints: at most `PROBLEMS_MAX` problems of a kind and file are stored, since a damaged file may have one per entry;
a last line counts the others. Damage is collected separately: Kafka's tool prints a wrong checksum in the batch's line
only, and stops at any other damage.

Source: kafka.tools.DumpLogSegments and its TimeIndexDumpErrors, trunk 1eb7644 (2024-10).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final

from log.batches.record_columns import Damage
from log.tools.findings import Finding, of_damage, passed_over

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
        "The following indexed offsets are not found in the log.",
        "Indexed offset: {}, found log offset: {}",
    )
    NON_CONSECUTIVE = ("Non-consecutive offsets in {}", "  {} is followed by {}")


LAST_FIRST: Final = frozenset({ProblemKind.INDEX_MISMATCH, ProblemKind.NON_CONSECUTIVE})
"""Kinds that Kafka's tool tells in reverse."""


class Problems:
    """Collect the problems found so far, by kind and file."""

    def __init__(self) -> None:
        self._found: dict[tuple[ProblemKind, str], list[tuple[int, int]]] = {}
        self._more: dict[tuple[ProblemKind, str], int] = {}
        self._damages: list[Finding] = []
        self._damage_count = self._skipped_bytes = self._skipped_batches = 0

    def __bool__(self) -> bool:
        return bool(self._found)

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

    def pass_over(self, file: str, damage: Damage) -> None:
        """Add damage that a scan of `file` has skipped."""
        is_batch = damage.base_offset is not None
        self.damage(of_damage(file, damage), skipped_bytes=damage.size_bytes, skipped_batches=is_batch)

    @property
    def has_damage(self) -> bool:
        """Return whether any damage was added."""
        return self._damage_count > 0

    def damage_lines(self) -> Iterator[str]:
        """Yield a line for each damage and the amount of data skipped."""
        yield from (finding.line() for finding in self._damages)
        if self._damage_count > PROBLEMS_MAX:
            yield f"and {self._damage_count - PROBLEMS_MAX} more"
        if self._skipped_bytes:
            yield passed_over(self._skipped_bytes, self._skipped_batches)

    def lines(self) -> Iterator[str]:
        """Yield the lines to print after the dump; none without a problem."""
        for kind in ProblemKind:
            heading, line = kind.value
            for place in sorted((found for found in self._found if found[0] is kind), key=lambda found: found[1]):
                yield heading.format(place[1])
                pairs = self._found[place]
                yield from (line.format(*pair) for pair in (reversed(pairs) if kind in LAST_FIRST else pairs))
                if place in self._more:
                    yield f"  and {self._more[place]} more"
