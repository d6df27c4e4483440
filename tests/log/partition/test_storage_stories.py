"""S80 to S90: what a disk can do to one log between two starts, and what the log owes then.

Each story says what happens and how, and ends with what has to be true. What replicas make of it (the other halves of
S87, S88 and S90, and all of S91) is told where there are replicas. The same faults at every byte and at any moment are
in `tests.log.crash`.
"""

from __future__ import annotations

from typing import Final

import pytest

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.ids import LeaderEpoch, Offset
from log.batches.in_buffer import batches_in
from log.errors import CorruptBatchError, StorageError
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.segments.file_names import CLEANED, DELETED, LOG, OFFSET_INDEX, SWAP, TIME_INDEX
from log.storage import Fault, FaultKind, FaultyStorage, MemoryStorage
from log.storage.checkpoints import LEADER_EPOCH_FILE, RECOVERY_POINT_FILE, EpochEntry
from tests.log.compaction.logs import Written as Compacted
from tests.log.compaction.logs import config_of, pairs_of
from tests.log.crash import matrix
from tests.log.made import DIRECTORY, EPOCH, NOW, appended, batch, config, memory, opened, values
from tests.support.crash import power_loss
from tests.support.disk_image import DiskImage, image_of, storage_of
from tests.support.recorded import RecordedStorage

UNCLEAN: Final = LastShutdown(clean=False)
SETTINGS: Final = config(segment_bytes=300, index_interval_bytes=0)
READ_BYTES_MAX: Final = 10_000
LOSS_COUNT: Final = 20
ROUND_COUNT_MAX: Final = 40


def three_segments() -> DiskImage:
    """A closed log of three segments with three batches of two records each, offsets 0 to 17."""
    log = opened(settings=SETTINGS)
    for number in range(9):
        appended(log, batch(2, timestamp=NOW + 10 * number, value=b"%d" % number))
        if number in (2, 5):
            log.roll(now_ms=NOW)
    log.close(now_ms=NOW)
    return image_of(log.storage)


def path_of(base_offset: int, kind: str) -> str:
    return f"{DIRECTORY}/{base_offset:020d}{kind}"


def changed(image: DiskImage, path: str, content: bytes) -> DiskImage:
    return DiskImage({**image.files, path: content}, image.directories)


def flipped(image: DiskImage, path: str, position: int) -> DiskImage:
    content = bytearray(image.files[path])
    content[position] ^= 0x10
    return changed(image, path, bytes(content))


def started(image: DiskImage, last_shutdown: LastShutdown = UNCLEAN) -> PartitionLog:
    log = opened(storage_of(ManualClock(NOW), image), SETTINGS, last_shutdown=last_shutdown)
    log.update_high_watermark(log.log_end_offset)
    return log


@pytest.mark.parametrize("kinds", [(OFFSET_INDEX,), (TIME_INDEX,), (OFFSET_INDEX, TIME_INDEX)])
@pytest.mark.parametrize("kept_bytes", [0, 12, 24])
def test_s81_entries_that_an_index_lacks_after_a_crash_are_made_again(kinds: tuple[str, ...], kept_bytes: int) -> None:
    """The machine stops after a batch reached the log file and before its entries reached the indexes."""
    image = damaged = three_segments()
    for kind in kinds:
        damaged = changed(damaged, path_of(12, kind), image.files[path_of(12, kind)][:kept_bytes])
    log = started(damaged)
    sound = started(image, LastShutdown())
    for segment, expected in zip(log.segments, sound.segments, strict=True):
        assert segment.offset_index.entries().offsets.tolist() == expected.offset_index.entries().offsets.tolist()
    for offset in range(log.log_end_offset):
        walked = next(found for segment in log.segments for found in segment.batches() if found.last_offset >= offset)
        (first, *_) = batches_in(log.read(Offset(offset), READ_BYTES_MAX).records)
        assert bytes(first.data) == bytes(walked.data)
    records = [record for segment in log.segments for found in segment.batches() for record in found.records()]
    for timestamp in range(NOW - 1, NOW + 90):
        by_scan = next((record.offset for record in records if record.timestamp >= timestamp), None)
        found_offset = log.fetch_offset_by_timestamp(timestamp)
        assert (None if found_offset is None else found_offset.offset) == by_scan


def compacted(*, cleans: bool) -> DiskImage:
    """A log with offsets 0 to 3 in two rolled segments, one key twice, and 4 in the active one; compacted or not."""
    log = Compacted.empty()
    for first, second in (((b"a", b"1"), (b"b", b"1")), ((b"a", b"2"), (b"c", b"1"))):
        log.append(first, second)
        log.roll()
    log.append((b"b", b"active"))
    if cleans:
        log.clean()
        log.sleep(log.log.config.file_delete_delay_ms + 1)
    log.log.close(now_ms=log.now_ms)
    return image_of(log.log.storage)


@pytest.mark.parametrize(
    ("phase", "is_done"),
    [("cleaned", False), ("partly swap", False), ("swap and originals", True), ("originals deleted", True)],
)
@pytest.mark.parametrize("shutdown", [LastShutdown(clean=True), UNCLEAN])
def test_s82_a_pass_of_the_cleaner_that_is_broken_off_is_undone_or_done(
    phase: str, is_done: bool, shutdown: LastShutdown
) -> None:
    """The machine stops while the cleaner puts a new segment in the place of two old ones, in one of four phases."""
    before, after = compacted(cleans=False), compacted(cleans=True)
    old = {path_of(base_offset, kind) for base_offset in (0, 2) for kind in (LOG, OFFSET_INDEX, TIME_INDEX)}
    new = {kind: after.files[path_of(0, kind)] for kind in (LOG, OFFSET_INDEX, TIME_INDEX)}
    suffixes = dict.fromkeys(new, {"cleaned": CLEANED, "originals deleted": ""}.get(phase, SWAP))
    if phase == "partly swap":
        suffixes[TIME_INDEX] = CLEANED
    renamed = DELETED if phase == "originals deleted" else ""
    files = {path + renamed if path in old else path: content for path, content in before.files.items()}
    files |= {path_of(0, kind) + suffix: new[kind] for kind, suffix in suffixes.items()}
    storage = storage_of(ManualClock(NOW), DiskImage(files, before.directories))
    log = PartitionLog.open(storage, DIRECTORY, config_of(), shutdown, now_ms=NOW)
    found = pairs_of(log)
    assert found == [
        *([] if is_done else [(0, b"a", b"1")]),
        (1, b"b", b"1"),
        (2, b"a", b"2"),
        (3, b"c", b"1"),
        (4, b"b", b"active"),
    ]
    assert [segment.base_offset for segment in log.segments] == ([0, 4] if is_done else [0, 2, 4])
    assert not [name for name in storage.list(DIRECTORY) if name.endswith((CLEANED, SWAP, DELETED))]
    log.check_invariants()


def test_s84_epochs_beyond_the_end_of_the_log_are_forgotten() -> None:
    """The checkpoint of leader epochs reached the disk, and the batches of the new epoch did not."""
    ahead = b"0\n3\n%d 0\n%d 18\n%d 40\n" % (EPOCH, EPOCH + 1, EPOCH + 2)
    log = started(changed(three_segments(), f"{DIRECTORY}/{LEADER_EPOCH_FILE}", ahead))
    assert log.state().leader_epochs == (EpochEntry(EPOCH, Offset(0)),)
    newer = log.end_offset_for_epoch(LeaderEpoch(EPOCH + 2))
    assert newer is None or newer.leader_epoch <= EPOCH
    # A leader of today begins its epoch where the log ends, before it has written anything.
    log.assign_epoch_start(LeaderEpoch(EPOCH + 3), log.log_end_offset)
    assert (log.state().leader_epochs or ())[-1] == EpochEntry(LeaderEpoch(EPOCH + 3), Offset(18))


@pytest.mark.parametrize(("checkpointed", "found"), [(100, 18), (18, 18), (7, 7)])
def test_s85_a_recovery_point_beyond_the_end_is_lowered_and_none_is_raised(checkpointed: int, found: int) -> None:
    """The checkpoint of recovery points reached the disk, and the batches that were flushed before it did not."""
    log = started(three_segments(), LastShutdown(clean=False, recovery_point=Offset(checkpointed)))
    assert (log.log_end_offset, log.recovery_point) == (18, found)


@pytest.mark.parametrize("content", [b"", b"0\n1\nevents 0\n", b"\0" * 40, b"\xff\xfe"])
def test_s86_a_recovery_checkpoint_that_cannot_be_read_means_all_of_the_log(content: bytes) -> None:
    """The checkpoint is damaged: what it protected is recovered from the start, so that damage there is found too."""
    image = matrix.made(clean=False)
    flushed = matrix.FILES[".log, flushed"].replace("*", f"{0:017d}")
    damaged = flipped(image, flushed, len(image.files[flushed]) - 1)
    trusting = matrix.Broker(stored(damaged))
    trusting.open()
    assert (trusting.directory.unreadable, trusting.log.log_end_offset) == ({}, 11)
    distrusting = matrix.Broker(stored(changed(damaged, RECOVERY_POINT_FILE, content)))
    distrusting.open()
    assert list(distrusting.directory.unreadable) == ([RECOVERY_POINT_FILE] if content else [])  # Empty: of no log.
    assert distrusting.log.log_end_offset == 7


def stored(image: DiskImage) -> MemoryStorage:
    return storage_of(ManualClock(NOW), image)


def test_s88_a_damaged_batch_below_the_recovery_point_is_found_by_its_readers_only() -> None:
    """A bit of a batch in the middle turns, and the log was closed: it opens whole, and each reader stops there."""
    image = three_segments()
    middle = next(iter(batches_in(image.files[path_of(6, LOG)]))).size_bytes
    leader = started(flipped(image, path_of(6, LOG), middle + 70), LastShutdown(clean=True))
    assert leader.log_end_offset == 18
    follower = opened(settings=SETTINGS)
    while follower.log_end_offset < 8:
        fetched = leader.read(follower.log_end_offset, 1).records
        follower.append_as_follower(fetched, now_ms=NOW)
    state, content = leader.state(), image_of(follower.storage)
    for _ in range(2):  # As often as it tries.
        with pytest.raises(CorruptBatchError):
            follower.append_as_follower(leader.read(Offset(8), 1).records, now_ms=NOW)
    assert (follower.log_end_offset, image_of(follower.storage), leader.state()) == (8, content, state)
    for offset in (0, 6, 10, 17):
        next(batches_in(leader.read(Offset(offset), 1).records)).ensure_valid()


@pytest.mark.parametrize("pattern", ["*.log", "*.index", "*.timeindex", DIRECTORY])
def test_s89_the_first_sync_that_fails_is_an_error_and_promises_nothing(pattern: str) -> None:
    """A sync fails, and the next one would succeed: the system has taken the lost pages for clean (see ATC 2020)."""
    recorded = RecordedStorage(memory())
    faulty = FaultyStorage(recorded, Fault(pattern, FaultKind.FAILED_SYNC, passed_count=2))
    log = opened(faulty, SETTINGS)
    flushed = values(log)
    for _ in range(ROUND_COUNT_MAX):
        appended(log, batch(2, value=b"v" * 90))
        recovery_point = log.recovery_point
        try:
            log.flush(now_ms=NOW, include_active_end=True)
            log.run_scheduled(NOW)
            flushed = values(log)
        except StorageError:
            assert log.recovery_point == recovery_point
            break
    assert faulty.has_struck
    assert len(flushed) < log.log_end_offset
    for seed in range(LOSS_COUNT):
        left = values(started(power_loss(recorded.recording(), SplitMix64(seed))))
        assert left[: len(flushed)] == flushed
