"""One log in memory, one on real files, and a plain list, through every operation: they agree after each.

After each step the three are compared by what can be read, the two logs also by state and by the bytes of their files,
and both check their invariants.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.clock import ManualClock
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import DurationMs, TimeMs
from log.build import build_batch
from log.build_spec import BatchSpec
from log.partition_log import PartitionLog
from log.record import Record
from log.recovery import LastShutdown
from log.storage import FileStorage, MemoryStorage
from tests.golden.log.states import file_contents
from tests.log.made import DIRECTORY, NOW, config, values
from tests.oracles.plain_log import PlainLog

SIZES = st.integers(80, 400)
OFFSETS = st.integers(0, 60)
PRODUCER = ProducerId(5)


class LogMachine(RuleBasedStateMachine):
    """Every operation of a log, on two storages and in a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(NOW)
        self.folder = tempfile.TemporaryDirectory()
        self.storages = (MemoryStorage(self.clock), FileStorage(Path(self.folder.name)))
        self.plain = PlainLog()
        self.epoch = 0
        self.sequence = 0
        self.last_sent: bytes | None = None

    @initialize(segment=SIZES, interval=st.sampled_from([0, 100, 1000]), index=st.sampled_from([48, 1000]))
    def open(self, segment: int, interval: int, index: int) -> None:
        self.config = config(
            segment_bytes=segment, index_interval_bytes=interval, segment_index_bytes=index, retention_ms=500
        )
        self.logs = [self.opened(index, LastShutdown()) for index in range(2)]

    def opened(self, index: int, last_shutdown: LastShutdown) -> PartitionLog:
        return PartitionLog.open(
            self.storages[index], DIRECTORY, self.config, last_shutdown, now_ms=self.clock.now_ms()
        )

    @property
    def now_ms(self) -> TimeMs:
        return self.clock.now_ms()

    @rule(contents=st.lists(st.binary(max_size=12), min_size=1, max_size=3), idempotent=st.booleans())
    def append(self, contents: list[bytes], idempotent: bool) -> None:
        records = [Record(Offset(index), self.now_ms, b"k", value) for index, value in enumerate(contents)]
        spec = BatchSpec()
        if idempotent:
            spec = BatchSpec(producer_id=PRODUCER, producer_epoch=ProducerEpoch(0), base_sequence=self.sequence)
        data = build_batch(spec, records)
        if len(data) > self.config.segment_size_bytes:
            return
        expected = self.plain.append(contents, self.epoch)
        for log in self.logs:
            info = log.append_as_leader(data, leader_epoch=LeaderEpoch(self.epoch), now_ms=self.now_ms)
            assert (info.first_offset, info.is_duplicate) == (expected, False)
        if idempotent:
            self.sequence += len(contents)
            self.last_sent = data

    @precondition(lambda self: self.last_sent is not None)
    @rule()
    def retry(self) -> None:
        assert self.last_sent is not None
        for log in self.logs:
            assert log.append_as_leader(
                self.last_sent, leader_epoch=LeaderEpoch(self.epoch), now_ms=self.now_ms
            ).is_duplicate

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
        self.epoch += 1
        self.logs_forget_producers()

    def logs_forget_producers(self) -> None:
        """Begin a new producer's numbering where the log's knowledge ends."""
        known = {producer.producer_id: producer.last_sequence for producer in self.logs[0].state().producers}
        self.sequence = known.get(PRODUCER, -1) + 1
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
        self.logs_forget_producers()

    @invariant()
    def the_logs_hold_what_the_list_holds(self) -> None:
        if not hasattr(self, "logs"):
            return
        for log in self.logs:
            assert values(log) == self.plain.readable()
            assert (log.log_start_offset, log.log_end_offset) == (self.plain.start_offset, self.plain.end_offset)
            assert log.high_watermark == self.plain.high_watermark
            assert log.last_stable_offset == log.high_watermark
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


LogMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestLogMachine = LogMachine.TestCase
