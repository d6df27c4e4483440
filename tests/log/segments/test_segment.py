"""One segment: where appends leave index entries, and look-ups against a plain walk over the file."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.ids import Offset
from broker.releases import Release
from log.batches.batch import RecordBatch
from log.batches.in_buffer import batches_in
from log.batches.record_columns import BatchRun
from log.errors import CorruptBatchError, IllegalArgumentError, SegmentOffsetOverflowError
from log.log_config import LogConfig
from log.record import TimestampOffset
from log.segments.file_names import TIME_INDEX
from log.segments.lookups import find_offsets, find_timestamps
from log.segments.segment import Segment
from log.segments.segment_files import SegmentPlace
from tests.log.made import DIRECTORY, NOW, batch, config, memory, put, segment, sized

COUNTS = st.lists(st.integers(1, 4), min_size=1, max_size=12)


def filled(
    counts: list[int], *, gap: int = 0, interval: int = 100, times: list[int] | None = None, magic: int = 2
) -> Segment:
    """A segment of batches of so many records, each `gap` offsets after the one before."""
    made = segment(config(index_interval_bytes=interval, segment_index_bytes=10_000), base_offset=50)
    offset = 50
    for index, count in enumerate(counts):
        timestamp = NOW + (times[index % len(times)] if times else index)
        put(made, batch(count, base_offset=offset, timestamp=timestamp, magic=magic))
        offset += count + gap
    return made


def test_an_entry_is_written_when_more_than_the_interval_was_appended_since_the_last() -> None:
    made = segment(config(index_interval_bytes=200))
    for offset in range(6):
        put(made, sized(100, base_offset=offset))
    # 100 after the first, 200 after the second: not more. 300 before the fourth: an entry. Then 100, 200 again.
    entries = made.offset_index.entries()
    assert list(zip(entries.offsets.tolist(), entries.positions.tolist(), strict=True)) == [(3, 300)]


def offset_entries(made: Segment) -> list[tuple[int, int]]:
    entries = made.offset_index.entries()
    return list(zip(entries.offsets.tolist(), entries.positions.tolist(), strict=True))


def test_up_to_kafka_3_9_0_an_entry_stands_for_the_whole_append() -> None:
    settings = attrs.evolve(config(index_interval_bytes=0), indexes_whole_appends=True)
    made = segment(settings)
    put(made, batch(), batch(2, base_offset=1) + batch(3, base_offset=3))
    assert offset_entries(made) == [(5, len(batch()))]
    assert LogConfig(release=Release("3.8")).indexes_whole_appends
    assert not LogConfig(release=Release("3.9")).indexes_whole_appends
    assert not LogConfig().indexes_whole_appends


@pytest.mark.parametrize("interval", [0, 60, 100, 150, 4096])
@pytest.mark.parametrize("room_bytes", [24, 36, 10_000])
def test_an_append_of_many_batches_leaves_the_indexes_of_appends_of_one(interval: int, room_bytes: int) -> None:
    """The plain way, the compiled way, and batch by batch; the indexes may refuse one of the batches."""
    sets = [batch(1 + size % 3, base_offset=3 * size, timestamp=NOW + size * 7 % 5) for size in range(12)]
    found = []
    for way in ("one by one", "at once", "as columns"):
        made = segment(config(index_interval_bytes=interval, segment_index_bytes=room_bytes))
        refusal = None
        try:
            if way == "as columns":
                batches = tuple(batches_in(b"".join(sets)))
                run = BatchRun(
                    memoryview(b"".join(sets)),
                    np.array([each.end_position for each in batches]),
                    np.array([each.last_offset for each in batches]),
                    np.array([each.max_timestamp for each in batches]),
                )
                made.append_set(run, last_offset=batches[-1].last_offset)
            else:
                put(made, *(sets if way == "one by one" else (b"".join(sets),)))
        except IllegalArgumentError as error:
            refusal = str(error)
        times = made.time_index.entries()
        found.append((offset_entries(made), times.timestamps.tolist(), made.max_timestamp, refusal))
    assert found[0] == found[1] == found[2]


def test_an_offset_that_an_index_cannot_hold_is_refused_before_anything_is_written() -> None:
    made = segment(base_offset=10)
    put(made, batch(base_offset=10 + 2**31 - 1))
    before = made.size_bytes
    with pytest.raises(SegmentOffsetOverflowError) as caught:
        put(made, batch(base_offset=10 + 2**31))
    assert str(caught.value) == ("offset 2147483658 does not lie within 2147483647 above the segment's base offset 10")
    assert made.size_bytes == before


def test_a_last_entry_that_the_time_index_refuses_is_left_out_of_a_closed_segment() -> None:
    made = segment(base_offset=5)
    made.append(batch(), last_offset=Offset(5), max_timestamp=TimestampOffset(NOW, Offset(4)))
    made.close()
    assert made.place.storage.read(made.place.path(TIME_INDEX)) == b""


@given(counts=COUNTS, gap=st.integers(0, 3), interval=st.sampled_from([0, 100, 250]), target=st.integers(40, 120))
def test_an_offset_is_found_where_a_walk_from_the_start_finds_it(
    counts: list[int], gap: int, interval: int, target: int
) -> None:
    made = filled(counts, gap=gap, interval=interval)
    expected = next((each for each in made.batches() if each.last_offset >= target), None)
    found = made.translate_offset(Offset(target))
    assert (found and (found.last_offset, found.position, found.size_bytes)) == (
        expected and (expected.last_offset, expected.position, expected.size_bytes)
    )


@given(
    counts=COUNTS,
    times=st.lists(st.integers(-5, 5), min_size=1),
    interval=st.sampled_from([0, 100]),
    target=st.integers(-7, 9),
    start=st.integers(45, 70),
)
def test_a_time_is_found_where_a_walk_from_the_start_finds_it(
    counts: list[int], times: list[int], interval: int, target: int, start: int
) -> None:
    made = filled(counts, times=times, interval=interval)
    expected = next(
        (
            (record.timestamp, record.offset)
            for each in made.batches()
            for record in each.records()
            if record.timestamp >= NOW + target and record.offset >= start
        ),
        None,
    )
    found = made.find_offset_by_timestamp(NOW + target, Offset(start))
    assert (found and (found.timestamp_ms, found.offset)) == expected


@given(counts=COUNTS, gap=st.integers(0, 3), target=st.integers(40, 100))
def test_a_cut_keeps_whole_batches_and_sound_indexes(counts: list[int], gap: int, target: int) -> None:
    made = filled(counts, gap=gap, interval=0)
    kept = [each.last_offset for each in made.batches() if each.last_offset < target]
    before = made.size_bytes
    cut = made.truncate_to(Offset(target), now_ms=NOW)
    assert [each.last_offset for each in made.batches()] == kept
    assert made.size_bytes == before - cut
    assert made.read_next_offset() == (kept[-1] + 1 if kept else 50)
    put(made, batch(base_offset=200))
    assert made.read_next_offset() == 201


def place_of(found: RecordBatch | None) -> tuple[int, int, int]:
    return (-1, -1, -1) if found is None else (found.last_offset, found.position, found.size_bytes)


@given(counts=COUNTS, gap=st.integers(0, 3), magic=st.sampled_from([0, 1, 2]), targets=st.lists(st.integers(40, 120)))
def test_many_offsets_are_found_as_one_by_one(counts: list[int], gap: int, magic: int, targets: list[int]) -> None:
    made = filled(counts, gap=gap, magic=magic)
    found = find_offsets(made, targets)
    rows = list(zip(found.last_offsets, found.positions, found.sizes_bytes, strict=True))
    singles = [made.translate_offset(Offset(target)) for target in targets]
    assert rows == [(-1, -1, -1) if one is None else (one.last_offset, one.position, one.size_bytes) for one in singles]


@given(
    counts=COUNTS,
    times=st.lists(st.integers(-5, 5), min_size=1),
    magic=st.sampled_from([0, 1, 2]),
    targets=st.lists(st.integers(-7, 9)),
    start=st.integers(45, 70),
)
def test_many_times_are_found_in_the_batch_that_a_walk_finds(
    counts: list[int], times: list[int], magic: int, targets: list[int], start: int
) -> None:
    made = filled(counts, times=times, magic=magic)
    found = find_timestamps(made, [NOW + target for target in targets], Offset(start))
    expected = [
        place_of(
            next(
                (each for each in made.batches() if each.max_timestamp >= NOW + target and each.last_offset >= start),
                None,
            )
        )
        for target in targets
    ]
    assert list(zip(found.last_offsets, found.positions, found.sizes_bytes, strict=True)) == expected


def test_many_look_ups_tell_where_a_file_is_damaged() -> None:
    made = filled([1, 1, 1], interval=10_000)
    made.records.write_at(2 * len(batch()) + 8, bytes(4))
    assert find_offsets(made, [50, 51]).positions.tolist() == [0, len(batch())]
    with pytest.raises(CorruptBatchError, match=f"at byte {2 * len(batch())}: the size is less than a batch can have"):
        find_offsets(made, np.array([52]))


def test_a_segment_above_the_size_that_positions_can_hold_is_refused() -> None:
    storage = memory()
    storage.make_directory(DIRECTORY)
    place = SegmentPlace(storage, DIRECTORY, Offset(0))
    storage.open(place.path(".log"), create=True).truncate(2**31)
    with pytest.raises(IllegalArgumentError, match="has 2147483648 bytes, too many for a segment"):
        Segment(place, LogConfig(), now_ms=NOW)


@pytest.mark.parametrize(("release", "position_of_2"), [("4.0", 0), ("4.1", 1), ("4.3", 1)])
def test_of_batches_that_overlap_kafka_since_4_1_finds_the_one_that_begins_there(
    release: str, position_of_2: int
) -> None:
    """A follower takes batches 0-3 and 2-4 in one append: only their last offsets must grow."""
    made = segment(attrs.evolve(config(), release=Release(release)))
    put(made, batch(4) + batch(3, base_offset=2))
    found = made.translate_offset(Offset(2))
    assert found is not None
    assert found.position == position_of_2 * len(batch(4))
