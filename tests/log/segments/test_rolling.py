"""When a segment is full: each comparison at its edge."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.ids import Offset
from broker.units import DurationMs, SizeBytes, TimeMs
from log.batches.record_columns import BatchRun
from log.log_config import LogConfig
from log.segments.rolling import PendingAppend, count_before_roll, fits_relative, new_base_offset, should_roll


@attrs.frozen
class Fill:
    base_offset: Offset = attrs.field(default=Offset(10))
    size_bytes: SizeBytes = attrs.field(default=SizeBytes(900))
    is_index_full: bool = False
    entry_room: int = 100
    first_timestamp_ms: TimeMs = attrs.field(default=TimeMs(5000))
    created_ms: TimeMs = attrs.field(default=TimeMs(0))
    jitter_ms: DurationMs = attrs.field(default=DurationMs(0))


CONFIG = LogConfig.parse({"segment.bytes": 1000, "segment.ms": 100})


def rolls(fill: Fill, *, size: int = 100, timestamp: int = 5000, last: int = 20, now: int = 0) -> bool:
    return should_roll(fill, PendingAppend(SizeBytes(size), TimeMs(timestamp), Offset(last), TimeMs(now)), CONFIG)


@pytest.mark.parametrize(
    ("fill", "pending", "is_rolled"),
    [
        (Fill(), {"size": 100}, False),
        (Fill(), {"size": 101}, True),
        (Fill(), {"timestamp": 5100, "now": 10**9}, False),  # Age is counted in the records' time,
        (Fill(), {"timestamp": 5101}, True),
        (Fill(first_timestamp_ms=TimeMs(-1)), {"timestamp": -1, "now": 100}, False),  # without one from the creation,
        (Fill(first_timestamp_ms=TimeMs(-1)), {"timestamp": -1, "now": 101}, True),
        (Fill(jitter_ms=DurationMs(30)), {"timestamp": 5070}, False),  # less the jitter,
        (Fill(jitter_ms=DurationMs(30)), {"timestamp": 5071}, True),
        (Fill(size_bytes=SizeBytes(0)), {"timestamp": 10**12}, False),  # and never where the segment is empty.
        (Fill(is_index_full=True), {"size": 1}, True),
    ],
)
def test_a_segment_is_full_beyond_each_limit(fill: Fill, pending: dict[str, int], is_rolled: bool) -> None:
    assert rolls(fill, **pending) is is_rolled


@pytest.mark.parametrize(("last", "fits"), [(9, False), (10, True), (10 + 2**31 - 1, True), (10 + 2**31, False)])
def test_offsets_within_31_bits_of_the_base_fit(last: int, fits: bool) -> None:
    assert fits_relative(Offset(10), Offset(last)) is fits
    assert rolls(Fill(), size=1, last=last) is not fits


def test_a_compacted_log_rolls_in_time_for_its_lag() -> None:
    compacted = LogConfig.parse({"cleanup.policy": "compact", "segment.ms": 100, "max.compaction.lag.ms": 40})
    assert compacted.segment_ms_max == 40
    assert LogConfig.parse({"segment.ms": 100, "max.compaction.lag.ms": 40}).segment_ms_max == 100


def test_the_next_base_is_the_first_offset_or_the_least_that_can_hold_the_last() -> None:
    assert new_base_offset(Offset(7), Offset(9)) == 7
    assert new_base_offset(None, Offset(2**31 + 5)) == 6


TIMES = st.sampled_from((-1, 4990, 5000, 5099, 5100, 5101, 5110))
FILLS = st.builds(
    Fill,
    size_bytes=st.sampled_from([SizeBytes(0), SizeBytes(700)]),
    entry_room=st.integers(-1, 5),
    first_timestamp_ms=TIMES.map(TimeMs),
    created_ms=st.sampled_from([TimeMs(5000), TimeMs(5100)]),
    jitter_ms=st.sampled_from([DurationMs(0), DurationMs(1)]),
)
LAST_OFFSETS = st.sampled_from((9, 10, 11, 12, 10 + 2**31 - 1, 10 + 2**31))


@given(
    FILLS,
    st.lists(st.tuples(st.sampled_from((50, 100, 101)), TIMES, LAST_OFFSETS), min_size=1, max_size=8),
    st.sampled_from((5100, 5101, 5201)),
)
def test_as_many_batches_are_counted_as_go_in_one_after_the_other(
    fill: Fill, batches: list[tuple[int, int, int]], now: int
) -> None:
    sizes, times, lasts = np.array(batches, np.int64).T
    run = BatchRun(memoryview(b""), np.cumsum(sizes), np.sort(lasts), times)
    counted = count_before_roll(fill, run, CONFIG, TimeMs(now))
    count, filled = 0, fill
    for size, timestamp, last in zip(sizes.tolist(), times.tolist(), np.sort(lasts).tolist(), strict=True):
        if count >= fill.entry_room or rolls(filled, size=size, timestamp=timestamp, last=last, now=now):
            break
        first_ms = filled.first_timestamp_ms if filled.size_bytes else TimeMs(timestamp)
        filled = attrs.evolve(filled, size_bytes=SizeBytes(filled.size_bytes + size), first_timestamp_ms=first_ms)
        count += 1
    # An empty segment that was made long ago, and gets batches without times, is asked again for the first of them.
    is_old = fill.size_bytes == 0 and times[0] < 0 and now - fill.created_ms > 100 - fill.jitter_ms
    assert counted == (0 if is_old else count)
