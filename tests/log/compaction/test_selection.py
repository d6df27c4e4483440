"""Which log is cleaned next, from where to where, which segments become one, and what a pass would save."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.errors import CorruptDataError
from broker.ids import Offset, PartitionId, TopicPartition
from log.compaction import CleanerManager, LogToClean, estimate_compaction, filthiest, log_to_clean
from log.compaction.cleaner import group_segments, source_of
from log.partition.partition_log import PartitionLog
from log.record import ControlType
from log.storage import MemoryStorage
from log.storage.checkpoints import CLEANER_FILE, write_offset_checkpoint
from log.storage.protocol import Storage
from tests.log.compaction.logs import RETENTION_MS, START_MS, Written, config_of, pairs_of
from tests.log.compaction.test_properties import Step, appends, rolls, sleeps, transactions


def target_of(written: Written, checkpoint: int | None = None) -> LogToClean:
    offset = None if checkpoint is None else Offset(checkpoint)
    return log_to_clean(written.log, offset, now_ms=written.now_ms)


def three_segments(**settings: object) -> Written:
    """Segments of one batch each at 0, 1 and 2, ten ms apart, and an empty active one at 3."""
    written = Written.empty(**settings)
    for key in (b"a", b"b", b"a"):
        written.append((key, b"value"))
        written.roll()
        written.sleep(10)
    return written


def test_nothing_at_or_above_the_last_stable_offset_is_cleaned_nor_the_segment_it_lies_in() -> None:
    written = Written.empty()
    written.append((b"a", b"1"))
    written.roll()
    written.append((b"b", b"2"))
    written.append((b"c", b"3"), producer=7, transactional=True)
    written.roll()
    target = target_of(written)
    assert (target.first_uncleanable_offset, target.end_offset) == (2, 1)
    written.end_transaction(7, ControlType.COMMIT)
    written.roll()
    assert target_of(written).end_offset == 4


def test_a_segment_with_a_record_younger_than_the_minimum_lag_bounds_the_pass() -> None:
    written = three_segments(min_compaction_lag_ms=25)
    # Records of 0, 10 and 20 ms; now is 30 ms: what is younger than 25 ms begins with the second.
    assert target_of(written).end_offset == 1
    assert target_of(three_segments(min_compaction_lag_ms=20)).end_offset == 2
    # An age of exactly the lag is enough.
    assert target_of(three_segments(min_compaction_lag_ms=10)).end_offset == 3


def test_the_ratio_has_to_be_exceeded() -> None:
    written = three_segments()
    sizes = [segment.size_bytes for segment in written.log.segments]
    target = target_of(written, checkpoint=1)
    assert target.clean_bytes == sizes[0]
    assert target.cleanable_ratio == pytest.approx(2 / 3)
    written.log.config = config_of(min_cleanable_dirty_ratio=target.cleanable_ratio)
    assert not target.is_due
    written.log.config = config_of(min_cleanable_dirty_ratio=math.nextafter(target.cleanable_ratio, 0))
    assert target.is_due


def test_a_dirty_segment_that_began_longer_ago_than_the_maximum_lag_is_due_whatever_the_ratio() -> None:
    written = three_segments(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=30)
    assert not target_of(written).is_due
    written.sleep(1)
    assert target_of(written).is_due
    # The second segment began 21 ms ago.
    assert not target_of(written, checkpoint=1).is_due


@pytest.mark.parametrize("checkpoint", [0, 4])
def test_a_checkpoint_outside_the_log_is_reset_to_its_start(checkpoint: int) -> None:
    written = three_segments()
    written.log.increment_log_start_offset(Offset(1))
    target = target_of(written, checkpoint)
    assert (target.first_dirty_offset, target.resets_checkpoint) == (1, True)


def test_the_largest_ratio_goes_first_and_the_first_of_equals() -> None:
    dirty = target_of(three_segments())
    half = attrs.evolve(dirty, clean_bytes=dirty.cleanable_bytes)
    again = attrs.evolve(dirty)
    assert filthiest([half, dirty, again]) is dirty
    overdue = attrs.evolve(half, is_overdue=True)
    assert filthiest([overdue, dirty]) is dirty
    assert filthiest([]) is None


INT32_MAX = 2**31 - 1


def segment(base_offset: int, size: int, offset_index: int = 0, time_index: int = 0) -> Any:
    return SimpleNamespace(
        base_offset=base_offset,
        size_bytes=size,
        offset_index=SimpleNamespace(size_bytes=offset_index),
        time_index=SimpleNamespace(size_bytes=time_index),
    )


def groups(segments: Sequence[Any], end_offset: int = 10_000, size: int = 700, index: int = 100) -> list[list[int]]:
    config = config_of(segment_bytes=size, segment_index_bytes=index)
    found = group_segments(segments, Offset(end_offset), config)
    return [[one.base_offset for one in group] for group in found]


def test_the_last_offset_is_taken_to_be_below_the_next_base() -> None:
    far = INT32_MAX + 1
    assert groups([segment(0, 1), segment(10, 1), segment(far, 1)], end_offset=far + 1) == [[0, 10], [far]]
    assert groups([segment(0, 1), segment(10, 1), segment(far + 1, 1)], end_offset=far + 2) == [[0], [10, far + 1]]


def test_the_last_segment_ends_where_cleaning_ends() -> None:
    assert groups([segment(0, 1), segment(10, 1)], end_offset=INT32_MAX + 1) == [[0, 10]]
    assert groups([segment(0, 1), segment(10, 1)], end_offset=INT32_MAX + 2) == [[0], [10]]


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60), st.integers(1, 2**30)), min_size=1, max_size=12))
def test_groups_are_consecutive_fit_and_could_not_be_larger(drawn: list[tuple[int, int, int]]) -> None:
    segments, base = [], 0
    for size, index, step in drawn:
        segments.append(segment(base, size, index, index))
        base += step
    found = group_segments(segments, Offset(base), config_of(segment_bytes=700, segment_index_bytes=100))
    assert [one for group in found for one in group] == segments
    ends = [*(one.base_offset for one in segments[1:]), base]
    end_of = {one.base_offset: end for one, end in zip(segments, ends, strict=True)}

    def fits(group: Sequence[Any]) -> bool:
        in_reach = group[-1].size_bytes == 0 or end_of[group[-1].base_offset] - 1 - group[0].base_offset <= INT32_MAX
        sizes = sum(one.size_bytes for one in group), sum(one.offset_index.size_bytes for one in group)
        return in_reach and sizes[0] <= 700 and sizes[1] <= 100

    assert all(len(group) == 1 or fits(group) for group in found)
    for group, following in pairwise(found):
        assert not fits([*group, following[0]])


FIRST, SECOND, THIRD = (TopicPartition("topic", PartitionId(number)) for number in range(3))


def written_in(storage: Storage, partition: TopicPartition, *values: bytes, **settings: object) -> Written:
    """A log of one rolled segment with values of one key."""
    log = PartitionLog.open(storage, str(partition), config_of(**settings), now_ms=START_MS)
    written = Written(log, ManualClock(START_MS))
    for value in values:
        written.append((b"a", value))
    if values:
        written.roll()
    return written


def test_the_dirtiest_log_is_cleaned_first_and_the_others_after_it() -> None:
    storage = MemoryStorage(ManualClock(START_MS))
    half, whole = written_in(storage, FIRST, b"1", b"2"), written_in(storage, SECOND, b"1", b"2")
    manager = CleanerManager(storage, {FIRST: half.log, SECOND: whole.log})
    write_offset_checkpoint(storage, CLEANER_FILE, {FIRST: 2})
    half.append((b"a", b"3"))
    half.roll()
    cleaned = [manager.clean_filthiest(now_ms=START_MS) for _ in range(3)]
    assert [one and one.partition for one in cleaned] == [SECOND, FIRST, None]
    assert storage.read(CLEANER_FILE) == b"0\n2\ntopic 0 3\ntopic 1 2\n"
    assert (pairs_of(half.log), pairs_of(whole.log)) == ([(2, b"a", b"3")], [(1, b"a", b"2")])


def test_a_checkpoint_outside_its_log_is_corrected_though_nothing_is_cleaned() -> None:
    storage = MemoryStorage(ManualClock(START_MS))
    written = written_in(storage, FIRST)
    write_offset_checkpoint(storage, CLEANER_FILE, {FIRST: 5, SECOND: 7})
    assert CleanerManager(storage, {FIRST: written.log}).clean_filthiest(now_ms=START_MS) is None
    # The partition that is gone is left out with it.
    assert storage.read(CLEANER_FILE) == b"0\n1\ntopic 0 0\n"


def test_a_log_that_cannot_be_cleaned_is_left_alone_and_the_others_go_on() -> None:
    storage = MemoryStorage(ManualClock(START_MS))
    broken, sound = written_in(storage, FIRST, b"1", b"2"), written_in(storage, SECOND, b"1", b"2")
    segment = broken.log.segments[0]
    segment.records.write_at(8, b"\0\0\0\1")
    manager = CleanerManager(storage, {FIRST: broken.log, SECOND: sound.log})
    with pytest.raises(CorruptDataError) as damage:
        manager.clean_filthiest(now_ms=START_MS)
    assert manager.uncleanable == {FIRST: damage.value}
    done = manager.clean_filthiest(now_ms=START_MS)
    assert done is not None
    assert done.partition == SECOND
    assert manager.clean_filthiest(now_ms=START_MS) is None
    # The failed pass has written where it began.
    assert storage.read(CLEANER_FILE) == b"0\n2\ntopic 0 0\ntopic 1 2\n"


def test_a_map_that_is_too_small_makes_the_estimate_one_of_a_part() -> None:
    written = Written.empty()
    written.append(*[(b"k%d" % number, b"v") for number in range(10)] * 2)
    written.roll()
    whole, part = (
        estimate_compaction([source_of(written.log.segments[0])], now_ms=written.now_ms, map_slot_count=slot_count)
        for slot_count in (100, 6)
    )
    assert (whole.is_complete, whole.stats.records_written) == (True, 10)
    assert (part.is_complete, part.distinct_key_count, part.stats.records_written) == (False, 5, 20)


@given(st.lists(st.one_of(appends, transactions, rolls, sleeps), min_size=1, max_size=8), st.integers(0, 2))
@settings(max_examples=15)
def test_an_estimate_is_what_a_pass_writes_but_for_the_empty_batches(steps: list[Step], pass_count: int) -> None:
    written = Written.empty()
    for step in steps:
        step(written)
    for producer in (21, 22):
        written.append((b"a", b"end"), producer=producer, transactional=True)
        written.end_transaction(producer, ControlType.COMMIT)
    written.roll()
    for _ in range(pass_count):
        written.clean()
        written.sleep(RETENTION_MS)
    segments = written.log.segments[:-1]
    aborted = [entry for segment in segments for entry in segment.txn_index.entries()]
    estimate = estimate_compaction(
        [source_of(segment) for segment in segments],
        now_ms=written.now_ms,
        aborted=aborted,
        delete_retention_ms=RETENTION_MS,
    )
    cleaned = written.clean()
    empty = [batch for one in written.log.segments for batch in one.batches() if batch.record_count == 0]
    assert estimate.stats.records_written == cleaned.stats.records_written
    assert estimate.stats.bytes_written == cleaned.stats.bytes_written - 61 * len(empty)
