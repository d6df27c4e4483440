"""A segment's files: when each is made, and that they are renamed, dated and removed together."""

from __future__ import annotations

from broker.ids import Offset, ProducerId
from log.log_config import LogConfig
from log.segments.file_names import DELETED
from log.segments.segment import Segment
from log.segments.txn_index import AbortedTransaction
from tests.log.made import DIRECTORY, NOW, batch, config, memory, put, segment
from tests.support.crash import lost_tail
from tests.support.disk_image import image_of
from tests.support.recorded import RecordedStorage


def test_the_index_that_is_full_first_counts_and_a_place_is_kept_for_the_last_time() -> None:
    made = segment(config(segment_index_bytes=48))  # Room for six offsets or four times.
    room = []
    for offset in range(4):
        put(made, batch(base_offset=offset, timestamp=NOW + offset))
        room.append((made.entry_room, made.is_index_full))
    # The first append has no entry.
    assert room == [(3, False), (2, False), (1, False), (0, True)]


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
