"""Model logs under retention and compaction: the original record at each offset, and the remaining records.

I4 to I7 hold for the observed log with its gaps filled in, from the history of the record after each; I11 for each
remaining record, I12 for each from the first offset of the epoch cache on, H3 for the last record of each key. A record
below the log start is expired, one with a later record of its key is superseded; neither is lost.

No replica promises the records below its leader's log start. A follower whose log diverges there does not learn it; as
in Kafka it joins the ISR with a record of its own there. If it becomes leader, consumers see that record in the place
of another (I17), and it takes a retry of that record for a duplicate. Nor does a replica promise the records below its
own log start: a follower whose log begins above the end of an unclean leader's log starts anew at that end
(AbstractFetcherThread.fetchOffsetAndTruncate, UnifiedLog.truncateTo, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from broker.ids import BrokerId, Offset
from broker.units import TimeMs
from broker.values import value
from log.batches.in_buffer import OFFSET_AND_SIZE, batches_in
from replication.checkers.elections import UncleanElection
from replication.checkers.observed_log import CHUNK_BYTES, REMEMBERED_COUNT_MAX, Decoder, Entry, LogChange, ObservedLog
from replication.checkers.reference_log import ReferenceLog
from replication.retention.keyed import identity_of
from replication.roles.replica_log import ReplicaLog

NO_KEY: Final = b""


@value
class Held:
    """Hold one record of a log; `key` is empty for none."""

    offset: int
    entry: Entry
    key: bytes
    is_tombstone: bool
    timestamp_ms: TimeMs


@value
class HeldBatch:
    """Hold one batch of a log, perhaps without records; the batch ends before `next_offset`."""

    records: tuple[Held, ...]
    next_offset: int


class RetainedReferenceLog(ReferenceLog):
    """Hold the committed records of one partition, with their keys."""

    def __init__(self, partition: int) -> None:
        super().__init__(partition)
        self.known: dict[int, Held] = {}
        """The records by value, each as it was first seen."""
        self.last: dict[bytes, int] = {}
        """The last committed offset of each key."""
        self.cleaned_ms: dict[int, int] = {}
        """When a compaction first met each tombstone and left it, by value."""
        self.announced_start = 0
        """The greatest log start that a leader has sent, or that a DeleteRecords request has named."""
        self.deletable_end = 0
        """The greatest log start of a leader, or order, since the last unclean election; it promises nothing below."""
        self.ordered: dict[int, tuple[Offset, dict[BrokerId, int]]] = {}
        """DeleteRecords requests by number: the offset, and each broker's incarnation at that time."""
        self.unpromised_end = 0
        """The greatest `deletable_end` at an unclean election, whose leader may have other records below it."""
        self.unknown_count = 0
        self._noted = 0

    def note_start(self, offset: int) -> None:
        """Record a log start that a leader announced, or that DeleteRecords asked for."""
        self.announced_start = max(self.announced_start, offset)
        self.deletable_end = max(self.deletable_end, offset)

    def give_up(self, keep: int, at_ms: TimeMs, election: UncleanElection) -> None:
        """Truncate the committed records to the first `keep`, as an unclean leader has no more."""
        super().give_up(keep, at_ms, election)
        self.last.clear()
        self._noted = 0
        self.unpromised_end = max(self.unpromised_end, self.deletable_end)
        self.deletable_end = min(self.deletable_end, keep)
        for observed in self.observed_logs.values():
            if isinstance(observed, RetainedObservedLog):
                observed.begin_history()

    def before(self, start: int, end: int, following: Entry) -> list[Entry]:
        """Return the records from `start` to `end` (exclusive) that precede the record `following` at `end`.

        The same offset and leader epoch is the same record after the same log (I11), so that each record leads to the
        one before it. Empty if one of these records was never seen.
        """
        found: list[Entry] = []
        known = self.matching.get((end, following.epoch))
        for offset in range(end - 1, start - 1, -1):
            known = None if known is None else self.matching.get((offset, known[1]))
            if known is None:
                return []
            found.append(known[0])
        return found[::-1]

    def note_committed(self) -> None:
        """Record the keys of the newly committed records."""
        for offset in range(self._noted, len(self.committed)):
            record = self.known.get(self.committed[offset].value)
            if record is not None and record.key:
                self.last[record.key] = offset
        self._noted = len(self.committed)

    def is_superseded(self, offset: int) -> bool:
        """Return whether a later record of the same key is committed."""
        record = self.record_at(offset)
        return record is not None and self.last.get(record.key, -1) > offset

    def is_tombstone(self, offset: int) -> bool:
        """Return whether the committed record at `offset` is a tombstone."""
        record = self.record_at(offset)
        return record is not None and record.is_tombstone

    def skips_epoch_start(self, offset: int, epoch: int, previous: int) -> bool:
        """Return whether the record before an offset may be of an older epoch than on the replica that wrote it.

        A leader that copied the log after compaction took an epoch's first record dates the epoch by the next one. A
        follower whose log ends between the two is not told that it differs, and keeps a record of the epoch before; so
        it does in Kafka (LeaderEpochFileCache.endOffsetFor, 4.3.1).
        """
        self.note_committed()
        return previous < epoch and self.is_superseded(offset - 1)

    def record_at(self, offset: int) -> Held | None:
        """Return the committed record at `offset` as it was first seen; None if it was not."""
        return self.known.get(self.committed[offset].value) if offset < len(self.committed) else None


def is_expired(references: Mapping[int, ReferenceLog], partition: int, offset: int) -> bool:
    """Return whether some replica's log started above an offset, so that the record's producer may be forgotten."""
    reference = references.get(partition)
    if not isinstance(reference, RetainedReferenceLog):
        return False
    starts = [
        observed.start_max for observed in reference.observed_logs.values() if isinstance(observed, RetainedObservedLog)
    ]
    return offset < max(reference.announced_start, *starts, 0)


def may_skip(references: Mapping[int, ReferenceLog], partition: int, offset: int) -> bool:
    """Return whether a consumer may skip an offset: a superseded record, a tombstone, or one of an ended history."""
    reference = references.get(partition)
    return isinstance(reference, RetainedReferenceLog) and (
        offset < reference.former_end or reference.is_superseded(offset) or reference.is_tombstone(offset)
    )


class BatchReader:
    """Decode batches without filling their gaps; the same bytes are decoded once."""

    def __init__(self) -> None:
        self._remembered: dict[bytes, HeldBatch] = {}

    def batches(self, data: bytes) -> Iterator[HeldBatch]:
        """Yield the whole batches in `data`."""
        position, end = 0, len(data)
        while end - position >= OFFSET_AND_SIZE.size:
            size_bytes = OFFSET_AND_SIZE.unpack_from(data, position)[1] + OFFSET_AND_SIZE.size
            if size_bytes > end - position:
                return
            yield self._batch(data[position : position + size_bytes])
            position += size_bytes

    def _batch(self, data: bytes) -> HeldBatch:
        known = self._remembered.get(data)
        if known is not None:
            return known
        (batch,) = batches_in(data)
        records = tuple(
            Held(
                record.offset,
                Entry(
                    batch.partition_leader_epoch,
                    identity_of(record),
                    batch.producer_id,
                    record.sequence,
                    batch.producer_epoch,
                ),
                record.key or NO_KEY,
                record.value is None,
                record.timestamp,
            )
            for record in batch.records()
        )
        if len(self._remembered) >= REMEMBERED_COUNT_MAX:
            self._remembered.clear()
        made = self._remembered[data] = HeldBatch(records, batch.next_offset)
        return made


class _Filling(Decoder):
    """Turns batches into entries without gaps, for one observed log."""

    def __init__(self, observed: RetainedObservedLog) -> None:
        super().__init__()
        self._observed = observed

    def entries(self, data: bytes, base_offset: int) -> list[Entry]:
        """Return the entries from `base_offset` on; each missing record is noted as a gap and filled in."""
        return self.joined(self._observed.reader.batches(data), base_offset)

    def joined(self, batches: Iterable[HeldBatch], base_offset: int) -> list[Entry]:
        """Return the entries of batches that follow each other."""
        observed, due, end_offset = self._observed, base_offset, base_offset
        found: list[Entry] = []
        for batch in batches:
            for held in batch.records:
                if held.offset >= due:
                    found += observed.filled(due, held.offset, held.entry)
                    observed.truth.known.setdefault(held.entry.value, held)
                    found.append(held.entry)
                    due = held.offset + 1
            end_offset = batch.next_offset
        return found + observed.filled(due, end_offset)


class RetainedObservedLog(ObservedLog):
    """Follow one replica's log and its gaps; `new_gaps` came with the last reading."""

    def __init__(
        self,
        truth: RetainedReferenceLog,
        reader: BatchReader,
        log: ReplicaLog,
        place: tuple[BrokerId, int],
        former: ObservedLog | None,
    ) -> None:
        broker, incarnation = place
        super().__init__(log, incarnation, broker, former)
        self.truth = truth
        self.reader = reader
        self.new_gaps: list[int] = []
        self.tombstones: list[int] = []
        """The tombstones that the last compaction left, by value."""
        self.cleaning_count = log.cleaning_count
        self.start_max: int = former.start_max if isinstance(former, RetainedObservedLog) else 0
        """The greatest log start that this broker's log ever had."""
        self.stale: dict[bytes, int] = {}
        """By key, the last offset at which the log has a record of an older epoch in a superseded record's place."""
        self._forgotten = 0
        self._filling = _Filling(self)

    def read_on(self, decoder: Decoder) -> LogChange:
        """Read the records appended and truncated since the last reading."""
        self.new_gaps = []
        cut_to = self.log.cut_to
        if cut_to is not None:
            self.gaps = {gap for gap in self.gaps if gap < cut_to}
            self.stale = {key: offset for key, offset in self.stale.items() if offset < cut_to}
        change = super().read_on(self._filling)
        start_offset = self.log.log.log_start_offset
        self.start_max = max(self.start_max, start_offset)
        if cut_to is not None:
            self._forgotten = min(self._forgotten, cut_to)
        self._forget_before(max(start_offset, self.truth.deletable_end))
        return change

    @property
    def is_undated(self) -> bool:
        """Return whether the epoch cache begins above the log start, as after a crash that undid a raised log start."""
        log = self.log.log
        epochs = () if log.epochs is None else log.epochs.entries
        first = epochs[0].start_offset if epochs else log.log_end_offset
        return log.log_start_offset < min(first, self.start_max)

    @property
    def read_from(self) -> int:
        """Return the offset from which on the entries are those of the log; below it they may be the committed ones."""
        return max(self.log.log.log_start_offset, self.truth.deletable_end)

    def begin_history(self) -> None:
        """Compare the whole log anew after an unclean election."""
        self._forgotten = 0

    def has_records(self, start: int, end: int) -> bool:
        """Return whether the log has a record at an offset from `start` to `end`; compaction may have left none."""
        return any(offset not in self.gaps for offset in range(start, end))

    def agree(self, committed: list[Entry]) -> int:
        """Return how many first entries equal the committed ones; entries below a log start count as equal."""
        self._forget_before(max(self.log.log.log_start_offset, self.truth.deletable_end))
        agreed = super().agree(committed)
        end = self._end_of_stale(agreed, committed)
        if end == agreed:
            return agreed
        for offset in range(agreed, end):
            held = self.truth.known.get(self.entries[offset].value)
            if held is not None and held.key and offset not in self.gaps:
                self.stale[held.key] = offset
        self.gaps.update(range(agreed, end))
        self.entries[agreed:end] = committed[agreed:end]
        return super().agree(committed)

    def _end_of_stale(self, start: int, committed: list[Entry]) -> int:
        """Return the end of the records from `start` on that stand for superseded ones of a later epoch.

        It is `start` unless the log goes on with what is committed: see `RetainedReferenceLog.skips_epoch_start`.
        """
        entries, end = self.entries, start
        stop = min(len(entries), len(committed)) - 1
        while end < stop and self.truth.skips_epoch_start(end + 1, committed[end].epoch, entries[end].epoch):
            end += 1
        return end if end <= stop and entries[end] == committed[end] else start

    def _forget_before(self, start: int) -> None:
        """Replace the entries before a log's start by the committed records.

        Entries of an uncommitted history stay if the entries after them are of the same history, as they will be
        truncated.
        """
        committed, entries = self.truth.committed, self.entries
        end = min(start, len(committed), len(entries))
        if self._forgotten < end < len(entries):
            known = self.truth.matching.get((end, entries[end].epoch))
            if known is not None and known[1] != committed[end - 1].epoch:
                return
        for offset in range(self._forgotten, end):
            entries[offset] = committed[offset]
        self._forgotten = max(self._forgotten, end)

    def filled(self, start: int, end: int, following: Entry | None = None) -> list[Entry]:
        """Return the records that stood in a gap before `following`, and record the gap."""
        self.gaps.update(range(start, end))
        self.new_gaps += range(start, end)
        found = [] if following is None else self.truth.before(start, end, following)
        if len(found) < end - start:
            found = self.truth.committed[start:end]
        # What nobody knows is of an epoch of its own, so that it is like nothing else.
        self.truth.unknown_count += 1
        epoch = -1 - self.truth.unknown_count
        return [*found, *(Entry(epoch, -1 - offset) for offset in range(start + len(found), end))]

    def held(self, start: int = 0) -> Iterator[HeldBatch]:
        """Yield the batches in the log, from `start` or the log start on."""
        log = self.log.log
        position = max(Offset(start), log.log_start_offset)
        while position < log.log_end_offset:
            before = position
            for batch in self.reader.batches(bytes(log.read(position, CHUNK_BYTES).records)):
                yield batch
                position = Offset(batch.next_offset)
            if position <= before:
                return  # A cut left nothing up to the end.

    def _read_through(self, decoder: Decoder, end_offset: int) -> None:
        before = len(self.entries)
        self.entries += self._filling.joined(self.held(before), before)
        self.entries += self.filled(len(self.entries), end_offset)
