"""Which log is cleaned next, and what is remembered of it."""

from __future__ import annotations

import pytest

from broker.clock import ManualClock
from broker.errors import CorruptDataError
from broker.ids import PartitionId, TopicPartition
from log.compaction import CleanerManager
from log.partition.partition_log import PartitionLog
from log.storage import MemoryStorage
from log.storage.checkpoints import CLEANER_FILE, write_offset_checkpoint
from log.storage.protocol import Storage
from tests.log.compaction.logs import START_MS, Written, config_of, pairs_of

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
