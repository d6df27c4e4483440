"""Which files a log has when it has been opened, and what stands in them, after a crash or a clean shutdown."""

from __future__ import annotations

from typing import Final

import pytest

from broker.clock import ManualClock
from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import build_marker
from log.batches.build_spec import BatchSpec
from log.codecs.crc import crc32c
from log.errors import CorruptBatchError, InvalidRecordError
from log.partition import segment_recovery
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.partition.reading import Isolation
from log.partition.recovery import LastShutdown
from log.record import ControlType, EndTransactionMarker
from log.storage.checkpoints import LEADER_EPOCH_FILE
from tests.log.made import DIRECTORY, EPOCH, NOW, appended, batch, config, opened
from tests.support.disk_image import DiskImage, image_of, storage_of
from tests.support.recorded import Move, RecordedStorage

UNCLEAN: Final = LastShutdown(clean=False)
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


def named(base_offset: int, kind: str) -> str:
    return f"{DIRECTORY}/{base_offset:020d}{kind}"


def without(image: DiskImage, *kinds: str) -> DiskImage:
    return DiskImage({path: data for path, data in image.files.items() if not path.endswith(kinds)}, image.directories)


def with_files(image: DiskImage, files: dict[str, bytes]) -> DiskImage:
    return DiskImage({**image.files, **files}, image.directories)


def started(
    image: DiskImage, last_shutdown: LastShutdown = UNCLEAN, directory: str = DIRECTORY, **settings_named: str
) -> PartitionLog:
    storage = storage_of(ManualClock(NOW), image)
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
    for segment in log.segments:
        counts = {".index": segment.offset_index.entry_count, ".timeindex": segment.time_index.entry_count}
        for kind, size_bytes in ENTRY_SIZES.items():
            room = len(files[named(segment.base_offset, kind)])
            if segment is log.active_segment:
                assert room > 900, kind
            else:
                assert (room, counts[kind] > 0) == (counts[kind] * size_bytes, True), kind


@pytest.mark.parametrize("release", ["0.10.2", "0.11.0"])
@pytest.mark.parametrize(("is_damaged", "end_offset"), [(True, 2), (False, 4)])
def test_segments_behind_one_that_has_to_be_cut_wait_for_their_deletion_and_leave_no_snapshot(
    way: str, release: str, is_damaged: bool, end_offset: int
) -> None:
    """LogLoader.recoverLog: a single byte too many is enough."""
    image = three_segments()
    content = bytearray(image.files[named(0, ".log")])
    content[-1] ^= is_damaged
    files = {named(0, ".log"): bytes(content) + b"\0" * (not is_damaged)}
    log = started(with_files(image, files), message_format_version=release)
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
    storage = storage_of(ManualClock(NOW), DiskImage({named(0, ".log"): content}, frozenset({DIRECTORY})))
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
    storage = RecordedStorage(storage_of(ManualClock(NOW), image_of(log.storage)))
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
    storage = storage_of(ManualClock(NOW), image)
    settings = config(segment_bytes=10_000)
    again = PartitionLog.open(storage, DIRECTORY, settings, UNCLEAN, now_ms=TimeMs(newest_ms + age_ms))
    assert [each.producer_id for each in again.state().producers] == ids
