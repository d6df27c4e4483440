"""A replica's real log is, after each change, the value that the rules say it is."""

from __future__ import annotations

import attrs
import pytest

from broker.clock import ManualClock
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import SizeBytes, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.record import Record
from log.storage import MemoryStorage
from replication.roles.replica_log import ReplicaLog
from replication.rules.epochs import assigned
from replication.rules.switches import CURRENT, Rules, without
from replication.rules.truncation import started_anew

NOW = TimeMs(0)
BATCH = build_batch(BatchSpec(), (Record(Offset(0), NOW, None, b"value"),))


def opened(rules: Rules, config: LogConfig | None = None) -> ReplicaLog:
    storage = MemoryStorage(ManualClock())
    log = PartitionLog.open(storage, "t-0", config or LogConfig(), LastShutdown(clean=True), now_ms=NOW)
    return ReplicaLog(log, rules)


@pytest.mark.parametrize("trims", [False, True])
def test_before_2_7_a_cut_at_the_end_left_an_epoch_without_records(trims: bool) -> None:
    """KAFKA-10706: the follower would ask about this epoch again and again."""
    log = opened(CURRENT if trims else without(CURRENT, "epoch_cache_always_trimmed"))
    log.append_as_leader(BATCH, LeaderEpoch(9), NOW)
    log.take_epochs(attrs.evolve(log.state, epochs=assigned(log.state.epochs, LeaderEpoch(10), Offset(1))))
    for end_offset in (2, 1):
        log.cut(Offset(end_offset), NOW)
        assert [entry.epoch for entry in log.state.epochs] == ([9] if trims else [9, 10])


def test_a_log_that_starts_anew_keeps_its_high_watermark_within_whatever_the_rules() -> None:
    """KAFKA-9491 left it above: a value of the rules shows that, a real log bounds it."""
    rules = without(CURRENT, "high_watermark_follows_full_truncation")
    log = opened(rules)
    for _ in range(3):
        log.append_as_leader(BATCH, LeaderEpoch(0), NOW)
    log.set_high_watermark(Offset(3))
    assert started_anew(log.state, Offset(1), rules).high_watermark == 3
    log.start_anew(Offset(1), NOW)
    assert (log.state.start_offset, log.state.high_watermark, log.state.end_offset) == (1, 1, 1)


def test_after_a_retry_a_follower_still_reads_the_batch_that_was_repeated() -> None:
    """A retry appends nothing: what stands at the offset of its answer is what was appended at first."""
    log = opened(CURRENT)
    spec = BatchSpec(producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0), base_sequence=0)
    sent = build_batch(spec, (Record(Offset(0), NOW, None, b"value"),))
    log.append_as_leader(sent, LeaderEpoch(0), NOW)
    stored = log.read(Offset(0), SizeBytes(1_000))
    assert len(stored) == len(sent)
    assert log.append_as_leader(sent, LeaderEpoch(0), NOW).first_offset == 0
    assert (log.state.end_offset, log.read(Offset(0), SizeBytes(1_000))) == (1, stored)


def test_of_several_batches_appended_at_once_a_follower_gets_no_more_than_it_asked_for() -> None:
    log = opened(CURRENT)
    records = [Record(Offset(number), NOW, None, b"value") for number in range(3)]
    plain = build_batch(BatchSpec(magic=1), records)
    log.append_as_follower(plain, NOW)
    one = SizeBytes(len(plain) // 3)
    assert [len(log.read(Offset(0), SizeBytes(count * one))) for count in (1, 2, 3)] == [one, 2 * one, 3 * one]


def test_an_epoch_without_records_that_was_cut_stays_cut_after_a_crash() -> None:
    # Seed 3, harsh, 10 minutes: a leader of epoch 10 wrote nothing, was cut back to the end of epoch 9, took more of
    # epoch 9 and died; with the cut not on disk it came back with epoch 10 in the midst of epoch 9.
    storage, now = MemoryStorage(ManualClock()), TimeMs(5)

    def opened() -> PartitionLog:
        return PartitionLog.open(storage, "t-0", LogConfig(), LastShutdown(clean=False), now_ms=now)

    log = ReplicaLog(opened(), CURRENT)
    record = Record(Offset(0), now, None, b"x")
    log.append_as_leader(build_batch(BatchSpec(), (record,)), LeaderEpoch(9), now)
    log.take_epochs(attrs.evolve(log.state, epochs=assigned(log.state.epochs, LeaderEpoch(10), Offset(1))))
    log.cut(Offset(1), now)
    log.append_as_leader(build_batch(BatchSpec(), (record,)), LeaderEpoch(9), now)
    assert [entry.epoch for entry in ReplicaLog(opened(), CURRENT).state.epochs] == [9]


def test_an_epoch_without_records_that_was_dropped_at_the_start_stays_dropped_after_a_crash() -> None:
    """LeaderEpochFileCache.truncateFromEndAsyncFlush: UnifiedLog drops such an epoch as it opens, and writes that."""
    storage = MemoryStorage(ManualClock())

    def started() -> ReplicaLog:
        log = PartitionLog.open(storage, "t-0", LogConfig(), LastShutdown(clean=False), now_ms=NOW)
        return ReplicaLog(log, CURRENT)

    log = started()
    log.append_as_leader(BATCH, LeaderEpoch(9), NOW)
    log.take_epochs(attrs.evolve(log.state, epochs=assigned(log.state.epochs, LeaderEpoch(10), Offset(1))))
    again = started()
    again.append_as_leader(BATCH, LeaderEpoch(9), NOW)
    assert [entry.epoch for entry in started().state.epochs] == [9]
