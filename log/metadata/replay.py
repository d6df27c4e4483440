"""Replay a metadata log from its beginning: the change at every offset, and the image at any moment.

A record is applied at once outside a transaction; between BeginTransactionRecord and EndTransactionRecord at the end,
before AbortTransactionRecord never. A snapshot is applied whole; one that disagrees with the records before its end
is reported. A record that contradicts those before it raises an error with offset and type, or goes to `rejected`.

Source: org.apache.kafka.image.loader.{MetadataLoader,MetadataBatchLoader}, 4.0; KIP-868 for transactions.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import attrs

from broker.errors import CorruptDataError, UsageError
from broker.ids import INT64_MAX, BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from broker.values import value
from log.metadata.image import BrokerDelta, ControllerDelta, Delta, MetadataImage
from log.metadata.reading import (
    ImpossiblePartitionError,
    MetadataEntry,
    MetadataFile,
    MetadataFiles,
    RejectedRecords,
    UnreadableEntryError,
    entries_of,
)
from log.metadata.records import ControlRecord, MetadataRecord
from log.metadata.schemas import DECIDE_WHO_IS_ALIVE, SCHEMAS, RecordType
from log.metadata.state import NONE, MetadataState
from log.record import ControlType

LIVE_MOMENTS_MAX: Final = 24  # What a report shows side by side.


@attrs.frozen(kw_only=True)
class Moment:
    """Name a moment in a metadata log, by offset or by time."""

    offset: Offset | None = None
    time_ms: TimeMs | None = None

    def __attrs_post_init__(self) -> None:
        if (self.offset is None) == (self.time_ms is None):
            raise UsageError("a moment is an offset or a time, one of the two")

    def is_past(self, place: Placed) -> bool:
        """Return whether the moment lies before a record of the log."""
        if self.offset is not None:
            return place.offset > self.offset
        assert self.time_ms is not None
        return place.time_ms > self.time_ms

    def is_after(self, place: Placed) -> bool:
        """Return whether the moment lies behind a record of the log."""
        here, there = (self.time_ms, place.time_ms) if self.offset is None else (self.offset, place.offset)
        return here is not None and here > there

    def __str__(self) -> str:
        return f"time {self.time_ms}" if self.offset is None else f"offset {self.offset}"


END: Final = Moment(offset=Offset(INT64_MAX))
"""The last record there is."""


def images_at(replay: Replay, moments: Sequence[Moment]) -> Iterator[MetadataImage]:
    """Yield the image at each moment; the moments must ascend.

    Raises UsageError for a moment before the previous one or before the beginning, and the errors of `Replay.steps`.
    """
    for moment in moments:
        for _ in replay.steps(until=moment.is_past):
            pass
        if (replay.entry_count == 0 and not replay.is_done) or moment.is_past(replay):
            raise UsageError(f"{moment} lies before the beginning of the log, or before the moment named before it")
        yield replay.image()


def beyond_end(replay: Replay, moments: Sequence[Moment]) -> Iterator[str]:
    """Yield a note on each moment behind the last record of a log that was replayed to its end; `END` is none."""
    for moment in moments:
        if replay.is_done and moment != END and moment.is_after(replay):
            yield f"{moment} lies beyond the end of the log, offset {replay.offset}; the end is taken"


def live_moments(replay: Replay) -> tuple[Moment, ...]:
    """Return the moments right before the set of unfenced brokers changed, and the end: at most the last 24.

    Changes while no topic exists, and those that a snapshot's records make, are ignored.
    Raises the errors of `Replay.steps`.
    """
    unfenced: frozenset[BrokerId] = frozenset()
    found: list[Moment] = []
    settled, latest, time_ms, in_snapshot = NO_OFFSET, NO_OFFSET, TimeMs(-1), False
    for step in replay.steps():
        if step.time_ms != time_ms or step.from_snapshot != in_snapshot:
            settled, time_ms, in_snapshot = latest, step.time_ms, step.from_snapshot
        latest = step.offset
        if not any(isinstance(delta, BrokerDelta) for delta in step.deltas):
            continue
        before = unfenced
        unfenced = frozenset(broker.id for broker in replay.state.brokers.values() if not broker.fenced)
        if step.from_snapshot or unfenced == before or not replay.state.has_topics or settled == NO_OFFSET:
            continue
        moment = Moment(offset=settled)
        if moment not in found[-1:]:
            found.append(moment)
    return (*found[1 - LIVE_MOMENTS_MAX :], END)


NO_OFFSET: Final = Offset(-1)
_BEGIN: Final = RecordType.BEGIN_TRANSACTION_RECORD
_ENDS: Final = (RecordType.END_TRANSACTION_RECORD, RecordType.ABORT_TRANSACTION_RECORD)


class Placed(Protocol):
    """Define the interface of a thing that has an offset and a time in the log."""

    @property
    def offset(self) -> Offset:
        """Return the offset."""

    @property
    def time_ms(self) -> TimeMs:
        """Return the time of the append in ms."""


@value
class Step:
    """Describe one applied record: offset, time and changes; `from_snapshot` if a snapshot holds the record."""

    offset: Offset
    time_ms: TimeMs
    deltas: tuple[Delta, ...]
    from_snapshot: bool = False


class Replay:
    """Replay files once; `offset`, `epoch` and `time_ms` are those of the last applied record, -1 for none."""

    def __init__(self, files: MetadataFiles, *, rejected: RejectedRecords | None = None) -> None:
        self._files = files
        self._rejected = rejected
        self._transaction: list[MetadataEntry] | None = None
        self._checks = list(files.checks)
        self._entries: Iterator[tuple[MetadataEntry, str]] = self._all_entries()
        self._has_begun = False
        self.state = MetadataState()
        self._next_offset = Offset(0)
        self.offset = NO_OFFSET
        self.epoch = LeaderEpoch(-1)
        self.time_ms = TimeMs(-1)
        self.entry_count = 0
        self.is_done = False
        self.disagreements: list[str] = []
        """Where a later snapshot says something else than the records before its end."""
        self.later_versions: Counter[tuple[RecordType, int]] = Counter()
        """Count of the records of each type and version that is later than the newest known one."""
        self.torn_ends: list[str] = []
        """Sentences on the files that end within a batch."""

    def image(self) -> MetadataImage:
        """Return the image after the last step. Cost: linear in topics, partitions and settings."""
        return self.state.image(offset=self.offset, epoch=self.epoch, time_ms=self.time_ms)

    def steps(self, until: Callable[[Placed], bool] | None = None) -> Iterator[Step]:
        """Yield the changes of every record in order; stop before the first record for which `until` is true.

        The next call continues there. Raises CorruptDataError, or UnreadableEntryError, unless `rejected` is given.
        """
        if not self._has_begun and self._files.start is not None:
            yield from self._snapshot(self._files.start)
        self._has_begun = True
        for entry, source in self._entries:
            if until is not None and until(entry):
                self._entries = itertools.chain([(entry, source)], self._entries)
                return
            if entry.offset < self._next_offset:
                continue
            self._check(entry.offset)
            if entry.offset > self._next_offset:
                self._refuse(f"the records from offset {self._next_offset} are missing", entry, source)
            self._next_offset = Offset(entry.offset + 1)
            yield from self._play(entry, source)
        self.is_done = True
        self._check(self._next_offset)

    def _all_entries(self) -> Iterator[tuple[MetadataEntry, str]]:
        for segment in self._files.segments:
            for entry in entries_of(
                segment.data, source=segment.source, rejected=self._rejected, torn_ends=self.torn_ends
            ):
                yield entry, segment.source

    def _play(self, entry: MetadataEntry, source: str) -> Iterator[Step]:
        self.entry_count += 1
        record = entry.record
        if isinstance(record, ControlRecord):
            yield self._control(entry, record)
        elif record.type is _BEGIN or record.type in _ENDS:
            yield from self._frame(entry, record, source)
        elif self._transaction is not None:
            self._transaction.append(entry)
        else:
            yield self._count(entry, source)

    def _frame(self, entry: MetadataEntry, record: MetadataRecord, source: str) -> Iterator[Step]:
        """Begin a transaction, or end it: then its records count, or none of them does."""
        held = self._transaction
        if record.type is _BEGIN:
            if held is not None:
                self._refuse("Encountered BeginTransactionRecord while already in a transaction", entry, source)
            self._transaction = []
            return
        if held is None:
            self._refuse(f"{record.type.name} without having seen a BeginTransactionRecord", entry, source)
        self._transaction = None
        if record.type is RecordType.END_TRANSACTION_RECORD:
            for each in held or ():
                yield self._count(each, source)
        self._moved_to(entry)

    def _count(self, entry: MetadataEntry, source: str) -> Step:
        assert isinstance(entry.record, MetadataRecord)
        if entry.record.is_of_later_release:
            self.later_versions[entry.record.type, entry.record.version] += 1
        deltas: tuple[Delta, ...] = NONE
        try:
            deltas = self.state.apply(entry.record)
        except CorruptDataError as error:
            self._refuse(f"{entry.record.type.name}: {error.what}", entry, source, kind=entry.record.type)
        self._moved_to(entry)
        return Step(entry.offset, entry.time_ms, deltas)

    def _control(self, entry: MetadataEntry, record: ControlRecord) -> Step:
        if self._transaction is None:
            self._moved_to(entry)
        if record.type is not ControlType.LEADER_CHANGE:
            return Step(entry.offset, entry.time_ms, NONE)
        return Step(entry.offset, entry.time_ms, (ControllerDelta(record.data["leaderId"], entry.epoch),))

    def _moved_to(self, entry: MetadataEntry) -> None:
        self.offset, self.epoch, self.time_ms = entry.offset, entry.epoch, entry.time_ms

    def _refuse(self, what: str, entry: MetadataEntry, source: str, *, kind: RecordType | None = None) -> None:
        error = UnreadableEntryError(what, source=source, offset=entry.offset, kind=kind)
        if self._rejected is None:
            raise error
        self._rejected.add(error)

    def _snapshot(self, file: MetadataFile) -> Iterator[Step]:
        """Begin with what a snapshot holds: all of it stands at the last offset that it is of, and at that one's time.

        Where the header is missing, which has that time, that of writing it is the nearest that is known.
        """
        found, time_ms, header_ms = self._files.start_id, TimeMs(-1), None
        offset, epoch = (NO_OFFSET, LeaderEpoch(-1)) if found is None else (Offset(found.end_offset - 1), found.epoch)
        for entry in snapshot_entries(file, self._rejected, self.torn_ends):
            self.entry_count += 1
            if isinstance(entry.record, MetadataRecord):
                step = self._count(entry, file.source)
                time_ms = entry.time_ms if header_ms is None else header_ms
                yield Step(offset, time_ms, step.deltas, from_snapshot=True)
            elif entry.record.type is ControlType.SNAPSHOT_HEADER:
                time_ms = header_ms = TimeMs(entry.record.data["lastContainedLogTimestamp"])
        self.offset, self.epoch, self.time_ms = offset, epoch, time_ms
        self._next_offset = Offset(offset + 1)

    def _check(self, next_offset: Offset) -> None:
        """Compare with the snapshots that end at or before the next record to count."""
        while self._checks and self._checks[0][0].end_offset <= next_offset:
            found, file = self._checks.pop(0)
            other = Replay(MetadataFiles(file, (), (), found), rejected=self._rejected)
            for _ in other.steps():
                pass
            self.torn_ends += other.torn_ends
            differences = "; ".join(self.image().differences(other.image()))
            if differences:
                self.disagreements.append(
                    f"{file.source}: the snapshot up to offset {found.end_offset} differs from the log: {differences}"
                )


def snapshot_entries(
    file: MetadataFile, rejected: RejectedRecords | None, torn_ends: list[str] | None = None
) -> Iterator[MetadataEntry]:
    """Yield a snapshot's records; raise CorruptDataError at the end if header or footer is missing."""
    missing = [ControlType.SNAPSHOT_HEADER, ControlType.SNAPSHOT_FOOTER]
    for entry in entries_of(file.data, source=file.source, rejected=rejected, torn_ends=torn_ends):
        if isinstance(entry.record, ControlRecord) and entry.record.type in missing:
            missing.remove(entry.record.type)
        yield entry
    for kind in missing:
        error = CorruptDataError(f"a snapshot without {kind.name}; it was not written to its end", source=file.source)
        if rejected is None:
            raise error
        rejected.add(error)


def replay_notes(replay: Replay, rejected: RejectedRecords | None = None) -> Iterator[str]:
    """Yield the notes on the records that `replay` has read; `rejected` are those that it left out."""
    for (kind, version), count in sorted(replay.later_versions.items()):
        known = SCHEMAS[kind].version_max
        records = f"{count:,} {kind.name}{'' if count == 1 else 's'}"
        yield f"{records} of version {version}, later than the newest known, {known}: what it adds was skipped"
    yield from dict.fromkeys(replay.torn_ends)
    uncertain = 0 if rejected is None else sum(map(may_hide_a_broker, rejected.errors))
    if uncertain:
        records = (
            "1 record that may decide them was"
            if uncertain == 1
            else f"{uncertain:,} records that may decide them were"
        )
        yield f"the unfenced brokers and their racks are uncertain: {records} left out"


def may_hide_a_broker(error: CorruptDataError) -> bool:
    """Return whether what was left out with this error may have decided which brokers are alive."""
    if isinstance(error, ImpossiblePartitionError):
        return False
    if not isinstance(error, UnreadableEntryError) or error.kind is None:
        return True
    return error.kind in DECIDE_WHO_IS_ALIVE
