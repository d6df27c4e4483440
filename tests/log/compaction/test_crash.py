"""S1 and S3 when power goes during a pass: before and after each file operation, in every state the disk may have then.

Whatever is found, the log opens, ends where it ended, is made of batches that were written or left by the pass, and for
each key the latest record is there: each group of segments is either the old one or the new one.
"""

from __future__ import annotations

from typing import Final

import attrs
import pytest

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.ids import Offset
from log.codecs.compression import Codec
from log.compaction import CleanerOptions, clean, log_to_clean
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.record import ControlType, Record
from log.storage import MemoryStorage
from tests.log.compaction.logs import DIRECTORY, START_MS, Written, config_of, data_of
from tests.support.crash import crash_states
from tests.support.disk_image import DiskImage, image_of, storage_of
from tests.support.recorded import RecordedStorage

SETTINGS: Final = {"segment_bytes": 400, "index_interval_bytes": 10_000, "segment_index_bytes": 48}


def written_log(group_count: int, *, transactional: bool) -> DiskImage:
    """A closed log of `group_count` segments that cannot become one, each of two batches, and one that is active."""
    clock = ManualClock(START_MS)
    storage = MemoryStorage(clock)
    written = Written.empty(storage, **SETTINGS)
    for number in range(group_count):
        value = b"%d" % number * 100
        written.append((b"a", value), (b"b%d" % number, value), codec=Codec.NONE)
        written.append((b"a", b"%d" % number), producer=7, transactional=transactional)
        if transactional:
            written.end_transaction(7, ControlType.COMMIT)
        written.roll()
    written.append((b"c", b"active"))
    written.log.flush(now_ms=START_MS)
    written.log.close(now_ms=START_MS)
    return image_of(storage)


def opened(storage: RecordedStorage | MemoryStorage, *, is_clean: bool, end_offset: int) -> PartitionLog:
    shutdown = LastShutdown(clean=is_clean, recovery_point=Offset(end_offset))
    log = PartitionLog.open(storage, DIRECTORY, config_of(**SETTINGS), shutdown, now_ms=START_MS)
    log.update_high_watermark(log.log_end_offset)
    return log


@pytest.mark.deep
@pytest.mark.parametrize(("group_count", "transactional"), [(1, False), (2, True)])
def test_power_loss_at_any_moment_of_a_pass_leaves_the_old_or_the_new_segments(
    group_count: int, transactional: bool
) -> None:
    run = interrupted_pass(written_log(group_count, transactional=transactional))
    assert len(run.after) < len(run.before)
    latest = {record.key: record for record in run.before}
    assert len(run.images) > 100
    for image in run.images:
        found = opened(storage_of(ManualClock(START_MS), image), is_clean=False, end_offset=run.end_offset)
        assert found.log_end_offset == run.end_offset, sorted(image.files)
        records = data_of(found)
        # S1: what is there was there, in its order, and the latest of each key is.
        assert records == [record for record in run.before if record in records]
        assert all(record in records for record in latest.values())
        # Each group is old or new.
        assert set(run.after) <= set(records) <= set(run.before)
        assert not [name for name in found.storage.list(DIRECTORY) if name.endswith((".cleaned", ".swap"))]
        found.check_invariants()


def test_a_pass_after_a_crash_does_what_the_broken_off_one_would_have_done() -> None:
    run = interrupted_pass(written_log(2, transactional=False))
    for image in run.images[::5]:
        found = opened(storage_of(ManualClock(START_MS), image), is_clean=False, end_offset=run.end_offset)
        clean_whole(found)
        assert data_of(found) == run.after


@attrs.frozen
class Interrupted:
    """What a log held before a pass and after it, where it ended, and all disks that power loss may have left then."""

    before: list[Record]
    after: list[Record]
    end_offset: Offset
    images: list[DiskImage]


def interrupted_pass(start: DiskImage) -> Interrupted:
    storage = RecordedStorage(storage_of(ManualClock(START_MS), start))
    log = opened(storage, is_clean=True, end_offset=0)
    before = data_of(log)
    storage.sync_directory(DIRECTORY)
    operation_count = len(storage.recording().operations)
    clean_whole(log)
    recording = storage.recording()
    images = {}
    for end in range(operation_count, len(recording.operations) + 1):
        for image in crash_states(recording, SplitMix64(end), end=end, sample_count=20):
            images.setdefault(frozenset(image.files.items()), image)
    return Interrupted(before, data_of(log), log.log_end_offset, list(images.values()))


def clean_whole(log: PartitionLog) -> None:
    clean(log_to_clean(log, None, now_ms=START_MS), now_ms=START_MS, options=CleanerOptions(map_slot_count=100))
