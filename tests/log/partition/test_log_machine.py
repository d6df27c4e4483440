"""One log in memory, one on real files, and a plain list, through every operation: they agree after each.

After each step the three are compared by what can be read, the two logs also by state and by the bytes of their files,
and both check their invariants. Compaction and power loss may take more or less; what they take has to be allowed, and
the list then loses the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import DurationMs, TimeMs
from log.batches.batch import RecordBatch
from log.batches.build import BatchSpec, build_batch, build_marker
from log.batches.in_buffer import batches_in
from log.compaction import CleanerOptions, clean, log_to_clean
from log.errors import IllegalArgumentError, OffsetOutOfRangeError, UnexpectedAppendOffsetError
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.partition.reading import Isolation
from log.partition.recovery import LastShutdown
from log.record import ControlType, EndTransactionMarker, Record
from log.segments.file_names import LOG, OFFSET_INDEX, PRODUCER_SNAPSHOT, TIME_INDEX, TXN_INDEX
from log.segments.txn_index import AbortedTransaction
from log.storage import FileStorage, Storage
from tests.golden.log.states import file_contents
from tests.log.batches.test_build_columns import columns_of
from tests.log.made import DIRECTORY, NOW, config
from tests.oracles.plain_log import PlainLog, PlainRecord
from tests.support.crash import power_loss
from tests.support.disk_image import DiskImage, storage_of
from tests.support.recorded import RecordedStorage

SIZES = st.integers(150, 400)
OFFSETS = st.integers(0, 60)
PAIR = st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.binary(max_size=12))
PAIRS = st.lists(PAIR, min_size=1, max_size=3)
MANY_PAIRS = st.lists(PAIR, min_size=1, max_size=12)
PRODUCER = ProducerId(5)
TRANSACTIONAL = ProducerId(6)
READ_BYTES_MAX = 10_000


class LogMachine(RuleBasedStateMachine):
    """Every operation of a log, on two storages and in a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(NOW)
        self.folder = tempfile.TemporaryDirectory()
        self.plain = PlainLog()
        self.newest_epoch = 0
        self.crash_count = 0
        self.is_thinned = False
        self.may_have_older_transactions = False
        """Whether the list may be wrong on where a transaction began, after a power loss or a cut of a cleaned log."""
        self.may_be_damaged = False
        """Whether a power loss may have damaged segments below the log start, which nothing recovers or reads."""
        self.last_sent: bytes | None = None
        self.set_storages(DiskImage({}))

    def set_storages(self, image: DiskImage) -> None:
        """Begin with the same disk in memory and in a new folder."""
        folder = Path(self.folder.name) / str(self.crash_count)
        for path, content in image.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        folder.mkdir(exist_ok=True)
        self.recorded = RecordedStorage(storage_of(self.clock, image))
        self.storages: tuple[Storage, Storage] = (self.recorded, FileStorage(folder))

    @initialize(segment=SIZES, interval=st.sampled_from([0, 100, 1000]), index=st.sampled_from([48, 1000]))
    def open(self, segment: int, interval: int, index: int) -> None:
        self.config = config(
            segment_bytes=segment,
            index_interval_bytes=interval,
            segment_index_bytes=index,
            retention_ms=500,
            cleanup_policy="compact,delete",
            min_cleanable_dirty_ratio=0.0,
        )
        self.logs = [self.opened(index, LastShutdown()) for index in range(2)]

    def opened(self, index: int, last_shutdown: LastShutdown) -> PartitionLog:
        return PartitionLog.open(
            self.storages[index], DIRECTORY, self.config, last_shutdown, now_ms=self.clock.now_ms()
        )

    @property
    def now_ms(self) -> TimeMs:
        return self.clock.now_ms()

    @property
    def epoch(self) -> LeaderEpoch:
        """Return the epoch of the leader that writes next."""
        return LeaderEpoch(self.plain.epoch)

    def next_sequence(self, producer: ProducerId) -> int:
        known = {each.producer_id: each.last_sequence for each in self.logs[0].state().producers}
        return known.get(producer, -1) + 1

    def batch(self, pairs: list[tuple[bytes, bytes]], spec: BatchSpec) -> bytes | None:
        """Return a batch, None if no segment has room for it."""
        first_offset = spec.base_offset
        records = [Record(Offset(first_offset + n), self.now_ms, key, value) for n, (key, value) in enumerate(pairs)]
        data = build_batch(spec, records)
        return data if len(data) <= self.config.segment_size_bytes else None

    @rule(pairs=PAIRS, idempotent=st.booleans())
    def append(self, pairs: list[tuple[bytes, bytes]], idempotent: bool) -> None:
        spec = BatchSpec()
        if idempotent:
            sequence = self.next_sequence(PRODUCER)
            spec = BatchSpec(producer_id=PRODUCER, producer_epoch=ProducerEpoch(0), base_sequence=sequence)
        data = self.batch(pairs, spec)
        if data is None:
            return
        expected = self.plain.append(pairs, self.now_ms)
        for log in self.logs:
            info = log.append_as_leader(data, leader_epoch=self.epoch, now_ms=self.now_ms)
            assert (info.first_offset, info.is_duplicate) == (expected, False)
        if idempotent:
            self.last_sent = data

    @rule(pairs=PAIRS, gap=st.integers(0, 2))
    def append_as_follower(self, pairs: list[tuple[bytes, bytes]], gap: int) -> None:
        """Append what a leader has, who may have lost records in between to compaction."""
        first_offset = Offset(self.plain.end_offset + gap)
        data = self.batch(pairs, BatchSpec(first_offset, partition_leader_epoch=self.epoch))
        if data is None:
            return
        self.plain.end_offset = first_offset
        self.plain.append(pairs, self.now_ms)
        for log in self.logs:
            log.append_as_follower(data, now_ms=self.now_ms)

    @rule(pairs=MANY_PAIRS, per_batch=st.integers(1, 3), is_of_next=st.booleans())
    def append_columns(self, pairs: list[tuple[bytes, bytes]], per_batch: int, is_of_next: bool = False) -> None:
        """Append to one log what is copied in columns, runs of batches in one write, to the other batch by batch."""
        if is_of_next:
            self.lead_anew()
        spec = BatchSpec(Offset(self.plain.end_offset), partition_leader_epoch=self.epoch)
        each_batch = [pairs[first : first + per_batch] for first in range(0, len(pairs), per_batch)]
        if any(self.batch(each, spec) is None for each in each_batch):
            return
        for each in each_batch:
            first_offset = Offset(self.plain.append(each, self.now_ms))
            data = self.batch(each, BatchSpec(first_offset, partition_leader_epoch=self.epoch))
            assert data is not None
            self.logs[1].append_as_follower(data, now_ms=self.now_ms)
        columns = columns_of(
            [Record(Offset(spec.base_offset + row), self.now_ms, *pair) for row, pair in enumerate(pairs)]
        )
        info = self.logs[0].append_columns(spec, columns, per_batch, now_ms=self.now_ms)
        assert (info.first_offset, info.last_offset) == (spec.base_offset, self.plain.end_offset - 1)

    @rule(pairs=PAIRS)
    def append_in_transaction(self, pairs: list[tuple[bytes, bytes]]) -> None:
        sequence = self.next_sequence(TRANSACTIONAL)
        data = self.batch(
            pairs,
            BatchSpec(
                producer_id=TRANSACTIONAL,
                producer_epoch=ProducerEpoch(0),
                base_sequence=sequence,
                is_transactional=True,
            ),
        )
        if data is None:
            return
        self.plain.append(pairs, self.now_ms, producer=TRANSACTIONAL)
        for log in self.logs:
            log.append_as_leader(data, leader_epoch=self.epoch, now_ms=self.now_ms)

    @precondition(lambda self: self.plain.first_open_offset() is not None)
    @rule(is_abort=st.booleans())
    def end_transaction(self, is_abort: bool) -> None:
        self.plain.end_transaction(TRANSACTIONAL, self.now_ms, is_abort=is_abort)
        kind = ControlType.ABORT if is_abort else ControlType.COMMIT
        spec = BatchSpec(producer_id=TRANSACTIONAL, producer_epoch=ProducerEpoch(0), is_transactional=True)
        marker = build_marker(spec, EndTransactionMarker(kind, 0), self.now_ms)
        for log in self.logs:
            log.append_as_leader(
                marker,
                leader_epoch=self.epoch,
                now_ms=self.now_ms,
                origin=AppendOrigin.COORDINATOR,
                transaction_version=0,
            )

    @precondition(lambda self: self.last_sent is not None)
    @rule()
    def retry(self) -> None:
        assert self.last_sent is not None
        for log in self.logs:
            assert log.append_as_leader(self.last_sent, leader_epoch=self.epoch, now_ms=self.now_ms).is_duplicate

    @rule(offset=OFFSETS)
    def read(self, offset: int) -> None:
        """A read begins with the batch that has the first record from the offset on."""
        if not self.plain.start_offset <= offset <= self.plain.end_offset:
            return
        expected = next((record for record in self.plain.readable() if record.offset >= offset), None)
        for log in self.logs:
            data = log.read(Offset(offset), READ_BYTES_MAX).records
            found = (record.offset for batch in batches_in(data) for record in batch.records())
            first = next((each for each in found if each >= offset), None)
            # What is left of a batch may be nothing; then the next read finds the record.
            assert first == (None if expected is None else expected.offset) or (first is None and self.is_thinned)

    @rule(offset=OFFSETS, high=OFFSETS, is_committed=st.booleans())
    def consume(self, offset: int, high: int, is_committed: bool) -> None:
        """Read as a consumer: whole batches below what is replicated, or decided, and which of them were aborted."""
        self.raise_high_watermark(high)
        isolation = Isolation.COMMITTED if is_committed else Isolation.HIGH_WATERMARK
        reads = [partial(log.read, Offset(offset), READ_BYTES_MAX, isolation=isolation) for log in self.logs]
        if offset < self.plain.start_offset:
            assert all(is_refused(read, OffsetOutOfRangeError) for read in reads)
            return
        batches = [batch for segment in self.logs[0].segments for batch in segment.batches()]
        reached = self.plain.high_watermark
        if reached < self.plain.end_offset:  # Since Kafka 4.0 the batch that holds it is not replicated, as a whole.
            holding = next((batch.base_offset for batch in batches if batch.last_offset >= reached), None)
            reached = self.plain.end_offset if holding is None else holding
        self.plain.high_watermark = reached
        if offset > self.plain.end_offset:
            assert all(is_refused(read, OffsetOutOfRangeError) for read in reads)
            return
        for log, read in zip(self.logs, reads, strict=True):
            fetched = read()
            limit = log.last_stable_offset if is_committed else log.high_watermark
            found = list(batches_in(fetched.records))
            assert all(batch.last_offset < limit for batch in found)
            wanted = [batch.base_offset for batch in batches if offset <= batch.last_offset < limit]
            assert [batch.base_offset for batch in found[:1]] == wanted[:1]
            # Where compaction took the end of the log, Kafka lists none for anybody.
            assert (fetched.aborted_transactions is not None) == is_committed or not found
            assert fetched.aborted_transactions is None or is_committed
            if fetched.aborted_transactions is not None:
                self.aborted_are_listed(offset, found, fetched.aborted_transactions)

    def aborted_are_listed(self, offset: int, found: list[RecordBatch], listed: tuple[AbortedTransaction, ...]) -> None:
        """Assert that every aborted batch of a read from `offset` on is named, and nothing that was not aborted."""
        if self.may_have_older_transactions:
            return
        assert all(each.last_offset >= offset for each in listed)
        assert {each.last_offset for each in listed} <= self.plain.abort_markers()
        aborted = self.plain.aborted_offsets() if listed or found else set()
        for batch in found:
            if aborted & {record.offset for record in batch.records()}:
                names = [each for each in listed if each.producer_id == batch.producer_id]
                assert any(each.first_offset <= batch.base_offset <= each.last_offset for each in names)

    @rule()
    def be_refused(self) -> None:
        """Ask for what lies outside the log: that is refused, and changes nothing."""
        end, start, high = (self.plain.end_offset, self.plain.start_offset, self.plain.high_watermark)
        spec = BatchSpec(Offset(max(end - 1, 0)), partition_leader_epoch=self.epoch)
        for log in self.logs:
            before = log.state()
            for outside in (start - 1, end + 1):
                assert is_refused(partial(log.read, Offset(outside), READ_BYTES_MAX), OffsetOutOfRangeError)
            raised = partial(log.increment_log_start_offset, Offset(max(start, high) + 1))
            assert is_refused(raised, OffsetOutOfRangeError)
            assert is_refused(partial(log.truncate_to, Offset(-1), now_ms=self.now_ms), IllegalArgumentError)
            data = self.batch([(b"a", b"")], spec)
            if end and data is not None:
                again = partial(log.append_as_follower, data, now_ms=self.now_ms)
                assert is_refused(again, UnexpectedAppendOffsetError)
            assert log.state() == before

    @rule(age=st.integers(-1, 3000))
    def look_up_by_time(self, age: int) -> None:
        timestamp = self.now_ms - age
        expected = next((record for record in self.plain.readable() if record.timestamp >= timestamp), None)
        found = [log.fetch_offset_by_timestamp(timestamp) for log in self.logs]
        assert found[0] == found[1]
        if found[0] is not None:
            assert expected is not None
            assert (found[0].offset, found[0].timestamp_ms) == (expected.offset, expected.timestamp)
        else:
            # The first segment with a time so late may have nothing left to be read; Kafka looks no further. One that
            # was cut to nothing and left by a roll has the time of its file.
            is_cut_out = any(segment.size_bytes == 0 for segment in self.logs[0].segments[:-1])
            assert expected is None or self.is_thinned or self.plain.start_offset > 0 or is_cut_out

    @rule()
    def read_committed(self) -> None:
        """All is replicated: the last stable offset is where the first open transaction begins."""
        self.plain.raise_high_watermark(self.plain.end_offset)
        first_open = self.plain.first_open_offset()
        stable = self.plain.end_offset if first_open is None else max(first_open, self.plain.start_offset)
        for log in self.logs:
            log.update_high_watermark(log.log_end_offset)
            assert log.last_stable_offset == stable or self.may_have_older_transactions

    @precondition(lambda self: not self.may_be_damaged)
    @rule()
    def compact(self) -> None:
        before = self.plain.readable()
        aborted = self.plain.aborted_offsets()
        for log in self.logs:
            target = log_to_clean(log, None, now_ms=self.now_ms)
            if target.end_offset <= target.first_dirty_offset:
                return
            bases, snapshots = bases_of(log), snapshots_of(log)
            clean(target, now_ms=self.now_ms, options=CleanerOptions(map_slot_count=100))
            assert snapshots_of(log) == snapshots - (bases - bases_of(log))
            found = records_of(log)
            assert [record for record in before if record in found] == found
            newest = {record.key: record.offset for record in before if record.offset not in aborted}
            for lost in before:
                is_superseded = newest.get(lost.key, -1) > lost.offset
                assert lost in found or lost.key is None or is_superseded or lost.offset in aborted
                assert lost in found or lost.offset < target.end_offset
        self.plain.keep({record.offset for record in records_of(self.logs[0])})
        self.is_thinned = True

    @rule(seed=st.integers(0, 1000))
    def lose_power(self, seed: int) -> None:
        """Of what was written since the last flush something is there; what cannot be relied on is made sure before.

        That is the names in the directory, that the indexes of rolled segments are trimmed, and every cut, by a
        truncation or a recovery: as Kafka syncs none of them, a cut may come undone, and zeros may stand behind the
        entries of an index that is not built anew. What comes of that is in `tests.log.crash.programs`.
        """
        log = self.logs[0]
        for segment in log.segments[:-1]:
            segment.offset_index.flush()
            segment.time_index.flush()
        sure_offset, start_offset = log.recovery_point, log.log_start_offset
        if log.epochs is not None:
            log.epochs.flush()
        self.recorded.sync_directory(DIRECTORY)
        image = power_loss(self.recorded.recording(), SplitMix64(seed))
        self.logs[1].close(now_ms=self.now_ms)
        self.crash_count += 1
        self.set_storages(image)
        last_shutdown = LastShutdown(clean=False, recovery_point=sure_offset, log_start_offset=start_offset)
        self.logs = [self.opened(index, last_shutdown) for index in range(2)]
        self.sync_files()
        before, found = self.plain.readable(), records_of(self.logs[0])
        assert [record for record in before if record in found] == found
        assert all(record in found for record in before if record.offset < sure_offset)
        is_below = any(batch.producer and batch.first_offset < start_offset for batch in self.plain.batches)
        self.may_have_older_transactions |= is_below
        self.may_be_damaged |= self.logs[0].segments[0].base_offset < start_offset
        self.plain.keep({record.offset for record in found})
        self.plain.batches = [batch for batch in self.plain.batches if batch.records]
        self.plain.reopen()
        self.plain.truncate_to(self.logs[0].log_end_offset)
        self.plain.start_offset = self.logs[0].log_start_offset
        self.plain.end_offset = self.logs[0].log_end_offset
        self.is_thinned = True
        self.plain.high_watermark = self.plain.start_offset
        self.last_sent = None

    def sync_files(self) -> None:
        """Make what the files hold durable, and so a cut of one of them."""
        for name in self.recorded.list(DIRECTORY):
            self.recorded.open(f"{DIRECTORY}/{name}").sync()

    @rule(has_strays=st.booleans())
    def roll(self, has_strays: bool = False) -> None:
        """Begin a segment; files that stand in its place are none of the log's, and go."""
        for log in self.logs:
            place = log.local.place(log.log_end_offset)
            if has_strays and place.base_offset not in bases_of(log):
                for kind in (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX):
                    log.storage.replace(place.path(kind), bytes(24))
            rolled = log.roll(now_ms=self.now_ms)
            assert (rolled.base_offset, rolled.size_bytes) == (self.plain.end_offset, 0)

    @rule()
    def flush(self) -> None:
        for log in self.logs:
            log.flush(now_ms=self.now_ms)
            assert log.recovery_point == log.log_end_offset

    @rule(duration=st.integers(0, 700))
    def sleep(self, duration: int) -> None:
        self.clock.advance(DurationMs(duration))
        for log in self.logs:
            log.run_scheduled(self.now_ms)

    @rule(offset=OFFSETS)
    def raise_high_watermark(self, offset: int) -> None:
        self.plain.raise_high_watermark(offset)
        for log in self.logs:
            assert log.update_high_watermark(Offset(offset)) == self.plain.high_watermark

    @rule(offset=OFFSETS)
    def delete_before(self, offset: int) -> None:
        if offset <= self.plain.high_watermark:
            self.plain.begin_at(offset)
            for log in self.logs:
                log.increment_log_start_offset(Offset(offset))

    @rule()
    def retain(self) -> None:
        bases, snapshots = bases_of(self.logs[0]), snapshots_of(self.logs[0])
        deleted = [log.delete_old_segments(now_ms=self.now_ms) for log in self.logs]
        assert deleted[0] == deleted[1]
        # A roll may add a snapshot.
        gone = bases - bases_of(self.logs[0])
        assert snapshots - gone <= snapshots_of(self.logs[0]) <= (snapshots | {self.plain.end_offset}) - gone
        # Which segments there are the list does not know; what went lay below the new start, and was to be read by all.
        start_offset = self.logs[0].log_start_offset
        assert start_offset == self.plain.start_offset or self.plain.begin_at(start_offset)

    @rule(offset=OFFSETS, is_copied=st.booleans())
    def truncate(self, offset: int, is_copied: bool = False) -> None:
        """Cut the logs; then another leader goes on, or what the next leader has of a former one is copied.

        What a roll flushes is flushed before: done after the cut, it moves the recovery point above the log's end.
        """
        for log in self.logs:
            log.run_scheduled(self.now_ms)
        before = self.plain.first_open_offset()
        self.plain.truncate_to(offset)
        # Of a transaction that is open again, as its marker went, compaction may have taken the records.
        self.may_have_older_transactions |= self.is_thinned and self.plain.first_open_offset() != before
        for log in self.logs:
            log.truncate_to(Offset(offset), now_ms=self.now_ms)
        self.sync_files()
        self.lead_anew()
        if is_copied and self.logs[0].epochs is not None:
            self.plain.epoch = self.logs[0].epochs.latest_epoch or 0

    @rule()
    def lead_anew(self) -> None:
        """Let another leader go on, of whom no sequence of the producer is expected."""
        self.newest_epoch += 1
        self.plain.epoch = self.newest_epoch
        self.last_sent = None

    @rule(clean=st.booleans(), recovery_point=st.sampled_from(["start", "point"]))
    def reopen(self, clean: bool, recovery_point: str) -> None:
        for index, log in enumerate(self.logs):
            log.close(now_ms=self.now_ms)
            point = log.recovery_point if recovery_point == "point" else Offset(0)
            last_shutdown = LastShutdown(clean=clean, recovery_point=point, log_start_offset=log.log_start_offset)
            self.logs[index] = self.opened(index, last_shutdown)
        self.plain.reopen()
        # A cut may have left the end above the last batch, and nothing on disk says so.
        self.plain.truncate_to(self.logs[0].log_end_offset)
        self.last_sent = None

    @invariant()
    def the_logs_hold_what_the_list_holds(self) -> None:
        if not hasattr(self, "logs"):
            return
        for log in self.logs:
            assert records_of(log) == self.plain.readable()
            assert (log.log_start_offset, log.log_end_offset) == (self.plain.start_offset, self.plain.end_offset)
            assert log.high_watermark == self.plain.high_watermark
            assert log.last_stable_offset <= log.high_watermark
            starts = [(entry.start_offset, entry.epoch) for entry in log.epochs.entries]
            for offset, epoch in self.plain.epochs().items():
                assert max(start for start in starts if start[0] <= offset)[1] == epoch
            log.check_invariants()

    @invariant()
    def the_two_logs_are_alike_to_the_byte(self) -> None:
        if not hasattr(self, "logs"):
            return
        memory, files = self.logs
        assert memory.state() == files.state()
        contents = [file_contents(log.storage, DIRECTORY, log) for log in self.logs]
        assert contents[0] == contents[1]

    def teardown(self) -> None:
        self.folder.cleanup()


def is_refused(call: Callable[[], object], error: type[Exception]) -> bool:
    """Return whether a call raises `error`."""
    try:
        call()
    except error:
        return True
    return False


def bases_of(log: PartitionLog) -> set[int]:
    """Return where the segments of a log begin."""
    return {segment.base_offset for segment in log.segments}


def snapshots_of(log: PartitionLog) -> set[int]:
    """Return the offsets of the snapshots of the producers that stand beside a log."""
    names = log.storage.list(DIRECTORY)
    return {int(name.removesuffix(PRODUCER_SNAPSHOT)) for name in names if name.endswith(PRODUCER_SNAPSHOT)}


def records_of(log: PartitionLog) -> list[PlainRecord]:
    """Return every record of a log, markers without their contents.

    Segments below the log start wait for deletion. A power loss may damage them for good: as in Kafka, the recovery
    point rises with the log start though nothing was flushed (UnifiedLog.updateLogStartOffset, 4.3.1).
    """
    return [
        PlainRecord(record.offset, record.key, record.value, record.timestamp)
        if not found.is_control
        else PlainRecord(record.offset, None, None, record.timestamp)
        for segment, following in zip(log.segments, (*log.segments[1:], None), strict=True)
        if following is None or following.base_offset > log.log_start_offset
        for found in segment.batches()
        for record in found.records()
        if record.offset >= log.log_start_offset
    ]


LogMachine.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
TestLogMachine = LogMachine.TestCase
