"""Check one segment: its bytes, its offsets and its indexes.

What Kafka writes is never damage: not the gaps of compaction, nor one index entry for several batches. Of one kind in
one file the first place is reported, the others are counted.

The scan gives batches in chunks; what must be known from before is one row (`_Before`). An offset entry (o, p) is right
if a batch starts at p, ends at o or before, and no batch before p reaches o: then every look-up that starts there finds
what a scan from the start would. A time entry (t, o) is right if the batch with o has t as its largest timestamp: o is
its last offset, or that of the record with t, as releases up to 3.6 wrote it for an uncompressed append. Whether the
largest timestamp in a header is that of its records is not checked; Kafka believes headers too.

The last time entry is what a broker takes for the largest timestamp of the segment, by which retention deletes it. So
what is wrong with a time index is named with what retention would make of it.

Source: org.apache.kafka.storage.internals.log.{LogSegment.recover, OffsetIndex, TimeIndex}, 4.0; kafka-dump-log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from broker.cluster import Int64Array
from broker.errors import CorruptDataError
from broker.ids import INT32_MAX
from broker.wording import counted
from broker.workers import Advance
from log.batches.record_columns import Damage, HeaderColumns, RecordColumns
from log.batches.scan import ScanOptions, scan
from log.segments.file_names import OFFSET_INDEX, TIME_INDEX
from log.storage.checkpoints import EpochEntry
from log.tools.findings import Checked, Finding, limit_finding, of_damage, of_error
from log.tools.index_entries import IndexEntries
from log.tools.sources import SourceFile
from log.tools.timestamps import utc_day

NONE_BEFORE: Final = -1
MAGIC_MAX: Final = 2
NO_TIMESTAMP: Final = -1


@attrs.frozen
class SegmentReport:
    """Report findings and counts of checking one segment's files."""

    findings: tuple[Finding, ...]
    checked: Checked
    last_offset: int
    """The largest offset read; one below the base offset if none was."""
    is_read: bool = True
    """Whether a segment was read for it."""
    limits: tuple[Finding, ...] = ()
    """The first batch whose records were not read as they stand for too much; its checksum is right."""

    def damage_of(self, file: SourceFile) -> Finding | None:
        """Return the first finding in `file` itself, None if only files beside it have any."""
        return next((finding for finding in self.findings if finding.file == file.shown), None)


def verify_segment(
    file: SourceFile,
    epochs: Sequence[EpochEntry] = (),
    *,
    keep_going: bool,
    advance: Advance = lambda _: None,
    take: Callable[[RecordColumns], None] = lambda _: None,
) -> SegmentReport:
    """Check a `.log` and its indexes; call `advance` with each count of bytes read, `take` with each chunk."""
    check = _SegmentCheck(file, epochs)
    damages: list[Damage] = []
    data = file.view()
    read_to = skipped = 0
    try:
        for chunk in scan(data, options=ScanOptions(keep_going=keep_going, passes_limits=True), source=file.shown):
            check.take(chunk)
            take(chunk)
            damages.extend(chunk.damages)
            skipped += sum(damage.size_bytes for damage in chunk.damages)
            if len(chunk.batches):
                end = int(chunk.batches.position[-1] + chunk.batches.size_bytes[-1])
                advance(end - read_to)
                read_to = end
    except CorruptDataError as error:
        check.found.append(of_error(file.shown, error, data))
        skipped += len(data) - (read_to if error.position is None else error.position)
        damages = []
    advance(len(data) - read_to)
    if not skipped:
        check.end()
    checked = Checked(
        file_count=1 + check.index_count,
        batch_count=check.batch_count,
        record_count=check.record_count,
        size_bytes=len(data),
        skipped_size_bytes=skipped,
        skipped_batch_count=sum(damage.base_offset is not None for damage in damages),
    )
    real = [damage for damage in damages if not damage.is_limit]
    findings = (*(of_damage(file.shown, damage) for damage in real), *check.findings())
    limits = limit_finding(file.shown, [damage for damage in damages if damage.is_limit])
    return SegmentReport(findings, checked, check.last_offset, limits=limits)


class _IndexCheck:
    """One index: its entries as two columns, and how far they were compared with the log."""

    def __init__(self, entries: IndexEntries) -> None:
        self.entries = entries
        self.keys = entries.keys
        self.values = entries.values
        self.done = 0

    def until(self, limit: int) -> slice:
        """Return the entries not yet compared that point to `limit` at most; they count as compared from now on."""
        start = self.done
        self.done = max(start, int(np.searchsorted(self.values, limit, side="right")))
        return slice(start, self.done)


class _SegmentCheck:
    """The pass over one segment: what came before, and what was wrong."""

    def __init__(self, file: SourceFile, epochs: Sequence[EpochEntry]) -> None:
        self.file = file
        self.found: list[Finding] = []
        self.batch_count = self.record_count = self.index_count = 0
        self.last_offset = file.base_offset - 1
        self._position = NONE_BEFORE
        self._timestamp_max = NO_TIMESTAMP
        self._believed_timestamp: int | None = None
        self._is_ended = False
        self._epoch = NONE_BEFORE
        self._kinds: dict[tuple[str, str], Finding] = {}
        self._epoch_starts = np.array([entry.start_offset for entry in epochs], np.int64)
        self._epochs = np.array([entry.epoch for entry in epochs], np.int64)
        self._offset_index = self._open_index(OFFSET_INDEX)
        self._time_index = self._open_index(TIME_INDEX)

    def take(self, chunk: RecordColumns) -> None:
        """Check the next batches, of which one may have been seen before if its records filled several chunks."""
        self.record_count += len(chunk)
        self._check_records(chunk)
        batches = chunk.batches
        first = int(np.searchsorted(batches.position, self._position, side="right"))
        batches = batches.rows(first, len(batches))
        if len(batches) == 0:
            return
        self.batch_count += len(batches)
        if chunk.damages:
            self._pass_over(batches)
        before = np.maximum.accumulate(np.concatenate(([self.last_offset], batches.last_offset[:-1])))
        self._note(
            batches, batches.magic > MAGIC_MAX, f"its magic is above {MAGIC_MAX}, and no broker opens such a log"
        )
        self._check_order(batches, before)
        self._check_epochs(batches)
        self._check_offset_index(batches, before)
        self._check_time_index(batches)
        self._timestamp_max = max(self._timestamp_max, int(batches.max_timestamp.max()))
        self._position = int(batches.position[-1])
        self.last_offset = max(int(before[-1]), int(batches.last_offset[-1]))

    def _pass_over(self, batches: HeaderColumns) -> None:
        """Take the index entries that point to what was skipped before `batches` as compared: nothing can be said."""
        if self._offset_index is not None:
            self._offset_index.until(int(batches.position[0]) - 1)
        if self._time_index is not None:
            self._time_index.until(int(batches.base_offset[0]) - 1)

    def end(self) -> None:
        """Note the index entries that point behind the last batch."""
        self._is_ended = True
        for index, what in (
            (self._offset_index, "entry ({key}, {value}): no batch stands there"),
            (self._time_index, "entry ({key}, {value}): no batch has this offset"),
        ):
            if index is not None:
                rows = range(index.done, len(index.keys))
                self._note_rows(index, rows, what)

    def findings(self) -> Iterator[Finding]:
        """Yield what was wrong, each kind once a file."""
        found = [*self.found, *self._kinds.values()]
        time_index = self.file.sibling(TIME_INDEX).shown
        consequence = self._of_retention()
        for finding in found:
            if finding.file == time_index and consequence:
                finding, consequence = attrs.evolve(finding, what=f"{finding.what}; {consequence}"), ""
            yield finding

    def _of_retention(self) -> str:
        """Return what retention by time would do by the last time entry, "" if that is what it should."""
        believed, largest = self._believed_timestamp, self._timestamp_max
        if not self._is_ended or believed is None or believed == largest or not self.record_count:
            return ""
        verb = "delete" if believed < largest else "keep"
        records = counted(self.record_count, "record")
        return f"retention would {verb} {records} of {utc_day(largest)} as if of {utc_day(believed)}"

    def _check_order(self, batches: HeaderColumns, before: Int64Array) -> None:
        first_offsets = np.where(batches.magic < 2, batches.last_offset, batches.base_offset)
        self._note(batches, first_offsets <= before, "its offsets do not follow those of the batch before")
        relative = batches.last_offset - self.file.base_offset
        self._note(batches, (relative < 0) | (relative > INT32_MAX), "its offsets cannot be in this segment")

    def _check_records(self, chunk: RecordColumns) -> None:
        last_offsets = chunk.batches.last_offset[chunk.batch_index]
        same_batch = chunk.batch_index[1:] == chunk.batch_index[:-1]
        wrong = np.zeros(len(chunk), bool)
        wrong[1:] = same_batch & (np.diff(chunk.offset) <= 0)
        wrong |= chunk.offset > last_offsets
        rows = np.zeros(len(chunk.batches), bool)
        rows[chunk.batch_index[wrong]] = True
        self._note(chunk.batches, rows, "the offsets of its records do not ascend to its last offset")

    def _check_epochs(self, batches: HeaderColumns) -> None:
        epochs = batches.partition_leader_epoch.astype(np.int64)
        before = np.maximum.accumulate(np.concatenate(([self._epoch], epochs[:-1])))
        self._note(batches, (epochs >= 0) & (epochs < before), "its leader epoch is below that of a batch before")
        self._epoch = max(int(before[-1]), int(epochs[-1]))
        if len(self._epochs):
            rows = np.searchsorted(self._epoch_starts, batches.base_offset, side="right") - 1
            differs = (rows >= 0) & (epochs >= 0) & (self._epochs[rows] != epochs)
            self._note(batches, differs, "its leader epoch is not that of leader-epoch-checkpoint")

    def _check_offset_index(self, batches: HeaderColumns, before: Int64Array) -> None:
        index = self._offset_index
        if index is None:
            return
        entries = index.until(int(batches.position[-1]))
        offsets, positions = index.keys[entries], index.values[entries]
        rows = np.searchsorted(batches.position, positions)
        at_batch = batches.position[np.minimum(rows, len(batches) - 1)] == positions
        rows = np.minimum(rows, len(batches) - 1)
        reaches = (before[rows] < offsets) & (batches.last_offset[rows] <= offsets)
        wrong = np.flatnonzero(~at_batch | ~reaches) + entries.start
        self._note_rows(index, wrong.tolist(), "entry ({key}, {value}): look-ups from there miss or find another batch")

    def _check_time_index(self, batches: HeaderColumns) -> None:
        index = self._time_index
        if index is None:
            return
        entries = index.until(int(batches.last_offset.max()))
        timestamps, offsets = index.keys[entries], index.values[entries]
        rows = np.minimum(np.searchsorted(batches.last_offset, offsets), len(batches) - 1)
        is_within = (batches.base_offset[rows] <= offsets) & (offsets <= batches.last_offset[rows])
        right = is_within & (batches.max_timestamp[rows] == timestamps)
        wrong = np.flatnonzero(~right) + entries.start
        self._note_rows(index, wrong.tolist(), "entry ({key}, {value}): the batch there has another largest timestamp")

    def _open_index(self, kind: str) -> _IndexCheck | None:
        """Return an index, None if there is none, or its own entries are wrong: comparing them would say nothing."""
        file = self.file.sibling(kind)
        if not file.exists():
            return None
        index = _IndexCheck(IndexEntries.of(file).in_use())
        self.index_count += 1
        if kind == TIME_INDEX and len(index.keys):
            self._believed_timestamp = int(index.keys[-1])
        try:
            index.entries.check()
        except CorruptDataError as error:
            self.found.append(of_error(file.shown, error))
            return None
        falls = np.flatnonzero((np.diff(index.keys) <= 0) | (np.diff(index.values) <= 0)) + 1
        self._note_rows(index, falls.tolist(), "entry ({key}, {value}) is not above the one before")
        return None if len(falls) else index

    def _note(self, batches: HeaderColumns, wrong: NDArray[np.bool_], what: str) -> None:
        rows = np.flatnonzero(wrong)
        if len(rows):
            row = int(rows[0])
            place = (int(batches.position[row]), int(batches.base_offset[row]))
            self._add(Finding(self.file.shown, what, *place), len(rows), what)

    def _note_rows(self, index: _IndexCheck, rows: Sequence[int], what: str) -> None:
        if len(rows):
            row = rows[0]
            text = what.format(key=index.keys[row], value=index.values[row])
            place = row * index.entries.entry_size_bytes
            self._add(Finding(index.entries.file.shown, text, place), len(rows), what)

    def _add(self, finding: Finding, count: int, kind: str) -> None:
        known = self._kinds.get((finding.file, kind))
        if known is None:
            self._kinds[finding.file, kind] = attrs.evolve(finding, more_count=count - 1)
        else:
            self._kinds[finding.file, kind] = attrs.evolve(known, more_count=known.more_count + count)
