"""What becomes of a segment's files when a log is opened whose offsets do not fit an index."""

from __future__ import annotations

from typing import Final

import attrs
import pytest

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.errors import BrokersideError
from broker.ids import Offset
from broker.units import DurationMs, TimeMs
from log.codecs.crc import crc32c
from log.errors import IllegalStateError
from log.partition import segment_recovery
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.record import TimestampOffset
from log.storage import Storage
from tests.log.made import DIRECTORY, NOW, batch, config, opened, put, segment
from tests.log.partition.test_side_effects import OpenFiles
from tests.support.crash import power_loss
from tests.support.disk_image import DiskImage, image_of, storage_of
from tests.support.recorded import RecordedStorage

FAR: Final = 2**31 + 5
LAST_OFFSET_DELTA: Final = 23  # Where it stands in a header, 4 bytes.
LOSS_COUNT: Final = 20
PARTS: Final = {0: batch(2) + batch(base_offset=7, timestamp=NOW - 5), FAR: batch(3, base_offset=FAR)}
"""What each new segment must hold, by its base offset."""
IMAGE: Final = DiskImage(
    {
        f"{DIRECTORY}/{0:020d}.log": b"".join(PARTS.values()),
        f"{DIRECTORY}/{0:020d}.index": b"",
        f"{DIRECTORY}/{0:020d}.timeindex": b"",
    },
    frozenset({DIRECTORY}),
)
FLUSHED: Final = LastShutdown(clean=False, recovery_point=Offset(FAR))
"""Up to where all was flushed: only what stands behind is recovered, so that the split alone made the first part."""


def stored(storage: Storage) -> dict[int, bytes]:
    files = image_of(storage).files
    return {int(path[len(DIRECTORY) + 1 : -4]): data for path, data in files.items() if path.endswith(".log")}


def split(storage: Storage) -> PartitionLog:
    return opened(storage, config(segment_bytes=10_000), last_shutdown=FLUSHED)


def test_a_part_has_the_entries_of_a_segment_that_is_not_written_any_more() -> None:
    # LocalLog.splitOverflowedSegment calls onBecomeInactiveSegment for each part.
    log = split(storage_of(ManualClock(NOW), IMAGE))
    first = log.segments[0]
    assert first.time_index.last_entry == TimestampOffset(NOW + 1, 1)
    files = image_of(log.storage).files
    for kind, entries in ((".index", first.offset_index), (".timeindex", first.time_index)):
        path = f"{DIRECTORY}/{0:020d}{kind}"
        assert len(files[path]) == entries.entry_count * entries.entry_size_bytes, kind


def test_a_part_is_as_old_as_the_segment_was() -> None:
    clock = ManualClock(NOW)
    storage = storage_of(clock, IMAGE)
    clock.advance(DurationMs(60_000))
    log = split(storage)
    assert [(each.base_offset, each.modified_ms) for each in log.segments] == [(0, NOW), (FAR, NOW)]


@pytest.mark.parametrize("seed", range(LOSS_COUNT))
def test_power_loss_after_a_split_takes_nothing_that_was_flushed_before(seed: int) -> None:
    storage = RecordedStorage(storage_of(ManualClock(NOW), IMAGE))
    split(storage)
    left = storage_of(ManualClock(NOW), power_loss(storage.recording(), SplitMix64(seed)))
    again = split(left)
    assert bytes(again.segments[0].records.view()).startswith(PARTS[0])
    assert again.log_end_offset == FAR + 3


@pytest.mark.parametrize("end", [batch(base_offset=FAR + 3)[:-1], b"\0" * 20])
def test_a_segment_with_an_end_that_is_no_batch_cannot_be_split(end: bytes) -> None:
    """LocalLog.splitOverflowedSegment asks for a batch at every place up to the end of the file."""
    path = f"{DIRECTORY}/{0:020d}.log"
    image = DiskImage({**IMAGE.files, path: IMAGE.files[path] + end}, IMAGE.directories)
    with pytest.raises(BrokersideError):
        split(storage_of(ManualClock(NOW), image))


def test_a_batch_that_ends_below_its_own_base_fits_no_segment() -> None:
    """LocalLog.splitOverflowedSegment: nothing of it can be appended to a segment that is named by its base."""
    backwards = bytearray(batch(base_offset=FAR))
    backwards[LAST_OFFSET_DELTA : LAST_OFFSET_DELTA + 4] = (-2).to_bytes(4, signed=True)
    backwards[17:21] = crc32c(bytes(backwards[21:])).to_bytes(4)
    path = f"{DIRECTORY}/{0:020d}.log"
    image = DiskImage({**IMAGE.files, path: PARTS[0] + bytes(backwards) + PARTS[FAR]}, IMAGE.directories)
    with pytest.raises(IllegalStateError, match="fits a segment of its own"):
        split(storage_of(ManualClock(NOW), image))


def test_a_chunk_is_one_append_and_grows_only_for_a_larger_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """LogSegment.appendFromFile: a batch goes into a chunk if less than the chunk's size is filled with it."""
    small, large = batch(), batch(value=b"v" * 100)
    assert 2 * len(small) < len(large) < 3 * len(small)
    monkeypatch.setattr(segment_recovery, "CHUNK_SIZE_BYTES", 2 * len(small))
    settings = attrs.evolve(config(segment_bytes=10_000), indexes_whole_appends=True)
    source, target = segment(settings), segment(settings)
    given = [small, small, large, small, small, small]
    put(
        source,
        *(batch(base_offset=place, value=b"" if each == small else b"v" * 100) for place, each in enumerate(given)),
    )
    assert segment_recovery.append_from(target, source, 0) == source.size_bytes
    # The first two stand in chunks of their own, as two fill one; then two fit the room of the large one.
    assert target.offset_index.entries().offsets.tolist() == [1, 2, 4, 5]
    assert bytes(target.records.view()) == bytes(source.records.view())


def test_the_snapshot_of_a_segment_without_a_successor_is_deleted_after_the_delay() -> None:
    """LogLoader.retryOnOffsetOverflow: a segment is named by its first batch, so its old name may be gone."""
    files = {f"{DIRECTORY}/{100:020d}{kind}": b"" for kind in (".index", ".timeindex", ".snapshot")}
    files |= {f"{DIRECTORY}/{0:020d}{kind}": b"" for kind in (".index", ".timeindex")}
    files[f"{DIRECTORY}/{0:020d}.log"] = batch(2)
    files[f"{DIRECTORY}/{100:020d}.log"] = batch(base_offset=103) + batch(base_offset=FAR + 100)
    last = LastShutdown(clean=False, recovery_point=Offset(100))
    settings = config(segment_bytes=10_000)
    log = opened(storage_of(ManualClock(NOW), DiskImage(files, frozenset({DIRECTORY}))), settings, last_shutdown=last)
    assert [each.base_offset for each in log.segments] == [0, 103, FAR + 100]
    deleted = [f"{100:020d}.{kind}.deleted" for kind in ("index", "log", "snapshot", "timeindex")]
    assert [name for name in log.storage.list(DIRECTORY) if name.endswith(".deleted")] == deleted


def test_a_segment_that_was_loaded_before_another_had_to_be_split_is_closed_before_it_is_loaded_again() -> None:
    """LogLoader.load closes the segments that a try has opened before the next one."""
    sound = {f"{DIRECTORY}/{0:020d}{kind}": b"" for kind in (".index", ".timeindex")} | {
        f"{DIRECTORY}/{0:020d}.log": batch(2)
    }
    far = {f"{DIRECTORY}/{10:020d}.log": batch(base_offset=10) + batch(base_offset=10 + FAR)}
    storage = OpenFiles(storage_of(ManualClock(NOW), DiskImage({**sound, **far}, frozenset({DIRECTORY}))))
    log = opened(storage, config(segment_bytes=10_000), last_shutdown=LastShutdown(recovery_point=Offset(10)))
    assert [each.base_offset for each in log.segments] == [0, 10, 10 + FAR]
    log.close(now_ms=NOW)
    assert not [path for path in storage.open_paths if path in sound]


def test_the_segment_that_was_split_is_deleted_after_the_delay() -> None:
    log = split(storage_of(ManualClock(NOW), IMAGE))
    assert stored(log.storage) == PARTS
    names = log.storage.list(DIRECTORY)
    assert [name for name in names if name.endswith(".log.deleted")] == [f"{0:020d}.log.deleted"]
    log.run_scheduled(TimeMs(NOW + log.config.file_delete_delay_ms))
    assert not [name for name in log.storage.list(DIRECTORY) if name.endswith(".deleted")]
