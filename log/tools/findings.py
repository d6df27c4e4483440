"""Describe damage by file, position and cause, and count the data read and skipped."""

from __future__ import annotations

from typing import Final

import attrs

from broker.errors import CorruptDataError, InputError
from broker.wording import counted
from log.batches.record_columns import Damage

OFFSET_BYTES: Final = 8


@attrs.frozen
class Finding:
    """Describe one damage in a file; `more_count` counts unlisted damages of the same kind in the file."""

    file: str
    what: str
    position: int | None = None
    batch_offset: int | None = None
    more_count: int = 0

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
