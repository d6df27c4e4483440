"""Where a read begins and ends: at its limit, behind it, and in a segment after the limit's."""

from __future__ import annotations

import pytest

from broker.ids import Offset
from log.errors import OffsetOutOfRangeError
from log.partition.partition_log import PartitionLog
from log.partition.reading import Isolation, OffsetPlace, ReadRequest, read_log
from tests.log.made import EPOCH, NOW, batch, config, opened


def of_batches(count: int, per_segment: int) -> PartitionLog:
    """A log of equal batches of one record, nothing committed."""
    size = len(batch())
    log = opened(settings=config(segment_bytes=per_segment * size))
    for _ in range(count):
        log.append_as_leader(batch(), leader_epoch=EPOCH, now_ms=NOW)
    return log


def test_an_empty_read_at_or_behind_its_limit_says_where_its_offset_lies() -> None:
    log, size = of_batches(5, per_segment=3), len(batch())
    log.update_high_watermark(Offset(2))
    for start in (2, 3, 4, 5):
        found = log.read(Offset(start), 1000, isolation=Isolation.HIGH_WATERMARK)
        assert bytes(found.records) == b""
        assert found.start == OffsetPlace(Offset(start), Offset(start // 3 * 3), start % 3 * size), start


def test_nothing_of_a_segment_after_that_of_the_limit_is_read() -> None:
    log, size = of_batches(6, per_segment=3), len(batch())
    # What compaction leaves: the limit lies behind the last batch of its segment.
    limit = OffsetPlace(Offset(3), Offset(0), 3 * size)
    segments = log.local.segments
    assert [each.base_offset for each in segments.all] == [0, 3]
    request = ReadRequest(Offset(2), 10 * size, min_one_message=True, with_aborted=False)
    assert len(read_log(segments, request, limit, log.end_place).records) == size
    log.local.segments.all[0].truncate_to(Offset(2), now_ms=NOW)
    assert bytes(read_log(segments, request, limit, log.end_place).records) == b""


@pytest.mark.parametrize("start", [-1, 6])
def test_an_offset_outside_of_the_log_is_refused_with_what_the_log_has(start: int) -> None:
    with pytest.raises(OffsetOutOfRangeError, match=f"offset {start} "):
        of_batches(5, per_segment=3).read(Offset(start), 1000, isolation=Isolation.LOG_END)
