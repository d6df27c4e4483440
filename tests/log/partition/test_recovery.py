"""Opening what was not closed: torn tails byte by byte, power loss, broken-off swaps, offsets that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from log.errors import IllegalArgumentError, InvalidOffsetError
from log.log_config import LogConfig
from log.partition import segment_recovery
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from tests.log.made import DIRECTORY, EPOCH, NOW, appended, batch, config, memory, opened
from tests.support.disk_image import DiskImage, image_of, storage_of

UNCLEAN = LastShutdown(clean=False)


def reopened(image: DiskImage, settings: LogConfig, last_shutdown: LastShutdown = UNCLEAN) -> PartitionLog:
    storage = storage_of(ManualClock(NOW), image)
    return PartitionLog.open(storage, DIRECTORY, settings, last_shutdown, now_ms=NOW)


def with_file(image: DiskImage, name: str, content: bytes) -> DiskImage:
    return DiskImage({**image.files, f"{DIRECTORY}/{name}": content}, image.directories)


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


def test_a_log_of_an_old_format_is_recovered_without_epochs_though_its_batches_have_some() -> None:
    # LogSegment.recover asks for a cache of epochs, which a log that writes an old format does not have.
    storage = memory()
    appended(opened(storage), batch(2), batch(3))
    again = reopened(image_of(storage), config(message_format_version="0.10.2"))
    assert (again.epochs, again.log_end_offset) == (None, 5)


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
