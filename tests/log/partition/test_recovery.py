"""Opening a log: what recovery keeps, cuts, rebuilds and splits, and which files there are then.

S81 to S89 say what a disk can do between two starts; every byte and moment of it is in `tests.log.crash`.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.errors import BrokersideError
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import DurationMs, TimeMs
from log.batches.build import BatchSpec, build_marker
from log.batches.in_buffer import batches_in
from log.codecs.crc import crc32c
from log.errors import (
    CorruptBatchError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidOffsetError,
    InvalidRecordError,
    StorageError,
)
from log.log_config import LogConfig
from log.partition import segment_recovery
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.partition.reading import Isolation
from log.partition.recovery import LastShutdown
from log.record import ControlType, EndTransactionMarker, TimestampOffset
from log.segments.file_names import CLEANED, DELETED, LOG, OFFSET_INDEX, SWAP, TIME_INDEX
from log.storage import Fault, FaultKind, FaultyStorage, MemoryStorage, Storage
from log.storage.checkpoints import LEADER_EPOCH_FILE, RECOVERY_POINT_FILE, EpochEntry
from tests.log.compaction.logs import Written as Compacted
from tests.log.compaction.logs import config_of, pairs_of
from tests.log.crash import test_matrix as matrix
from tests.log.made import DIRECTORY, EPOCH, NOW, appended, batch, config, memory, opened, put, segment, values
from tests.log.partition.test_side_effects import OpenFiles
from tests.support.crash import power_loss
from tests.support.disk_image import DiskImage, image_of, storage_of
from tests.support.recorded import Move, RecordedStorage

UNCLEAN = LastShutdown(clean=False)


def named(base_offset: int, kind: str) -> str:
    """Return the path of a segment's file."""
    return f"{DIRECTORY}/{base_offset:020d}{kind}"


def stored(image: DiskImage) -> MemoryStorage:
    return storage_of(ManualClock(NOW), image)


def reopened(image: DiskImage, settings: LogConfig, last_shutdown: LastShutdown = UNCLEAN) -> PartitionLog:
    storage = stored(image)
    return PartitionLog.open(storage, DIRECTORY, settings, last_shutdown, now_ms=NOW)


def with_files(image: DiskImage, files: dict[str, bytes]) -> DiskImage:
    return DiskImage({**image.files, **files}, image.directories)


@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=10),
    damaged=st.none() | st.integers(0, 2000),
    interval=st.sampled_from([0, 150]),
    with_producer=st.booleans(),
)
def test_the_two_ways_to_recover_a_segment_end_alike(
    counts: list[int], damaged: int | None, interval: int, with_producer: bool
) -> None:
    settings = config(segment_bytes=10_000, index_interval_bytes=interval)
    log = opened(settings=settings)
    sequence = 0
    for index, count in enumerate(counts):
        producer: dict[str, Any] = (
            {"producer_id": 3, "producer_epoch": 0, "base_sequence": sequence} if with_producer else {}
        )
        data = batch(count, timestamp=NOW + (index * 7) % 5, **producer)
        log.append_as_leader(data, leader_epoch=type(EPOCH)(index // 2), now_ms=NOW)
        sequence += count
    log.close(now_ms=NOW)
    image = image_of(log.storage)
    content = bytearray(image.files[named(0, ".log")])
    if damaged is not None and damaged % len(content) % 97 > 24:  # Not in the first header, so that something is left.
        content[damaged % len(content)] ^= 0x10
    image = with_files(image, {named(0, ".log"): bytes(content)})
    results: list[tuple[object, dict[str, bytes]]] = []
    for threshold in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(segment_recovery, "COLUMNS_FROM_BYTES", threshold)
            try:
                recovered = reopened(image, settings)
            except (IllegalArgumentError, InvalidOffsetError) as refusal:
                results.append((type(refusal), {}))
            else:
                recovered.close(now_ms=NOW)
                results.append((recovered.state(), dict(image_of(recovered.storage).files)))
    assert results[0] == results[1]


def test_a_batch_below_its_segment_cannot_be_split_off() -> None:
    settings = config(segment_bytes=10_000)
    image = DiskImage({named(100, ".log"): batch(base_offset=7)}, frozenset({DIRECTORY}))
    with pytest.raises(IllegalArgumentError, match="ends within reach of its base offset: it cannot be split"):
        reopened(image, settings)


def test_offsets_that_go_back_empty_the_segment_where_an_entry_falls_due() -> None:
    settings = config(segment_bytes=10_000, index_interval_bytes=0)
    content = b"".join(batch(base_offset=offset, partition_leader_epoch=0) for offset in (0, 5, 3))
    image = DiskImage({named(0, ".log"): content}, frozenset({DIRECTORY}))
    with pytest.raises(InvalidOffsetError):
        # Without an index the segment is recovered while it is loaded, where Kafka does not expect this either.
        reopened(image, settings)
    indexed = with_files(image, {named(0, ".index"): b""})
    emptied = reopened(indexed, settings)
    assert (emptied.log_end_offset, emptied.active_segment.size_bytes) == (0, 0)


DOOMED: Final = "topic-0.0123456789abcdef0123456789abcdef-delete"
RECORDS_FROM: Final = 61  # In a batch of magic 2.
ENTRY_SIZES: Final = {".index": 8, ".timeindex": 12}


@pytest.fixture(params=["batch by batch", "by columns"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Recover segments of any size in one of the two ways."""
    monkeypatch.setattr(segment_recovery, "COLUMNS_FROM_BYTES", 0 if request.param == "by columns" else 10**9)
    return str(request.param)


def of_producer(sequence: int) -> bytes:
    return batch(2, producer_id=9, producer_epoch=0, base_sequence=sequence)


def three_segments(count: int = 3) -> DiskImage:
    """A log that nobody closed: offsets 0 to 11, a new segment every 4, all of producer 9."""
    log = opened(settings=config(segment_bytes=10_000))
    for number in range(2 * count):
        if number in range(2, 2 * count, 2):
            log.roll(now_ms=NOW)
        appended(log, of_producer(2 * number))
    return image_of(log.storage)


def without(image: DiskImage, *kinds: str) -> DiskImage:
    return DiskImage({path: data for path, data in image.files.items() if not path.endswith(kinds)}, image.directories)


def started(
    image: DiskImage, last_shutdown: LastShutdown = UNCLEAN, directory: str = DIRECTORY, **settings_named: str
) -> PartitionLog:
    storage = stored(image)
    settings = config(segment_bytes=10_000, **settings_named)
    return PartitionLog.open(storage, directory, settings, last_shutdown, now_ms=NOW)


def offsets_of(log: PartitionLog, suffix: str) -> list[int]:
    names = log.storage.list(log.directory)
    return [int(name[: -len(suffix)]) for name in names if name.endswith(suffix)]


def test_recovery_writes_the_producers_as_they_were_where_each_segment_ends(way: str) -> None:
    """LogLoader.recoverSegment takes a snapshot after each segment; all but the last go where no segment begins."""
    log = started(without(three_segments(5), ".snapshot"))
    ends = [4, 8, 12, 16, 20]
    assert offsets_of(log, ".snapshot") == ends
    for offset in ends:
        cut = without(image_of(log.storage), *(f"{each:020d}.snapshot" for each in ends if each != offset))
        short = {path: data for path, data in cut.files.items() if ".snapshot" in path or f"{offset - 4:020d}" in path}
        # Clean: the producers are those of the snapshot, as nothing stands behind it.
        again = started(DiskImage(short, cut.directories), LastShutdown(recovery_point=Offset(offset)))
        assert [each.last_sequence for each in again.state().producers] == [offset - 1]


def test_the_indexes_of_a_recovered_segment_have_no_room_for_more_but_in_the_active_one(way: str) -> None:
    roomy = {named(base_offset, kind): bytes(960) for base_offset in (0, 4) for kind in ENTRY_SIZES}
    log = started(with_files(three_segments(), roomy))
    files = image_of(log.storage).files
    for each in log.segments:
        counts = {".index": each.offset_index.entry_count, ".timeindex": each.time_index.entry_count}
        for kind, size_bytes in ENTRY_SIZES.items():
            room = len(files[named(each.base_offset, kind)])
            if each is log.active_segment:
                assert room > 900, kind
            else:
                assert (room, counts[kind] > 0) == (counts[kind] * size_bytes, True), kind


@pytest.mark.parametrize(("is_damaged", "end_offset"), [(True, 2), (False, 4)])
def test_segments_behind_one_that_has_to_be_cut_wait_for_their_deletion_and_leave_no_snapshot(
    way: str, is_damaged: bool, end_offset: int
) -> None:
    """LogLoader.recoverLog: a single byte too many is enough."""
    image = three_segments()
    content = bytearray(image.files[named(0, ".log")])
    content[-1] ^= is_damaged
    files = {named(0, ".log"): bytes(content) + b"\0" * (not is_damaged)}
    log = started(with_files(image, files))
    assert [each.base_offset for each in log.segments] == [0]
    assert (log.log_end_offset, offsets_of(log, ".log.deleted")) == (end_offset, [4, 8])
    assert max(offsets_of(log, ".snapshot")) == end_offset
    log.run_scheduled(TimeMs(NOW + log.config.file_delete_delay_ms))
    assert not [name for name in log.storage.list(DIRECTORY) if name.endswith(".deleted")]


@pytest.mark.parametrize("is_clean", [True, False])
def test_where_the_log_ends_below_its_start_epochs_and_producers_go_with_the_records(is_clean: bool) -> None:
    """LogLoader.recoverLog: deletes all segments, clears the epochs, and truncates the producers fully."""
    last = LastShutdown(clean=is_clean, log_start_offset=Offset(100), recovery_point=Offset(100))
    log = started(with_files(three_segments(), {named(150, ".snapshot"): b"of what was lost"}), last)
    state = log.state()
    assert (state.log_start_offset, state.log_end_offset, state.producers, state.leader_epochs) == (100, 100, (), ())
    assert image_of(log.storage).files[f"{DIRECTORY}/{LEADER_EPOCH_FILE}"].split() == [b"0", b"0"]
    # UnifiedLog.rebuildProducerState writes one for a log that was closed cleanly and has none.
    assert offsets_of(log, ".snapshot") == ([100] if is_clean else [])
    assert sorted(offsets_of(log, ".log.deleted")) == [0, 4, 8]


def test_of_a_log_that_is_about_to_be_deleted_nothing_is_recovered() -> None:
    """LogLoader.load asks recoverLog for no directory that ends in "-delete": its log ends at 0."""
    torn = batch(3, partition_leader_epoch=0) + batch(base_offset=3)[:-1]
    files = {f"{DOOMED}/{0:020d}{kind}": data for kind, data in ((".log", torn), (".index", b""), (".timeindex", b""))}
    log = started(DiskImage(files, frozenset({DOOMED})), directory=DOOMED)
    assert (log.log_end_offset, log.recovery_point) == (0, 0)
    assert [(each.base_offset, each.size_bytes) for each in log.segments] == [(0, len(torn))]


def test_indexes_without_a_log_file_go_and_files_of_others_stay() -> None:
    foreign = {f"{DIRECTORY}/{name}": b"notes" for name in ("notes.swap", "notes.index", "notes.deleted.txt")}
    orphans = {named(77, kind): b"" for kind in (".index", ".timeindex", ".txnindex")}
    log = started(with_files(three_segments(), {**foreign, **orphans}), LastShutdown(recovery_point=Offset(12)))
    files = image_of(log.storage).files
    assert not files.keys() & orphans.keys()
    assert {path: files.get(path) for path in foreign} == foreign


def test_an_index_of_transactions_that_cannot_be_right_is_written_anew() -> None:
    """LogSegment.sanityCheck: a CorruptIndexException of the transaction index lets the segment be recovered."""
    log = opened(settings=config(segment_bytes=10_000))
    appended(log, batch(2, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True))
    marker = build_marker(
        BatchSpec(producer_id=ProducerId(7), producer_epoch=ProducerEpoch(0)),
        EndTransactionMarker(ControlType.ABORT, 0),
        NOW,
    )
    log.append_as_leader(marker, leader_epoch=EPOCH, now_ms=NOW, origin=AppendOrigin.COORDINATOR, transaction_version=0)
    log.close(now_ms=NOW)
    image = image_of(log.storage)
    sound = image.files[named(0, ".txnindex")]
    last = LastShutdown(recovery_point=Offset(3))
    again = started(with_files(image, {named(0, ".txnindex"): sound + b"\xff" * len(sound)}), last)
    assert image_of(again.storage).files[named(0, ".txnindex")] == sound
    again.update_high_watermark(Offset(3))
    aborted = again.read(Offset(0), 1000, isolation=Isolation.COMMITTED).aborted_transactions
    assert [each.first_offset for each in aborted or ()] == [0]


@pytest.mark.parametrize("offsets", [(0, 5, 3), (0, 5, 5)])
def test_no_batch_is_taken_of_a_segment_whose_offsets_do_not_grow(way: str, offsets: tuple[int, ...]) -> None:
    """LogLoader.recoverLog: an InvalidOffsetException, which an index raises, lets the segment be cut to its base."""
    content = b"".join(batch(base_offset=offset, partition_leader_epoch=0) for offset in offsets)
    log = started(DiskImage({named(0, ".log"): content, named(0, ".index"): b""}, frozenset({DIRECTORY})))
    assert (log.log_end_offset, log.active_segment.size_bytes) == (0, 0)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_marker_that_cannot_be_read_ends_its_segment_behind_it_and_keeps_the_log_from_opening(
    way: str, is_first: bool
) -> None:
    """LogSegment.recover counts the bytes of a batch before it reads its records for the state of the producers.

    That state ends before the marker, which is read again when the log's own state is built (rebuildProducerState).
    """
    spec = BatchSpec(base_offset=Offset(2), producer_id=ProducerId(9), producer_epoch=ProducerEpoch(0))
    marker = bytearray(build_marker(spec, EndTransactionMarker(ControlType.COMMIT, 0), NOW))
    marker[RECORDS_FROM] = 0x7E  # A length that reaches beyond the batch.
    marker[17:21] = crc32c(bytes(marker[21:])).to_bytes(4)
    sound = b"" if is_first else batch(2, producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True)
    content = sound + bytes(marker) + batch(base_offset=3) + batch(base_offset=4)
    storage = stored(DiskImage({named(0, ".log"): content}, frozenset({DIRECTORY})))
    with pytest.raises(InvalidRecordError):
        opened(storage, config(segment_bytes=10_000), last_shutdown=UNCLEAN)
    assert image_of(storage).files[named(0, ".log")] == sound + bytes(marker)


@pytest.mark.parametrize(
    ("last_shutdown", "is_opened"),
    [
        (UNCLEAN, True),
        (LastShutdown(clean=False, recovery_point=Offset(8)), True),
        (LastShutdown(clean=False, recovery_point=Offset(9)), False),
        (LastShutdown(recovery_point=Offset(8)), False),
        (LastShutdown(recovery_point=Offset(9)), False),
    ],
)
def test_a_segment_without_an_index_behind_a_damaged_one_may_wait_for_its_recovery_only_above_the_recovery_point(
    last_shutdown: LastShutdown, is_opened: bool
) -> None:
    """Of a log that is about to be deleted nothing else reads the damaged segment."""
    image = without(three_segments(), ".snapshot", f"{8:020d}.index")
    damaged = bytearray(image.files[named(4, ".log")])
    damaged[8:12] = bytes(4)  # A size that no batch has.
    image = with_files(image, {named(4, ".log"): bytes(damaged)})
    files = {path.replace(DIRECTORY, DOOMED, 1): data for path, data in image.files.items()}
    doomed = DiskImage(files, frozenset({DOOMED}))
    if is_opened:
        assert [each.base_offset for each in started(doomed, last_shutdown, DOOMED).segments] == [0, 4, 8]
    else:
        with pytest.raises(CorruptBatchError):
            started(doomed, last_shutdown, DOOMED)
    if last_shutdown == UNCLEAN:
        assert started(image).log_end_offset == 4, "in a log that lives on, the damaged one is cut"


def test_a_log_that_was_closed_is_opened_without_moving_a_file() -> None:
    log = opened(settings=config(segment_bytes=100))
    appended(log, batch(), batch(), batch())
    log.close(now_ms=NOW)
    storage = RecordedStorage(stored(image_of(log.storage)))
    opened(storage, config(segment_bytes=100), last_shutdown=LastShutdown(recovery_point=Offset(3)))
    assert not [each for each in storage.recording().operations if isinstance(each, Move)]


@pytest.mark.parametrize("batch_count", [1, 2])
@pytest.mark.parametrize(("age_ms", "ids"), [(24 * 3_600_000 - 1, [9]), (24 * 3_600_000, [])])
def test_producers_that_recovery_finds_are_known_only_if_they_have_not_expired(
    way: str, age_ms: int, ids: list[int], batch_count: int
) -> None:
    """LogLoader: recovery writes a snapshot of all, and the log's own state is loaded without the expired ones."""
    log = opened(settings=config(segment_bytes=10_000))
    appended(log, *[of_producer(2 * number) for number in range(batch_count)])
    image = image_of(log.storage)
    newest_ms = NOW + 1  # Of the last batch of two.
    storage = stored(image)
    settings = config(segment_bytes=10_000)
    again = PartitionLog.open(storage, DIRECTORY, settings, UNCLEAN, now_ms=TimeMs(newest_ms + age_ms))
    assert [each.producer_id for each in again.state().producers] == ids


FAR: Final = 2**31 + 5
LAST_OFFSET_DELTA: Final = 23  # Where it stands in a header, 4 bytes.
LOSS_COUNT: Final = 20
PARTS: Final = {0: batch(2) + batch(base_offset=7, timestamp=NOW - 5), FAR: batch(3, base_offset=FAR)}
"""What each new segment must hold, by its base offset."""
IMAGE: Final = DiskImage(
    {
        named(0, ".log"): b"".join(PARTS.values()),
        named(0, ".index"): b"",
        named(0, ".timeindex"): b"",
    },
    frozenset({DIRECTORY}),
)
FLUSHED: Final = LastShutdown(clean=False, recovery_point=Offset(FAR))
"""Up to where all was flushed: only what stands behind is recovered, so that the split alone made the first part."""


def logs_in(storage: Storage) -> dict[int, bytes]:
    files = image_of(storage).files
    return {int(path[len(DIRECTORY) + 1 : -4]): data for path, data in files.items() if path.endswith(".log")}


def split(storage: Storage) -> PartitionLog:
    return opened(storage, config(segment_bytes=10_000), last_shutdown=FLUSHED)


def test_a_part_has_the_entries_of_a_segment_that_is_not_written_any_more() -> None:
    # LocalLog.splitOverflowedSegment calls onBecomeInactiveSegment for each part.
    log = split(stored(IMAGE))
    first = log.segments[0]
    assert first.time_index.last_entry == TimestampOffset(NOW + 1, 1)
    files = image_of(log.storage).files
    for kind, entries in ((".index", first.offset_index), (".timeindex", first.time_index)):
        path = named(0, kind)
        assert len(files[path]) == entries.entry_count * entries.entry_size_bytes, kind


def test_a_part_is_as_old_as_the_segment_was() -> None:
    clock = ManualClock(NOW)
    storage = storage_of(clock, IMAGE)
    clock.advance(DurationMs(60_000))
    log = split(storage)
    assert [(each.base_offset, each.modified_ms) for each in log.segments] == [(0, NOW), (FAR, NOW)]


@pytest.mark.parametrize("seed", range(LOSS_COUNT))
def test_power_loss_after_a_split_takes_nothing_that_was_flushed_before(seed: int) -> None:
    storage = RecordedStorage(stored(IMAGE))
    split(storage)
    left = stored(power_loss(storage.recording(), SplitMix64(seed)))
    again = split(left)
    assert bytes(again.segments[0].records.view()).startswith(PARTS[0])
    assert again.log_end_offset == FAR + 3


@pytest.mark.parametrize("end", [batch(base_offset=FAR + 3)[:-1], b"\0" * 20])
def test_a_segment_with_an_end_that_is_no_batch_cannot_be_split(end: bytes) -> None:
    """LocalLog.splitOverflowedSegment asks for a batch at every place up to the end of the file."""
    path = named(0, ".log")
    image = with_files(IMAGE, {path: IMAGE.files[path] + end})
    with pytest.raises(BrokersideError):
        split(stored(image))


def test_a_batch_that_ends_below_its_own_base_fits_no_segment() -> None:
    """LocalLog.splitOverflowedSegment: nothing of it can be appended to a segment that is named by its base."""
    backwards = bytearray(batch(base_offset=FAR))
    backwards[LAST_OFFSET_DELTA : LAST_OFFSET_DELTA + 4] = (-2).to_bytes(4, signed=True)
    backwards[17:21] = crc32c(bytes(backwards[21:])).to_bytes(4)
    path = named(0, ".log")
    image = with_files(IMAGE, {path: PARTS[0] + bytes(backwards) + PARTS[FAR]})
    with pytest.raises(IllegalStateError, match="fits a segment of its own"):
        split(stored(image))


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
    files = {named(100, kind): b"" for kind in (".index", ".timeindex", ".snapshot")}
    files |= {named(0, kind): b"" for kind in (".index", ".timeindex")}
    files[named(0, ".log")] = batch(2)
    files[named(100, ".log")] = batch(base_offset=103) + batch(base_offset=FAR + 100)
    last = LastShutdown(clean=False, recovery_point=Offset(100))
    settings = config(segment_bytes=10_000)
    log = opened(stored(DiskImage(files, frozenset({DIRECTORY}))), settings, last_shutdown=last)
    assert [each.base_offset for each in log.segments] == [0, 103, FAR + 100]
    deleted = [f"{100:020d}.{kind}.deleted" for kind in ("index", "log", "snapshot", "timeindex")]
    assert [name for name in log.storage.list(DIRECTORY) if name.endswith(".deleted")] == deleted


def test_a_segment_that_was_loaded_before_another_had_to_be_split_is_closed_before_it_is_loaded_again() -> None:
    """LogLoader.load closes the segments that a try has opened before the next one."""
    sound = {named(0, kind): b"" for kind in (".index", ".timeindex")} | {named(0, ".log"): batch(2)}
    far = {named(10, ".log"): batch(base_offset=10) + batch(base_offset=10 + FAR)}
    storage = OpenFiles(stored(DiskImage({**sound, **far}, frozenset({DIRECTORY}))))
    log = opened(storage, config(segment_bytes=10_000), last_shutdown=LastShutdown(recovery_point=Offset(10)))
    assert [each.base_offset for each in log.segments] == [0, 10, 10 + FAR]
    log.close(now_ms=NOW)
    assert not [path for path in storage.open_paths if path in sound]


def test_the_segment_that_was_split_is_deleted_after_the_delay() -> None:
    log = split(stored(IMAGE))
    assert logs_in(log.storage) == PARTS
    names = log.storage.list(DIRECTORY)
    assert [name for name in names if name.endswith(".log.deleted")] == [f"{0:020d}.log.deleted"]
    log.run_scheduled(TimeMs(NOW + log.config.file_delete_delay_ms))
    assert not [name for name in log.storage.list(DIRECTORY) if name.endswith(".deleted")]


SETTINGS: Final = config(segment_bytes=300, index_interval_bytes=0)
READ_BYTES_MAX: Final = 10_000
ROUND_COUNT_MAX: Final = 40


def closed_segments() -> DiskImage:
    """A closed log of three segments with three batches of two records each, offsets 0 to 17."""
    log = opened(settings=SETTINGS)
    for number in range(9):
        appended(log, batch(2, timestamp=NOW + 10 * number, value=b"%d" % number))
        if number in (2, 5):
            log.roll(now_ms=NOW)
    log.close(now_ms=NOW)
    return image_of(log.storage)


def flipped(image: DiskImage, path: str, position: int) -> DiskImage:
    content = bytearray(image.files[path])
    content[position] ^= 0x10
    return with_files(image, {path: bytes(content)})


def restarted(image: DiskImage, last_shutdown: LastShutdown = UNCLEAN) -> PartitionLog:
    log = opened(stored(image), SETTINGS, last_shutdown=last_shutdown)
    log.update_high_watermark(log.log_end_offset)
    return log


@pytest.mark.parametrize("kinds", [(OFFSET_INDEX,), (TIME_INDEX,), (OFFSET_INDEX, TIME_INDEX)])
@pytest.mark.parametrize("kept_bytes", [0, 12, 24])
def test_s81_entries_that_an_index_lacks_after_a_crash_are_made_again(kinds: tuple[str, ...], kept_bytes: int) -> None:
    """The machine stops after a batch reached the log file and before its entries reached the indexes."""
    image = damaged = closed_segments()
    for kind in kinds:
        damaged = with_files(damaged, {named(12, kind): image.files[named(12, kind)][:kept_bytes]})
    log = restarted(damaged)
    sound = restarted(image, LastShutdown())
    for each, expected in zip(log.segments, sound.segments, strict=True):
        assert each.offset_index.entries().offsets.tolist() == expected.offset_index.entries().offsets.tolist()
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
    old = {named(base_offset, kind) for base_offset in (0, 2) for kind in (LOG, OFFSET_INDEX, TIME_INDEX)}
    new = {kind: after.files[named(0, kind)] for kind in (LOG, OFFSET_INDEX, TIME_INDEX)}
    suffixes = dict.fromkeys(new, {"cleaned": CLEANED, "originals deleted": ""}.get(phase, SWAP))
    if phase == "partly swap":
        suffixes[TIME_INDEX] = CLEANED
    renamed = DELETED if phase == "originals deleted" else ""
    files = {path + renamed if path in old else path: content for path, content in before.files.items()}
    files |= {named(0, kind) + suffix: new[kind] for kind, suffix in suffixes.items()}
    storage = stored(DiskImage(files, before.directories))
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
    log = restarted(with_files(closed_segments(), {f"{DIRECTORY}/{LEADER_EPOCH_FILE}": ahead}))
    assert log.state().leader_epochs == (EpochEntry(EPOCH, Offset(0)),)
    assert log.end_offset_for_epoch(LeaderEpoch(EPOCH + 2)) is None
    # A leader of today begins its epoch where the log ends, before it has written anything.
    log.assign_epoch_start(LeaderEpoch(EPOCH + 3), log.log_end_offset)
    assert (log.state().leader_epochs or ())[-1] == EpochEntry(LeaderEpoch(EPOCH + 3), Offset(18))


@pytest.mark.parametrize(("checkpointed", "found"), [(100, 18), (18, 18), (7, 7)])
def test_s85_a_recovery_point_beyond_the_end_is_lowered_and_none_is_raised(checkpointed: int, found: int) -> None:
    """The checkpoint of recovery points reached the disk, and the batches that were flushed before it did not."""
    log = restarted(closed_segments(), LastShutdown(clean=False, recovery_point=Offset(checkpointed)))
    assert (log.log_end_offset, log.recovery_point) == (18, found)


@pytest.mark.parametrize("content", [b"", b"0\n1\nevents 0\n", b"\0" * 40, b"\xff\xfe"])
def test_s86_a_recovery_checkpoint_that_cannot_be_read_means_all_of_the_log(content: bytes) -> None:
    """The checkpoint is damaged: what it protected is recovered from the start, so that damage there is found too."""
    image = matrix.made(clean=False)
    flushed = f"events-0/{0:020d}.log"
    damaged = flipped(image, flushed, len(image.files[flushed]) - 1)
    trusting = matrix.Broker(stored(damaged))
    trusting.open()
    assert (trusting.directory.unreadable, trusting.log.log_end_offset) == ({}, 11)
    distrusting = matrix.Broker(stored(with_files(damaged, {RECOVERY_POINT_FILE: content})))
    distrusting.open()
    assert list(distrusting.directory.unreadable) == ([RECOVERY_POINT_FILE] if content else [])  # Empty: of no log.
    assert distrusting.log.log_end_offset == 7


def test_s88_a_damaged_batch_below_the_recovery_point_is_found_by_its_readers_only() -> None:
    """A bit of a batch in the middle turns, and the log was closed: it opens whole, and each reader stops there."""
    image = closed_segments()
    middle = next(iter(batches_in(image.files[named(6, LOG)]))).size_bytes
    leader = restarted(flipped(image, named(6, LOG), middle + 70), LastShutdown(clean=True))
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
        left = values(restarted(power_loss(recorded.recording(), SplitMix64(seed))))
        assert left[: len(flushed)] == flushed
