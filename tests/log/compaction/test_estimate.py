"""What compaction would save, without changing a file."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from log.compaction import estimate_compaction
from log.compaction.cleaner import source_of
from log.record import ControlType
from tests.log.compaction.logs import RETENTION_MS, Written
from tests.log.compaction.test_properties import Step, appends, rolls, sleeps, transactions


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
