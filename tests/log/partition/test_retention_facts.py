"""Segments that retention deletes, against a plain list of them, with limits at, below and above what they have.

Source: UnifiedLog.deleteOldSegments and deletableSegments, as facts: segments before the log start, then those beyond
retention.bytes, then those older than retention.ms; each time the oldest ones, as long as they are replicated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs
from hypothesis import given

from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from log.partition.partition_log import PartitionLog
from tests.log.made import DIRECTORY, EPOCH, NOW, batch, config, memory, opened
from tests.support.drawing import DRAWS, Draws

_FAR_MS: Final = 60_000
"""How far the times of records lie apart at most: a day and more would be refused."""


@attrs.frozen
class Kept:
    """Hold a segment as the list knows it: the offsets that it covers, its bytes and its newest time."""

    base_offset: int
    end_offset: int
    size_bytes: int
    newest_ms: int


def _life_noticed(draws: Draws) -> str:
    log = opened(memory(), config(segment_bytes=300))
    kept = _grown(draws, log)
    policy = draws.one(("delete", "delete", "delete", "compact", "compact,delete"))
    sizes = [sum(each.size_bytes for each in kept[first:]) for first in range(len(kept) + 1)]
    size_limit = draws.one((-1, 0, 1, *(size + draws.number(-1, 1) for size in sizes)))
    age_limit = draws.one((-1, 0, 1, draws.number(0, _FAR_MS)))
    now_ms = max(NOW, draws.one(kept).newest_ms + age_limit + draws.number(-1, 1))
    log.config = config(
        segment_bytes=300, cleanup_policy=policy, retention_bytes=max(size_limit, -1), retention_ms=age_limit
    )
    ends = [each.end_offset for each in kept]
    high = log.update_high_watermark(Offset(max(0, draws.one((*ends, ends[-1])) + draws.one((-1, 0, 0, 1)))))
    start = draws.one((0, *(each.base_offset for each in kept), draws.number(0, high)))
    start = min(high, max(0, start + draws.number(-1, 1)))
    log.increment_log_start_offset(Offset(start))
    left = list(kept)
    _strip(left, high, lambda each: each is not kept[-1] and each.end_offset <= start)
    if "delete" in policy and size_limit >= 0:
        _strip(left, high, lambda each: sum(one.size_bytes for one in left) - each.size_bytes >= size_limit)
    if "delete" in policy and age_limit >= 0:
        _strip(left, high, lambda each: now_ms - each.newest_ms > age_limit)
    count = log.delete_old_segments(now_ms=TimeMs(now_ms))
    log.check_invariants()
    bases = [each.base_offset for each in left] or ends[-1:]
    seen = (count, [each.base_offset for each in log.segments], log.log_start_offset, log.log_end_offset)
    if seen != (len(kept) - len(left), bases, max(start, bases[0]), ends[-1]):
        return f"of {kept} in {DIRECTORY} with {log.config} up to {high} from {start} at {now_ms} there are {seen}"
    return ""


def _grown(draws: Draws, log: PartitionLog) -> list[Kept]:
    """Append to a log, now and then in a new segment, and return what it consists of; the last one may be empty."""
    kept = [Kept(0, 0, 0, NOW)]
    for _ in range(draws.number(1, 8)):
        last = kept[-1]
        if last.size_bytes and draws.is_one_in(3):
            log.roll(now_ms=NOW)
            last = Kept(last.end_offset, last.end_offset, 0, NOW)
            kept.append(last)
        data = batch(draws.number(1, 3), timestamp=NOW - draws.number(0, _FAR_MS), value=bytes(draws.number(0, 60)))
        info = log.append_as_leader(data, leader_epoch=LeaderEpoch(EPOCH), now_ms=NOW)
        newest_ms, end_offset = info.max_timestamp.timestamp, info.last_offset + 1
        if last.size_bytes + len(data) > log.config.segment_size_bytes:
            kept.append(Kept(info.first_offset, end_offset, len(data), newest_ms))
            continue
        newest_ms = max(newest_ms, last.newest_ms) if last.size_bytes else newest_ms
        kept[-1] = Kept(last.base_offset, end_offset, last.size_bytes + len(data), newest_ms)
    if draws.is_one_in(4):
        log.roll(now_ms=NOW)
        kept.append(Kept(kept[-1].end_offset, kept[-1].end_offset, 0, NOW))
    return kept


def _strip(left: list[Kept], high: int, goes: Callable[[Kept], bool]) -> None:
    """Take the oldest segments away, as far as they are replicated, hold anything, and `goes` says so."""
    while left and left[0].size_bytes and left[0].end_offset <= high and goes(left[0]):
        left.pop(0)


@given(draws=DRAWS)
def test_retention_deletes_what_the_list_says(draws: Draws) -> None:
    assert _life_noticed(draws) == ""
