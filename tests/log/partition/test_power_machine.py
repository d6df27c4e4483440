"""A log after a power loss against a list of what was flushed.

Appends, rolls and flushes are drawn, and when the power goes. Nothing is cut or deleted before, as Kafka syncs no cut,
that of a rolled segment's index neither: it is made sure before. What is left must be batches that were written, all
below the recovery point among them, and the leader epochs those of its records.

Source: UnifiedLog.flush and LocalLog.flush, as facts: what lies below the recovery point is on disk, the name of its
file too; flush.messages and flush.ms flush, and so does what follows a roll.
"""

from __future__ import annotations

from typing import Final

from hypothesis import given

from broker.clock import ManualClock
from broker.ids import LeaderEpoch
from broker.units import TimeMs
from log.batches.in_buffer import batches_in
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.storage import MemoryStorage
from tests.log.made import DIRECTORY, NOW, batch, config, opened
from tests.support.crash import power_loss
from tests.support.disk_image import storage_of
from tests.support.drawing import DRAWS, Draws
from tests.support.recorded import RecordedStorage

LOSSES_A_LIFE: Final = 4


def _life_noticed(draws: Draws) -> str:
    flush_messages, flush_ms = draws.one((2**63 - 1, 2**63 - 1, 1, 5)), draws.one((2**63 - 1, 2**63 - 1, 300))
    settings = config(segment_bytes=draws.number(300, 500), flush_messages=flush_messages, flush_ms=flush_ms)
    storage = RecordedStorage(MemoryStorage(ManualClock(NOW)))
    log = opened(storage, settings)
    written, now_ms, flushed_ms, epoch = 0, int(NOW), int(NOW), 0
    for _ in range(draws.number(1, 14)):
        act, flushed_offset = draws.number(0, 9), log.recovery_point
        if act < 6:
            epoch += draws.is_one_in(4)
            data = batch(draws.number(1, 3), timestamp=now_ms, value=bytes(draws.number(0, 60)))
            log.append_as_leader(data, leader_epoch=LeaderEpoch(epoch), now_ms=TimeMs(now_ms))
            written = log.log_end_offset
            if written - log.recovery_point >= flush_messages:
                return f"of {written} offsets only {log.recovery_point} are flushed, and {flush_messages} may not be"
        elif act == 6:
            log.roll(now_ms=TimeMs(now_ms))
        elif act == 7:
            log.flush(now_ms=TimeMs(now_ms))
        else:
            now_ms += draws.number(0, 400)
            log.run_scheduled(TimeMs(now_ms))
            if now_ms - flushed_ms >= flush_ms and log.recovery_point == flushed_offset != written:
                return f"{now_ms - flushed_ms} ms after a flush {log.recovery_point} of {written} are flushed"
        if log.recovery_point != flushed_offset:
            flushed_ms = now_ms
        if act == 7 and log.recovery_point != written:
            return f"flushed it is up to {log.recovery_point} of {written}"
    for segment in log.segments[:-1]:
        segment.offset_index.flush()
        segment.time_index.flush()
    recording, whole = storage.recording(), _batches(log)
    for _ in range(LOSSES_A_LIFE):
        last = LastShutdown(clean=False, recovery_point=log.recovery_point)
        left = opened(storage_of(ManualClock(NOW), power_loss(recording, draws.entropy)), settings, last_shutdown=last)
        told = _compared(whole, left, log.recovery_point)
        if told:
            return told
    return ""


def _compared(whole: list[tuple[int, int, bytes]], log: PartitionLog, recovery_point: int) -> str:
    """Return where what is left of a log is not of the whole, or does not hold all below the recovery point."""
    log.check_invariants()
    left = _batches(log)
    # A file that ends between two batches is whole, and nobody can tell what was behind it: the next segments stay.
    if left != [each for each in whole if each in left]:
        return f"of {len(whole)} batches {len(left)} others are left"
    lost = [each for each in whole if each not in left and each[0] < recovery_point]
    if lost:
        return f"of {len(whole)} batches {len(left)} are left, and {len(lost)} that are lost were flushed"
    assert log.epochs is not None
    starts = [(entry.start_offset, entry.epoch) for entry in log.epochs.entries]
    for last_offset, epoch, _ in left:
        if max((each for each in starts if each[0] <= last_offset), default=(0, -1))[1] != epoch:
            return f"{DIRECTORY} has the epochs {starts}, and offset {last_offset} is of {epoch}"
    return ""


def _batches(log: PartitionLog) -> list[tuple[int, int, bytes]]:
    """Return the last offset, the leader epoch and the bytes of each batch of a log."""
    return [
        (found.last_offset, found.partition_leader_epoch, bytes(found.data))
        for segment in log.segments
        for found in batches_in(bytes(segment.records.view()))
    ]


@given(draws=DRAWS)
def test_a_power_loss_keeps_what_was_flushed(draws: Draws) -> None:
    assert _life_noticed(draws) == ""
