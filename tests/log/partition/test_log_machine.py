"""One log in memory, one on real files, and a plain list, through every operation: they agree after each.

After each step the three are compared by what can be read, the two logs also by state and by the bytes of their files,
and both check their invariants. Compaction and power loss may take more or less; what they take has to be allowed, and
the list then loses the same.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import DurationMs, TimeMs
from log.batches.build import build_batch, build_marker
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.compaction import CleanerOptions, clean, log_to_clean
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.producers.append import AppendOrigin
from log.record import ControlType, EndTransactionMarker, Record
from log.storage import DiskImage, FileStorage, MemoryStorage, RecordedStorage, Storage, power_loss
from tests.golden.log.states import file_contents
from tests.log.batches.test_build_columns import columns_of
from tests.log.made import DIRECTORY, NOW, config
from tests.oracles.plain_log import PlainLog, PlainRecord

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
        self.epoch = 0
        self.crash_count = 0
        self.is_thinned = False
        self.may_have_older_transactions = False
        """Whether a power loss let the list forget where a transaction began that the producers' snapshot knows."""
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
        self.recorded = RecordedStorage(MemoryStorage(self.clock, image))
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
            info = log.append_as_leader(data, leader_epoch=LeaderEpoch(self.epoch), now_ms=self.now_ms)
            assert (info.first_offset, info.is_duplicate) == (expected, False)
        if idempotent:
            self.last_sent = data

    @rule(pairs=PAIRS, gap=st.integers(0, 2))
    def append_as_follower(self, pairs: list[tuple[bytes, bytes]], gap: int) -> None:
        """Append what a leader has, who may have lost records in between to compaction."""
        first_offset = Offset(self.plain.end_offset + gap)
        data = self.batch(pairs, BatchSpec(first_offset, partition_leader_epoch=LeaderEpoch(self.epoch)))
        if data is None:
            return
        self.plain.end_offset = first_offset
        self.plain.append(pairs, self.now_ms)
        for log in self.logs:
            log.append_as_follower(data, now_ms=self.now_ms)

    @rule(pairs=MANY_PAIRS, per_batch=st.integers(1, 3))
    def append_columns(self, pairs: list[tuple[bytes, bytes]], per_batch: int) -> None:
        """Append what is copied in columns: batches of which each run goes to the files in one write."""
        spec = BatchSpec(Offset(self.plain.end_offset), partition_leader_epoch=LeaderEpoch(self.epoch))
        each_batch = [pairs[first : first + per_batch] for first in range(0, len(pairs), per_batch)]
        if any(self.batch(each, spec) is None for each in each_batch):
            return
        for each in each_batch:
            self.plain.append(each, self.now_ms)
        columns = columns_of(
            [Record(Offset(spec.base_offset + row), self.now_ms, *pair) for row, pair in enumerate(pairs)]
        )
        for log in self.logs:
            info = log.append_columns(spec, columns, per_batch, now_ms=self.now_ms)
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
            log.append_as_leader(data, leader_epoch=LeaderEpoch(self.epoch), now_ms=self.now_ms)

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
                leader_epoch=LeaderEpoch(self.epoch),
                now_ms=self.now_ms,
                origin=AppendOrigin.COORDINATOR,
                transaction_version=0,
            )

    @precondition(lambda self: self.last_sent is not None)
    @rule()
    def retry(self) -> None:
        assert self.last_sent is not None
        for log in self.logs:
            assert log.append_as_leader(
                self.last_sent, leader_epoch=LeaderEpoch(self.epoch), now_ms=self.now_ms
            ).is_duplicate

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
            # The first segment with a time so late may have nothing left to be read; Kafka looks no further.
            assert expected is None or self.is_thinned or self.plain.start_offset > 0

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
            clean(target, now_ms=self.now_ms, options=CleanerOptions(map_slot_count=100))
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

    @rule()
    def roll(self) -> None:
        assert len({log.roll(now_ms=self.now_ms).base_offset for log in self.logs}) == 1

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
        deleted = [log.delete_old_segments(now_ms=self.now_ms) for log in self.logs]
        assert deleted[0] == deleted[1]
        # Which segments there are the list does not know; what went lay below the new start, and was to be read by all.
        assert self.logs[0].log_start_offset <= self.plain.high_watermark
        assert self.plain.begin_at(self.logs[0].log_start_offset)

    @rule(offset=OFFSETS)
    def truncate(self, offset: int) -> None:
        # Another leader goes on, so that no sequence is expected of the producer.
        self.plain.truncate_to(offset)
        for log in self.logs:
            log.truncate_to(Offset(offset), now_ms=self.now_ms)
        self.sync_files()
        self.epoch += 1
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


LogMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
TestLogMachine = LogMachine.TestCase
