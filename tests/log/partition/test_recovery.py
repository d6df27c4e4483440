"""Opening what was not closed: torn tails byte by byte, power loss, broken-off swaps, offsets that do not fit."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from log.codecs.compression import Codec
from log.errors import IllegalArgumentError, InvalidOffsetError
from log.log_config import LogConfig
from log.partition import segment_recovery
from log.partition.partition_log import PartitionLog
from log.partition.producer_state import ProducerState
from log.partition.recovery import LastShutdown, unfinished_files
from log.partition.segment_recovery import RebuildRequest, rebuild_producer_state
from tests.log.made import DIRECTORY, EPOCH, NOW, appended, batch, config, memory, opened, sized
from tests.support.disk_image import DiskImage, image_of, storage_of

UNCLEAN = LastShutdown(clean=False)


def reopened(image: DiskImage, settings: LogConfig, last_shutdown: LastShutdown = UNCLEAN) -> PartitionLog:
    storage = storage_of(ManualClock(NOW), image)
    return PartitionLog.open(storage, DIRECTORY, settings, last_shutdown, now_ms=NOW)


def with_file(image: DiskImage, name: str, content: bytes) -> DiskImage:
    return DiskImage({**image.files, f"{DIRECTORY}/{name}": content}, image.directories)


@pytest.mark.deep
@pytest.mark.parametrize("codec", list(Codec))
def test_a_log_file_cut_at_any_byte_keeps_the_whole_batches_before(codec: Codec) -> None:
    settings = config(segment_bytes=10_000)
    log = opened(settings=settings)
    batches = [
        batch(count, value=b"v" * 9, codec=codec, producer_id=4, producer_epoch=0, base_sequence=sequence)
        for count, sequence in ((1, 0), (3, 1), (2, 4))
    ]
    appended(log, *batches)
    log.close(now_ms=NOW)
    image = image_of(log.storage)
    content = image.files[f"{DIRECTORY}/00000000000000000000.log"]
    ends = [0, *accumulate(map(len, batches))]
    for size in range(len(content) + 1):
        recovered = reopened(with_file(image, "00000000000000000000.log", content[:size]), settings)
        whole = max(index for index, end in enumerate(ends) if end <= size)
        assert recovered.active_segment.size_bytes == ends[whole]
        assert recovered.log_end_offset == (0, 1, 4, 6)[whole]
        assert [each.last_sequence for each in recovered.state().producers] == [(), [0], [3], [5]][whole] or whole == 0
        recovered.check_invariants()


def test_recovering_twice_is_recovering_once_and_appends_go_on() -> None:
    log = opened()
    appended(log, *[batch(2, value=b"v" * 30) for _ in range(5)])
    log.close(now_ms=NOW)
    image = image_of(log.storage)
    last = max(name for name in image.files if name.endswith(".log"))
    cut = DiskImage({**image.files, last: image.files[last][:-1]}, image.directories)
    once = reopened(cut, config())
    once.close(now_ms=NOW)
    twice = reopened(image_of(once.storage), config())
    assert twice.state() == once.state()
    assert appended(twice, batch()) == [once.log_end_offset]


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
    name = "00000000000000000000.log"
    content = bytearray(image.files[f"{DIRECTORY}/{name}"])
    if damaged is not None and damaged % len(content) % 97 > 24:  # Not in the first header, so that something is left.
        content[damaged % len(content)] ^= 0x10
    image = with_file(image, name, bytes(content))
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


def test_everything_before_the_recovery_point_is_taken_as_it_is() -> None:
    settings = config(segment_bytes=100)
    log = opened(settings=settings)
    appended(log, *[sized(100, timestamp=NOW) for _ in range(3)])
    log.close(now_ms=NOW)
    image = image_of(log.storage)
    name = "00000000000000000000.log"
    damaged = bytearray(image.files[f"{DIRECTORY}/{name}"])
    damaged[-1] ^= 1
    image = with_file(image, name, bytes(damaged))
    kept = reopened(image, settings, LastShutdown(clean=False, recovery_point=Offset(1)))
    assert (kept.log_end_offset, kept.recovery_point) == (3, 1)
    lost = reopened(image, settings, UNCLEAN)
    assert (lost.log_end_offset, len(lost.segments)) == (0, 1)


def test_producers_below_the_recovery_point_are_read_again_where_no_snapshot_is_left() -> None:
    settings = config(segment_bytes=150)
    log = opened(settings=settings)
    appended(log, batch(3, producer_id=4, producer_epoch=0, base_sequence=0), *[sized(100) for _ in range(3)])
    assert len(log.segments) > 2
    log.close(now_ms=NOW)
    image = image_of(log.storage)
    files = {name: content for name, content in image.files.items() if not name.endswith(".snapshot")}
    assert len(files) < len(image.files)
    left = DiskImage(files, image.directories)
    again = reopened(left, settings, LastShutdown(clean=False, recovery_point=Offset(5)))
    assert [(each.producer_id, each.last_sequence) for each in again.state().producers] == [(4, 2)]


def test_files_on_their_way_are_finished_or_undone() -> None:
    names = [
        "00000000000000000000.log",
        "00000000000000000010.log.swap",
        "00000000000000000010.index.swap",
        "00000000000000000020.log.cleaned",
        "00000000000000000020.log.swap",
        "00000000000000000005.log.deleted",
        "notes.swap",
    ]
    removed, complete = unfinished_files(names)
    assert removed == [
        "00000000000000000005.log.deleted",
        "00000000000000000020.log.swap",
        "00000000000000000020.log.cleaned",
    ]
    assert complete == ["00000000000000000010.log.swap", "00000000000000000010.index.swap"]


def test_a_complete_swap_takes_the_place_of_what_it_covers() -> None:
    settings = config(segment_bytes=100)
    log = opened(settings=settings)
    appended(log, *[sized(100, timestamp=NOW) for _ in range(4)])
    log.close(now_ms=NOW)
    image = image_of(log.storage)
    merged = b"".join(bytes(segment.records.view()) for segment in log.segments[:2])
    image = with_file(image, "00000000000000000000.log.swap", merged)
    recovered = reopened(image, config(segment_bytes=1000), LastShutdown(clean=True))
    assert [(each.base_offset, each.size_bytes) for each in recovered.segments] == [(0, 200), (2, 100), (3, 100)]
    assert not [name for name in recovered.storage.list(DIRECTORY) if name.endswith(".swap")]
    recovered.check_invariants()


def test_a_segment_whose_offsets_do_not_fit_is_split() -> None:
    settings = config(segment_bytes=10_000)
    log = opened(settings=settings)
    log.append_as_follower(batch(2, partition_leader_epoch=0), now_ms=NOW)
    log.close(now_ms=NOW)
    image = image_of(log.storage)
    name = "00000000000000000000.log"
    far = batch(base_offset=2**31 + 5, partition_leader_epoch=0)
    recovered = reopened(with_file(image, name, image.files[f"{DIRECTORY}/{name}"] + far), settings)
    assert [each.base_offset for each in recovered.segments] == [0, 2**31 + 5]
    assert recovered.log_end_offset == 2**31 + 6
    recovered.check_invariants()


def test_a_batch_below_its_segment_cannot_be_split_off() -> None:
    settings = config(segment_bytes=10_000)
    image = DiskImage({f"{DIRECTORY}/00000000000000000100.log": batch(base_offset=7)}, frozenset({DIRECTORY}))
    with pytest.raises(IllegalArgumentError, match="ends within reach of its base offset: it cannot be split"):
        reopened(image, settings)


def test_offsets_that_go_back_empty_the_segment_where_an_entry_falls_due() -> None:
    settings = config(segment_bytes=10_000, index_interval_bytes=0)
    content = b"".join(batch(base_offset=offset, partition_leader_epoch=0) for offset in (0, 5, 3))
    image = DiskImage({f"{DIRECTORY}/00000000000000000000.log": content}, frozenset({DIRECTORY}))
    with pytest.raises(InvalidOffsetError):
        # Without an index the segment is recovered while it is loaded, where Kafka does not expect this either.
        reopened(image, settings)
    indexed = with_file(image, "00000000000000000000.index", b"")
    emptied = reopened(indexed, settings)
    assert (emptied.log_end_offset, emptied.active_segment.size_bytes) == (0, 0)


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_start_at_the_end_of_the_log_keeps_its_segments(clean: bool) -> None:
    log = opened()
    appended(log, batch(), batch(), batch())
    log.increment_log_start_offset(Offset(3))
    log.close(now_ms=NOW)
    last = LastShutdown(clean=clean, log_start_offset=Offset(3), recovery_point=Offset(3))
    again = reopened(image_of(log.storage), config(), last)
    assert (again.log_start_offset, again.log_end_offset) == (3, 3)
    assert [each.base_offset for each in again.segments] == [0]


def test_a_log_of_an_old_format_is_recovered_without_epochs_though_its_batches_have_some() -> None:
    # LogSegment.recover asks for a cache of epochs, which a log that writes an old format does not have.
    storage = memory()
    appended(opened(storage), batch(2), batch(3))
    again = reopened(image_of(storage), config(message_format_version="0.10.2"))
    assert (again.epochs, again.log_end_offset) == (None, 5)


def test_due_tasks_write_the_epochs_that_a_truncation_left() -> None:
    log = opened()
    appended(log, batch(), batch())
    log.append_as_leader(batch(), leader_epoch=LeaderEpoch(EPOCH + 1), now_ms=NOW)
    log.truncate_to(Offset(2), now_ms=NOW)
    log.run_scheduled(NOW)
    written = image_of(log.storage).files[f"{DIRECTORY}/leader-epoch-checkpoint"].decode()
    assert written.split() == ["0", "1", str(int(EPOCH)), "0"]


def test_a_time_index_that_is_missing_takes_no_room_until_it_is_written_again() -> None:
    log = opened()
    appended(log, batch(), batch())
    log.roll(now_ms=NOW)
    log.close(now_ms=NOW)
    image = image_of(log.storage)
    name = f"{DIRECTORY}/00000000000000000000.timeindex"
    without = DiskImage({path: data for path, data in image.files.items() if path != name}, image.directories)
    again = reopened(without, config(), LastShutdown(clean=True))
    assert image_of(again.storage).files[name] == b""


@pytest.mark.parametrize(("last_offset", "last_sequences"), [(1, [0]), (2, [1]), (0, [])])
def test_producers_are_rebuilt_from_the_batches_below_an_offset_only(
    last_offset: int, last_sequences: list[int]
) -> None:
    log = opened()
    producer = {"producer_id": ProducerId(5), "producer_epoch": ProducerEpoch(0)}
    appended(log, *(batch(base_sequence=sequence, **producer) for sequence in range(2)))
    log.storage.make_directory("rebuilt")
    producers = ProducerState.open(log.storage, "rebuilt", name="rebuilt")
    request = RebuildRequest(
        log_start_offset=Offset(0), last_offset=Offset(last_offset), magic=2, had_clean_shutdown=False, now_ms=NOW
    )
    rebuild_producer_state(producers, log.local.segments, request)
    assert [each.last_sequence for each in producers.producers] == last_sequences
