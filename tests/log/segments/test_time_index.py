"""The time index against a plain list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from log.errors import CorruptIndexError, IllegalArgumentError, IllegalStateError, InvalidOffsetError
from log.record import TimestampOffset
from log.segments.time_index import TimeIndex, check_time_index, time_index_entries
from tests.support.disk_image import DiskImage, image_of, storage_of

BASE = 50
PATH = "t-0/00000000000000000050.timeindex"


def opened(data: bytes | None = None, *, size_bytes_max: int = 1200) -> TimeIndex:
    image = DiskImage({} if data is None else {PATH: data}, frozenset({"t-0"}))
    return TimeIndex.open(storage_of(ManualClock(), image), PATH, BASE, size_bytes_max=size_bytes_max)


def filled(*entries: tuple[int, int], size_bytes_max: int = 1200) -> TimeIndex:
    index = opened(size_bytes_max=size_bytes_max)
    for timestamp, offset in entries:
        index.maybe_append(timestamp, offset)
    return index


def encoded(*entries: tuple[int, int]) -> bytes:
    return b"".join(
        timestamp.to_bytes(8, signed=True) + offset.to_bytes(4, signed=True) for timestamp, offset in entries
    )


def pairs(index: TimeIndex) -> list[tuple[int, int]]:
    entries = index.entries()
    return list(zip(entries.timestamps.tolist(), entries.offsets.tolist(), strict=True))


def test_a_new_index_says_that_there_is_no_time() -> None:
    index = opened(size_bytes_max=40)
    assert (index.entry_count_max, index.file_size_bytes) == (3, 36)
    assert index.last_entry == index.lookup(10**15) == TimestampOffset(-1, BASE)
    assert index.lookup_many([5]).offsets.tolist() == [BASE]


def test_entries_are_written_big_endian() -> None:
    index = filled((258, 51), size_bytes_max=24)
    index.trim()
    assert image_of(index._storage).files[PATH] == bytes.fromhex("000000000000010200000001")


def test_the_last_place_is_kept_for_the_roll() -> None:
    index = filled((1, 51), (2, 52), size_bytes_max=36)
    assert index.is_full
    with pytest.raises(IllegalArgumentError) as refusal:
        index.maybe_append(3, 53)
    assert str(refusal.value) == f"{PATH} is full: it has 2 entries"
    index.maybe_append(3, 53, skip_full_check=True)
    assert pairs(index) == [(1, 51), (2, 52), (3, 53)]


def test_a_time_that_is_not_later_is_passed_over_and_one_that_is_earlier_refused() -> None:
    index = filled((10, 55))
    index.maybe_append(10, 60)
    assert pairs(index) == [(10, 55)]
    index.maybe_append(11, 55)
    with pytest.raises(InvalidOffsetError) as refusal:
        index.maybe_append(20, 54)
    assert str(refusal.value) == f"{PATH}: offset 54 is below the last entry's, 55"
    with pytest.raises(IllegalStateError) as state:
        index.maybe_append(9, 60)
    assert str(state.value) == f"{PATH}: timestamp 9 is below the last entry's, 11"
    assert pairs(index) == [(10, 55), (11, 55)]


def test_records_without_time_leave_no_entry() -> None:
    assert pairs(filled((-1, 55))) == []


ENTRIES = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3)), max_size=25).map(
    lambda steps: [
        (100 + sum(step[0] for step in steps[: place + 1]), BASE + sum(step[1] for step in steps[: place + 1]))
        for place in range(len(steps))
    ]
)


@given(entries=ENTRIES, targets=st.lists(st.integers(-5, 1200), max_size=20), is_loaded=st.booleans())
def test_a_look_up_finds_the_latest_entry_at_most_the_target(
    entries: list[tuple[int, int]], targets: list[int], is_loaded: bool
) -> None:
    index = opened(encoded(*((time, offset - BASE) for time, offset in entries))) if is_loaded else filled(*entries)
    expected = [max([entry for entry in entries if entry[0] <= target], default=(-1, BASE)) for target in targets]
    assert [(index.lookup(target).timestamp, index.lookup(target).offset) for target in targets] == expected
    many = index.lookup_many(targets)
    assert list(zip(many.timestamps.tolist(), many.offsets.tolist(), strict=True)) == expected


@given(entries=ENTRIES, offset=st.integers(0, 130))
def test_truncating_keeps_what_lies_below_the_offset(entries: list[tuple[int, int]], offset: int) -> None:
    index = filled(*entries)
    index.check_invariants()
    index.truncate_to(offset)
    index.check_invariants()
    kept = pairs(index)
    # Of several entries with one offset, Kafka's search may find any: what it finds goes, and what follows it.
    assert kept == entries[: len(kept)]
    assert all(entry[1] <= offset for entry in kept)
    if len({entry[1] for entry in entries}) == len(entries):
        assert kept == [entry for entry in entries if entry[1] < offset]
    assert index.last_entry == TimestampOffset(*(kept[-1] if kept else (-1, BASE)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (encoded((9, 1), (8, 2)), "has entries, but the last timestamp 8 is below the first, 9"),
        (encoded((9, -1)), "has entries, but the last offset 49 is below the base offset 50"),
        (encoded((9, 1)) + b"\0\0", "has 14 bytes, which is no multiple of 12"),
    ],
)
def test_what_cannot_be_right_at_first_sight_is_reported(data: bytes, message: str) -> None:
    with pytest.raises(CorruptIndexError) as damage:
        check_time_index(time_index_entries(data, BASE), BASE, len(data), source=PATH)
    assert str(damage.value) == f"{PATH}: {message}"
    check_time_index(time_index_entries(encoded((9, 1)), BASE), BASE, 12)


def test_resetting_makes_it_new() -> None:
    index = filled((10, 55))
    index.reset()
    assert (index.last_entry, index.entry_count, index.entry_count_max) == (TimestampOffset(-1, BASE), 0, 100)


def test_the_bytes_of_a_file_are_decoded_without_opening_it() -> None:
    entries = time_index_entries(encoded((10, 5)) + bytes(5), BASE)
    assert (entries.timestamps.tolist(), entries.offsets.tolist()) == ([10], [55])
