"""A segment's files: when each is made, and that they are renamed, dated and removed together."""

from __future__ import annotations

import pytest

from broker.ids import Offset, ProducerId
from broker.units import TimeMs
from log.log_config import LogConfig
from log.segments.file_names import DELETED, LOG, OFFSET_INDEX, SWAP, TIME_INDEX
from log.segments.segment import Segment
from log.segments.txn_index import AbortedTransaction
from tests.log.made import DIRECTORY, NOW, batch, config, memory, put, segment
from tests.support.crash import lost_tail
from tests.support.disk_image import image_of
from tests.support.recorded import RecordedStorage


def test_indexes_are_made_when_they_are_first_asked_for() -> None:
    made = segment()
    assert made.place.storage.list(DIRECTORY) == ("00000000000000000000.log",)
    assert made.is_index_full is False
    assert len(made.place.storage.list(DIRECTORY)) == 3


def test_the_index_that_is_full_first_counts_and_a_place_is_kept_for_the_last_time() -> None:
    made = segment(config(segment_index_bytes=48))  # Room for six offsets or four times.
    room = []
    for offset in range(4):
        put(made, batch(base_offset=offset, timestamp=NOW + offset))
        room.append((made.entry_room, made.is_index_full))
    # The first append has no entry.
    assert room == [(3, False), (2, False), (1, False), (0, True)]


def test_all_files_change_their_suffix_together() -> None:
    made = segment()
    put(made, batch(), batch(base_offset=1))
    assert not made.is_index_full  # The indexes are made now.
    made.change_suffix(SWAP)
    assert {name[20:] for name in made.place.storage.list(DIRECTORY)} == {".index.swap", ".log.swap", ".timeindex.swap"}
    made.change_suffix(DELETED)
    made.delete_files()
    assert made.place.storage.list(DIRECTORY) == ()


def test_index_files_that_nobody_opened_change_their_suffix_too() -> None:
    made = segment()
    put(made, batch(), batch(base_offset=1))
    made.close()
    again = Segment(made.place, LogConfig(), now_ms=NOW)
    again.change_suffix(DELETED)
    names = {name[20:] for name in again.place.storage.list(DIRECTORY)}
    assert names == {".index.deleted", ".log.deleted", ".timeindex.deleted"}


def test_a_flush_makes_all_four_files_durable() -> None:
    storage = RecordedStorage(memory())
    made = segment(storage=storage)
    put(made, batch(), batch(base_offset=1))
    made.txn_index.append(AbortedTransaction(ProducerId(7), Offset(0), Offset(1), Offset(2)))
    storage.sync_directory(DIRECTORY)
    made.flush()
    assert len(storage.list(DIRECTORY)) == 4
    assert lost_tail(storage.recording(), "*").files == image_of(storage).files


def test_all_files_are_dated_together() -> None:
    made = segment()
    put(made, batch(), batch(base_offset=1))
    made.set_modified_ms(TimeMs(7))
    storage = made.place.storage
    assert [storage.modified_ms(made.place.path(kind)) for kind in (LOG, OFFSET_INDEX, TIME_INDEX)] == [7, 7, 7]
    assert made.modified_ms == 7


def test_a_segment_in_use_is_not_deleted() -> None:
    with pytest.raises(AssertionError):
        segment().delete_files()
