"""One segment: index entries of appends, look-ups against a walk over the file, its files, and when it is full."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.ids import Offset
from broker.releases import Release
from broker.units import DurationMs, SizeBytes, TimeMs
from log.batches.batch import RecordBatch
from log.batches.build import BatchSpec, build_batch
from log.batches.in_buffer import batches_in
from log.batches.record_columns import BatchRun
from log.errors import IllegalArgumentError, SegmentOffsetOverflowError
from log.log_config import LogConfig
from log.record import Record, TimestampOffset
from log.segments.file_names import OFFSET_INDEX, TIME_INDEX
from log.segments.rolling import PendingAppend, count_before_roll, fits_relative, new_base_offset, should_roll
from log.segments.search import BatchPlace, first_ending_at_or_after
from log.segments.segment import Segment
from log.segments.segment_files import SegmentPlace
from log.segments.time_index import time_index_entries
from log.strategies import Written, streams
from tests.log.made import DIRECTORY, NOW, batch, config, memory, put, segment

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
    made = segment(attrs.evolve(config(), release=Release("4.3")), base_offset=5)
    made.append(batch(), last_offset=Offset(5), max_timestamp=TimestampOffset(NOW, Offset(4)))
    made.close()
    assert made.place.storage.read(made.place.path(TIME_INDEX)) == b""


@pytest.mark.parametrize(("release", "sizes"), [("4.3", (0, 12)), ("4.4", (1000, 996))])
def test_closing_a_segment_trims_its_indexes_before_release_4_4(release: str, sizes: tuple[int, int]) -> None:
    """In 4.4.0 AbstractIndex.close only unmaps the file, and LogSegment.close adds no entry either."""
    made = segment(attrs.evolve(config(index_interval_bytes=4096), release=Release(release)))
    put(made, batch(3))
    assert made.offset_index.entry_count == made.time_index.entry_count == 0
    made.close()
    storage, place = made.place.storage, made.place
    assert tuple(storage.size_bytes(place.path(kind)) for kind in (OFFSET_INDEX, TIME_INDEX)) == sizes
    timestamps = time_index_entries(storage.read(place.path(TIME_INDEX)), 0).timestamps
    assert timestamps[timestamps > 0].tolist() == ([NOW + 2] if release == "4.3" else [])


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


def first_found(data: bytes, position: int, offset: int) -> BatchPlace | None:
    def batches_from(start: int) -> Iterator[RecordBatch]:
        return batches_in(data, start_position=start, source="x")

    return first_ending_at_or_after(memoryview(data), position, Offset(offset), batches_from)


def one(offset: int, magic: int) -> bytes:
    return build_batch(BatchSpec(Offset(offset), magic=magic), (Record(Offset(offset), TimeMs(1), b"k", b"v"),))


@given(streams(), st.integers(0, 50), st.data())
def test_it_is_the_first_batch_that_the_reader_finds(
    stream: tuple[Written, ...], cut: int, drawn: st.DataObject
) -> None:
    data = b"".join(written.data for written in stream)
    data = data[: max(len(data) - cut, 0)]  # A tail may be torn.
    batches = list(batches_in(data))
    last_offsets = [batch.last_offset for batch in batches]
    offset = drawn.draw(st.sampled_from([0, *last_offsets, *(each + 1 for each in last_offsets)]))
    position = drawn.draw(st.sampled_from([0, *(batch.position for batch in batches)]))
    expected = next((each for each in batches if each.position >= position and each.last_offset >= offset), None)
    place = None if expected is None else BatchPlace(expected.last_offset, expected.position, expected.size_bytes)
    assert first_found(data, position, offset) == place


def test_the_index_that_is_full_first_counts_and_a_place_is_kept_for_the_last_time() -> None:
    made = segment(config(segment_index_bytes=48))  # Room for six offsets or four times.
    room = []
    for offset in range(4):
        put(made, batch(base_offset=offset, timestamp=NOW + offset))
        room.append((made.entry_room, made.is_index_full))
    # The first append has no entry.
    assert room == [(3, False), (2, False), (1, False), (0, True)]


@attrs.frozen
class Fill:
    base_offset: Offset = attrs.field(default=Offset(10))
    size_bytes: SizeBytes = attrs.field(default=SizeBytes(900))
    is_index_full: bool = False
    entry_room: int = 100
    first_timestamp_ms: TimeMs = attrs.field(default=TimeMs(5000))
    created_ms: TimeMs = attrs.field(default=TimeMs(0))
    jitter_ms: DurationMs = attrs.field(default=DurationMs(0))


CONFIG = LogConfig.parse({"segment.bytes": 1000, "segment.ms": 100})


def rolls(fill: Fill, *, size: int = 100, timestamp: int = 5000, last: int = 20, now: int = 0) -> bool:
    return should_roll(fill, PendingAppend(SizeBytes(size), TimeMs(timestamp), Offset(last), TimeMs(now)), CONFIG)


@pytest.mark.parametrize(
    ("fill", "pending", "is_rolled"),
    [
        (Fill(), {"size": 100}, False),
        (Fill(), {"size": 101}, True),
        (Fill(), {"timestamp": 5100, "now": 10**9}, False),  # Age is counted in the records' time,
        (Fill(), {"timestamp": 5101}, True),
        (Fill(first_timestamp_ms=TimeMs(-1)), {"timestamp": -1, "now": 100}, False),  # without one from the creation,
        (Fill(first_timestamp_ms=TimeMs(-1)), {"timestamp": -1, "now": 101}, True),
        (Fill(jitter_ms=DurationMs(30)), {"timestamp": 5070}, False),  # less the jitter,
        (Fill(jitter_ms=DurationMs(30)), {"timestamp": 5071}, True),
        (Fill(size_bytes=SizeBytes(0)), {"timestamp": 10**12}, False),  # and never where the segment is empty.
        (Fill(is_index_full=True), {"size": 1}, True),
    ],
)
def test_a_segment_is_full_beyond_each_limit(fill: Fill, pending: dict[str, int], is_rolled: bool) -> None:
    assert rolls(fill, **pending) is is_rolled


@pytest.mark.parametrize(("last", "fits"), [(9, False), (10, True), (10 + 2**31 - 1, True), (10 + 2**31, False)])
def test_offsets_within_31_bits_of_the_base_fit(last: int, fits: bool) -> None:
    assert fits_relative(Offset(10), Offset(last)) is fits
    assert rolls(Fill(), size=1, last=last) is not fits


def test_a_compacted_log_rolls_in_time_for_its_lag() -> None:
    compacted = LogConfig.parse({"cleanup.policy": "compact", "segment.ms": 100, "max.compaction.lag.ms": 40})
    assert compacted.segment_ms_max == 40
    assert LogConfig.parse({"segment.ms": 100, "max.compaction.lag.ms": 40}).segment_ms_max == 100


def test_the_next_base_is_the_first_offset_or_the_least_that_can_hold_the_last() -> None:
    assert new_base_offset(Offset(7), Offset(9)) == 7
    assert new_base_offset(None, Offset(2**31 + 5)) == 6


TIMES = st.sampled_from((-1, 4990, 5000, 5099, 5100, 5101, 5110))
FILLS = st.builds(
    Fill,
    size_bytes=st.sampled_from([SizeBytes(0), SizeBytes(700)]),
    entry_room=st.integers(-1, 5),
    first_timestamp_ms=TIMES.map(TimeMs),
    created_ms=st.sampled_from([TimeMs(5000), TimeMs(5100)]),
    jitter_ms=st.sampled_from([DurationMs(0), DurationMs(1)]),
)
LAST_OFFSETS = st.sampled_from((9, 10, 11, 12, 10 + 2**31 - 1, 10 + 2**31))


@given(
    FILLS,
    st.lists(st.tuples(st.sampled_from((50, 100, 101)), TIMES, LAST_OFFSETS), min_size=1, max_size=8),
    st.sampled_from((5100, 5101, 5201)),
)
def test_as_many_batches_are_counted_as_go_in_one_after_the_other(
    fill: Fill, batches: list[tuple[int, int, int]], now: int
) -> None:
    sizes, times, lasts = np.array(batches, np.int64).T
    run = BatchRun(memoryview(b""), np.cumsum(sizes), np.sort(lasts), times)
    counted = count_before_roll(fill, run, CONFIG, TimeMs(now))
    count, filled = 0, fill
    for size, timestamp, last in zip(sizes.tolist(), times.tolist(), np.sort(lasts).tolist(), strict=True):
        if count >= fill.entry_room or rolls(filled, size=size, timestamp=timestamp, last=last, now=now):
            break
        first_ms = filled.first_timestamp_ms if filled.size_bytes else TimeMs(timestamp)
        filled = attrs.evolve(filled, size_bytes=SizeBytes(filled.size_bytes + size), first_timestamp_ms=first_ms)
        count += 1
    # An empty segment that was made long ago, and gets batches without times, is asked again for the first of them.
    is_old = fill.size_bytes == 0 and times[0] < 0 and now - fill.created_ms > 100 - fill.jitter_ms
    assert counted == (0 if is_old else count)
