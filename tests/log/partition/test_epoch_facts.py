"""The leader epoch cache of a log and its file, also after a power loss, against a plain list.

What was assigned is on disk at once; a cut is when it was flushed.

Source: LeaderEpochFileCache, as facts: assign, truncateFromEndAsyncFlush, truncateFromStartAsyncFlush, endOffsetFor.
"""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from log.errors import IllegalArgumentError
from log.partition.epoch_cache import EpochEndOffset, LeaderEpochCache
from log.storage import MemoryStorage, Storage
from log.storage.checkpoints import LEADER_EPOCH_FILE, EpochEntry
from tests.log.made import DIRECTORY, NOW
from tests.support.crash import crash_states, power_loss
from tests.support.disk_image import DiskImage, storage_of
from tests.support.drawing import DRAWS, Draws
from tests.support.recorded import RecordedStorage

STEP_COUNT: Final = 12
_PATH: Final = f"{DIRECTORY}/{LEADER_EPOCH_FILE}"


class _Life:
    """Run one cache through its steps."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._storage = RecordedStorage(storage_of(ManualClock(NOW), DiskImage({}, frozenset({DIRECTORY}))))
        self._cache = LeaderEpochCache.open(self._storage, _PATH)
        self._list: list[tuple[int, int]] = []
        """Each epoch with the offset where it begins."""
        self._on_disk: list[tuple[int, int]] = []
        self._done: list[str] = []

    def run(self) -> str:
        """Change the epochs until the steps are over or something differs."""
        for _ in range(STEP_COUNT):
            self._done.append(self._step())
            difference = self._compared()
            if difference:
                return f"after {', '.join(self._done)} {difference}"
        self._storage.remove_directory(DIRECTORY)
        self._cache.truncate_from_end(self._draws.number(0, 40))
        self._cache.flush()  # Of a log that was deleted.
        return "the folder is there again" if self._storage.exists(DIRECTORY) else ""

    def _step(self) -> str:
        """Do one thing to the cache and to the list, and say what."""
        cache, draws, known = self._cache, self._draws, self._list
        last_epoch, last_offset = known[-1] if known else (0, 0)
        offset, act = draws.number(0, 40), draws.number(0, 9)
        if act < 4:
            epoch = draws.number(0, 12) if draws.is_one_in(4) else last_epoch + draws.number(0, 2)
            offset = offset if draws.is_one_in(4) else last_offset + draws.number(0, 6)
            cache.assign(epoch, offset)
            if not (known and epoch == last_epoch and last_offset <= offset):
                self._list = [each for each in known if each[0] < epoch and each[1] < offset] + [(epoch, offset)]
                self._on_disk = self._list
            return f"assign({epoch}, {offset})"
        if act == 4:
            cache.truncate_from_start(offset)
            before = [epoch for epoch, start in known if start <= offset]
            self._list = [(epoch, offset) for epoch in before[-1:]] + [each for each in known if each[1] > offset]
            return f"truncate_from_start({offset})"
        if act == 5 and draws.is_one_in(4):
            cache.clear()
            self._list = self._on_disk = []
            return "clear()"
        if act < 8:
            offset = draws.number(-1, last_offset + 2)
            cache.truncate_from_end(offset)
            self._list = [each for each in known if each[1] < offset] if offset >= 0 else known
            return f"truncate_from_end({offset})"
        cache.flush()
        self._on_disk = known
        return "flush()"

    def _compared(self) -> str:
        """Return in what the cache, or what a power loss leaves of its file, differs from the list."""
        cache, known, draws = self._cache, self._list, self._draws
        cache.check_invariants()
        if [(each.epoch, each.start_offset) for each in cache.entries] != known:
            return f"it is {cache.entries}, the list {known}"
        if not self._done or draws.is_one_in(3):
            disk = storage_of(ManualClock(NOW), power_loss(self._storage.recording(), draws.entropy))
            left = [(each.epoch, each.start_offset) for each in LeaderEpochCache.open(disk, _PATH).entries]
            if left != self._on_disk:
                return f"a power loss leaves {left}, and {self._on_disk} was written"
        epoch, offset, end = draws.number(-1, 16), draws.number(0, 45), 50
        ended = [start for each, start in known if each > epoch]
        below = [each for each, _ in known if each <= epoch]
        wanted = None
        if epoch >= 0 and ended:
            wanted = (max(below, default=epoch), ended[0])
        elif known and epoch == known[-1][0]:
            wanted = (epoch, end)
        asked = {
            f"end of {epoch}": (_pair(cache.end_offset_for(epoch, end)), wanted),
            f"epoch before {epoch}": (cache.previous_epoch(epoch), _last([e for e, _ in known if e < epoch])),
            "epoch before the latest": (cache.previous_epoch(), _last([e for e, _ in known[:-1]])),
            "earliest entry": (_start_of(cache.earliest_entry), known[0] if known else None),
            "latest": (cache.latest_epoch, _last([e for e, _ in known])),
        }
        wrong = {what: pair for what, pair in asked.items() if pair[0] != pair[1]}
        for pair in ((-1, offset), (max(epoch, 0), -1)):
            try:
                cache.assign(*pair)
                return f"it takes {pair}"
            except IllegalArgumentError:
                pass
        return f"it answers {wrong}" if wrong else ""


def _pair(end: EpochEndOffset | None) -> tuple[int, int] | None:
    return None if end is None else (end.epoch, end.end_offset)


def _start_of(entry: EpochEntry | None) -> tuple[int, int] | None:
    return None if entry is None else (entry.epoch, entry.start_offset)


def _last(epochs: list[int]) -> int | None:
    return epochs[-1] if epochs else None


@given(draws=DRAWS)
def test_epochs_are_those_of_the_list(draws: Draws) -> None:
    assert _Life(draws).run() == ""


def cache_of(storage: Storage) -> LeaderEpochCache:
    return LeaderEpochCache.open(storage, _PATH)


def holding(data: bytes) -> MemoryStorage:
    return storage_of(ManualClock(NOW), DiskImage({_PATH: data}, frozenset({DIRECTORY})))


def test_an_assignment_that_is_no_news_writes_nothing() -> None:
    recorded = RecordedStorage(holding(b"0\n1\n3 17\n"))
    cache = cache_of(recorded)
    shown = cache.entries
    for offset in (17, 20):
        cache.assign(3, offset)
    assert (recorded.recording().operations, cache.entries is shown) == ((), True)
    cache.assign(9, 40)
    assert recorded.read(_PATH) == b"0\n2\n3 17\n9 40\n"


def test_negative_numbers_are_refused_in_assignments_and_files() -> None:
    for epoch, offset in ((-1, 5), (5, -1)):
        with pytest.raises(IllegalArgumentError) as refusal:
            cache_of(holding(b"")).assign(epoch, offset)
        assert str(refusal.value) == f"{_PATH}: leader epoch {epoch} from offset {offset}; both must be 0 or more"
    with pytest.raises(IllegalArgumentError):
        cache_of(holding(b"0\n1\n-1 5\n"))


def test_a_crash_while_an_epoch_is_written_leaves_the_old_file_or_the_new_one() -> None:
    recorded = RecordedStorage(holding(b"0\n1\n1 5\n"))
    cache_of(recorded).assign(3, 17)
    recording = recorded.recording()
    for end in range(len(recording.operations) + 1):
        for image in crash_states(recording, SplitMix64(1), end=end, block_size_bytes=4):
            found = [(each.epoch, each.start_offset) for each in cache_of(storage_of(ManualClock(), image)).entries]
            assert found == [(1, 5), (3, 17)] or (end < len(recording.operations) and found == [(1, 5)])
