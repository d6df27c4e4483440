"""From where to where a log is cleaned, and whether it is time."""

from __future__ import annotations

import math

import attrs
import pytest

from broker.ids import Offset
from log.compaction import LogToClean, filthiest, log_to_clean
from log.record import ControlType
from tests.log.compaction.logs import Written, config_of


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


def test_an_overdue_log_without_cleanable_bytes_is_not_due() -> None:
    written = three_segments(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=30, min_compaction_lag_ms=1_000)
    written.sleep(100)
    target = target_of(written)
    assert (target.is_overdue, target.cleanable_bytes, target.is_due) == (True, 0, False)


@pytest.mark.parametrize("checkpoint", [0, 4])
def test_a_checkpoint_outside_the_log_is_reset_to_its_start(checkpoint: int) -> None:
    written = three_segments()
    written.log.increment_log_start_offset(Offset(1))
    target = target_of(written, checkpoint)
    assert (target.first_dirty_offset, target.resets_checkpoint) == (1, True)


def test_a_log_without_bytes_is_never_due() -> None:
    target = target_of(Written.empty())
    assert math.isnan(target.cleanable_ratio)
    assert not target.is_due


def test_the_largest_ratio_goes_first_and_the_first_of_equals() -> None:
    dirty = target_of(three_segments())
    half = attrs.evolve(dirty, clean_bytes=dirty.cleanable_bytes)
    again = attrs.evolve(dirty)
    assert filthiest([half, dirty, again]) is dirty
    overdue = attrs.evolve(half, is_overdue=True)
    assert filthiest([overdue, dirty]) is dirty
    assert filthiest([]) is None
