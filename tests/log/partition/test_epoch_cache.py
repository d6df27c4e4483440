"""The leader epoch cache: its answers, its file, and an oracle that keeps nothing but the assignments."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from log.errors import CheckpointError, IllegalArgumentError
from log.partition.epoch_cache import EpochEndOffset, LeaderEpochCache
from log.storage import MemoryStorage
from log.storage.checkpoints import EpochEntry, read_epoch_checkpoint
from tests.support.crash import crash_states
from tests.support.disk_image import DiskImage, storage_of
from tests.support.recorded import RecordedStorage

PATH = "t-0/leader-epoch-checkpoint"


def storage(data: bytes | None = None) -> MemoryStorage:
    return storage_of(ManualClock(), DiskImage({} if data is None else {PATH: data}, frozenset({"t-0"})))


def filled(*entries: tuple[int, int]) -> LeaderEpochCache:
    cache = LeaderEpochCache.open(storage(), PATH)
    for epoch, start_offset in entries:
        cache.assign(epoch, start_offset)
    return cache


def pairs(cache: LeaderEpochCache) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in cache.entries]


def on_disk(cache: LeaderEpochCache) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in read_epoch_checkpoint(cache._storage, PATH)]


def test_the_entries_are_one_object_until_any_of_the_four_changes() -> None:
    cache = filled((1, 0), (2, 10), (3, 20))
    shown = cache.entries
    cache.assign(3, 25)
    cache.truncate_from_end(30)
    assert cache.entries is shown
    changes = (
        lambda: cache.assign(4, 30),
        lambda: cache.truncate_from_end(25),
        lambda: cache.truncate_from_start(15),
        cache.clear,
    )
    found = []
    for change in changes:
        change()
        found.append(pairs(cache))
    assert found == [[(1, 0), (2, 10), (3, 20), (4, 30)], [(1, 0), (2, 10), (3, 20)], [(2, 15), (3, 20)], []]


def test_a_new_cache_makes_an_empty_file_and_knows_nothing() -> None:
    cache = filled()
    assert cache._storage.read(PATH) == b""
    assert (cache.entries, cache.latest_entry, cache.earliest_entry, cache.latest_epoch) == ((), None, None, None)
    assert (cache.previous_epoch(), cache.previous_epoch(5), cache.epoch_for_offset(5)) == (None, None, None)
    assert cache.end_offset_for(0, 10) is None
    cache.truncate_from_end(0)
    cache.truncate_from_start(10)
    assert not cache.is_flush_due


def test_an_assignment_is_written_at_once_and_read_again() -> None:
    cache = filled((0, 0), (3, 17), (9, 40))
    assert cache._storage.read(PATH) == b"0\n3\n0 0\n3 17\n9 40\n"
    assert pairs(LeaderEpochCache.open(cache._storage, PATH)) == [(0, 0), (3, 17), (9, 40)]


def test_an_assigned_epoch_keeps_its_start_unless_a_lower_one_is_named() -> None:
    cache = filled((3, 17), (3, 20))
    assert pairs(cache) == [(3, 17)]
    cache.assign(3, 15)
    assert pairs(cache) == [(3, 15)]


def test_an_assignment_that_is_no_news_writes_nothing() -> None:
    recorded = RecordedStorage(storage(b"0\n1\n3 17\n"))
    cache = LeaderEpochCache.open(recorded, PATH)
    cache.assign(3, 17)
    cache.assign(3, 20)
    assert recorded.recording().operations == ()


def test_an_entry_that_contradicts_others_drops_them() -> None:
    assert pairs(filled((0, 0), (3, 17), (9, 40), (4, 30))) == [(0, 0), (3, 17), (4, 30)]
    assert pairs(filled((0, 0), (3, 17), (9, 40), (10, 5))) == [(0, 0), (10, 5)]
    assert pairs(filled((0, 0), (3, 17), (1, 17))) == [(0, 0), (1, 17)]


def test_where_an_epoch_ends() -> None:
    cache = filled((1, 5), (3, 17), (9, 40))
    answers = {epoch: cache.end_offset_for(epoch, 50) for epoch in (-1, 0, 1, 2, 3, 8, 9, 10)}
    assert answers == {
        -1: None,
        0: EpochEndOffset(0, 5),
        1: EpochEndOffset(1, 17),
        2: EpochEndOffset(1, 17),
        3: EpochEndOffset(3, 40),
        8: EpochEndOffset(3, 40),
        9: EpochEndOffset(9, 50),
        10: None,
    }


def test_neighbours_and_owners_of_offsets() -> None:
    cache = filled((1, 5), (3, 17), (9, 40))
    assert [cache.previous_epoch(epoch) for epoch in (None, 1, 2, 3, 9, 100)] == [3, None, 1, 1, 3, 9]
    assert [cache.epoch_for_offset(offset) for offset in (4, 5, 16, 17, 39, 40, 1000)] == [None, 1, 1, 3, 3, 9, 9]
    assert (cache.earliest_entry, cache.latest_entry) == (EpochEntry(1, 5), EpochEntry(9, 40))


def test_cutting_the_end_is_written_at_the_next_flush() -> None:
    cache = filled((1, 5), (3, 17), (9, 40))
    cache.truncate_from_end(41)
    assert not cache.is_flush_due
    cache.truncate_from_end(-1)
    cache.truncate_from_end(17)
    assert (pairs(cache), cache.is_flush_due, len(on_disk(cache))) == ([(1, 5)], True, 3)
    cache.flush()
    assert (on_disk(cache), cache.is_flush_due) == ([(1, 5)], False)


def test_cutting_the_start_moves_the_entry_that_covers_it() -> None:
    for start, left in ((4, [(1, 5), (3, 17)]), (5, [(1, 5), (3, 17)]), (16, [(1, 16), (3, 17)]), (17, [(3, 17)])):
        cache = filled((1, 5), (3, 17))
        cache.truncate_from_start(start)
        assert (pairs(cache), cache.is_flush_due) == (left, start > 4)
    cache.truncate_from_start(100)
    cache.flush()
    assert on_disk(cache) == [(3, 100)]


def test_a_flush_into_a_directory_that_is_gone_is_given_up() -> None:
    cache = filled((1, 5))
    cache.truncate_from_end(0)
    cache._storage.remove_directory("t-0")
    cache.flush()
    assert not cache.is_flush_due


def test_negative_numbers_are_refused_in_assignments_and_files() -> None:
    for epoch, offset in ((-1, 5), (5, -1)):
        with pytest.raises(IllegalArgumentError) as refusal:
            filled((epoch, offset))
        assert str(refusal.value) == f"{PATH}: leader epoch {epoch} from offset {offset}; both must be 0 or more"
    with pytest.raises(IllegalArgumentError):
        LeaderEpochCache.open(storage(b"0\n1\n-1 5\n"), PATH)
    with pytest.raises(CheckpointError):
        LeaderEpochCache.open(storage(b"0\n2\n1 5\n"), PATH)


def test_clearing_writes_at_once() -> None:
    cache = filled((1, 5))
    cache.clear()
    assert (pairs(cache), cache._storage.read(PATH)) == ([], b"0\n0\n")


STEPS = st.lists(
    st.tuples(st.sampled_from(("assign", "end", "start")), st.integers(0, 8), st.integers(0, 30)), max_size=12
)


def test_a_crash_while_an_epoch_is_written_leaves_the_old_file_or_the_new_one() -> None:
    recorded = RecordedStorage(storage(b"0\n1\n1 5\n"))
    cache = LeaderEpochCache.open(recorded, PATH)
    cache.assign(3, 17)
    recording = recorded.recording()
    for end in range(len(recording.operations) + 1):
        for image in crash_states(recording, SplitMix64(1), end=end, block_size_bytes=4):
            reopened = LeaderEpochCache.open(storage_of(ManualClock(), image), PATH)
            assert pairs(reopened) in ([(1, 5)], [(1, 5), (3, 17)])
            assert end < len(recording.operations) or len(reopened.entries) == 2
