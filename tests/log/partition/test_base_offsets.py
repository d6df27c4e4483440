"""The last stable offset and the high watermark inside a batch: where Kafka of each release puts them.

What UnifiedLog of 4.3.1 answered for these calls is in the comments; before 4.0 an offset stays as it was asked for.
"""

from __future__ import annotations

import attrs
import pytest

from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.releases import NEWEST, Release
from log.partition.partition_log import PartitionLog
from log.partition.reading import Isolation
from log.partition.recovery import LastShutdown
from tests.log.made import EPOCH, NOW, batch, config, opened

IDS = {"producer_id": ProducerId(7), "producer_epoch": ProducerEpoch(0), "base_sequence": 0}
RELEASES = (Release("3.9"), Release("4.0"), NEWEST)


def log_of(release: Release, *sets: bytes) -> PartitionLog:
    """A log that starts at 0 and is replicated up to its end, segments of one size."""
    log = opened(settings=attrs.evolve(config(segment_bytes=100_000), release=release))
    for each in sets:
        log.append_as_leader(each, leader_epoch=EPOCH, now_ms=NOW)
    log.update_high_watermark(log.log_end_offset)
    return log


@pytest.mark.parametrize("release", RELEASES)
def test_a_log_start_inside_the_batch_that_opened_a_transaction(release: Release) -> None:
    log = log_of(release, batch(2), batch(8, is_transactional=True, **IDS))
    assert log.last_stable_offset == 2
    log.increment_log_start_offset(Offset(7))
    assert log.last_stable_offset == (7 if release < Release("4.0") else 2)
    assert log.high_watermark == 10
    log.check_invariants()


@pytest.mark.parametrize("release", RELEASES)
def test_a_consumer_s_read_moves_a_high_watermark_inside_a_batch_to_its_begin(release: Release) -> None:
    log = log_of(release, batch(2), batch(8), batch(3))
    assert log.update_high_watermark(Offset(7)) == 7
    assert log.high_watermark == 7
    log.read(Offset(0), 1, isolation=Isolation.LOG_END)
    assert log.high_watermark == 7
    log.read(Offset(0), 1, isolation=Isolation.HIGH_WATERMARK)
    assert log.high_watermark == (7 if release < Release("4.0") else 2)
    log.check_invariants()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("is_cut", [True, False])
def test_a_high_watermark_at_the_end_of_the_log_stays_there_though_the_next_batch_leaves_a_gap(
    release: Release, is_cut: bool
) -> None:
    """UnifiedLog.updateHighWatermark and truncateTo keep the place of the log's end: nothing is looked up for it."""
    log = log_of(release, batch(2), batch(2))
    if is_cut:
        log.update_high_watermark(Offset(2))
        log.truncate_to(Offset(2), now_ms=NOW)
    end_offset = log.log_end_offset
    assert log.high_watermark == end_offset
    log.append_as_follower(batch(3, base_offset=9, partition_leader_epoch=EPOCH), now_ms=NOW)
    log.read(Offset(0), 1000, isolation=Isolation.HIGH_WATERMARK)
    assert log.high_watermark == end_offset


@pytest.mark.parametrize("release", RELEASES)
def test_a_log_opened_at_a_start_inside_an_open_transaction_is_stable_up_to_where_it_was(release: Release) -> None:
    log = log_of(release, batch(2), batch(8, is_transactional=True, **IDS))
    log.increment_log_start_offset(Offset(7))
    stable_offset = log.last_stable_offset
    log.close(now_ms=NOW)
    last = LastShutdown(log_start_offset=Offset(7), recovery_point=log.log_end_offset)
    again = opened(log.storage, log.config, last_shutdown=last)
    assert (again.log_start_offset, again.high_watermark, again.last_stable_offset) == (7, 7, stable_offset)


def test_what_is_looked_for_at_the_end_of_a_log_opens_no_index_of_its_empty_segment() -> None:
    """LocalLog.read answers with the place of the end at once."""
    log = log_of(NEWEST, batch(2, is_transactional=True, **IDS))
    log.roll(now_ms=NOW)
    before = log.storage.list(log.directory)
    for isolation in Isolation:
        assert bytes(log.read(Offset(2), 100, isolation=isolation).records) == b""
    log.increment_log_start_offset(Offset(2))
    assert log.last_stable_offset == 2
    assert log.storage.list(log.directory) == before
