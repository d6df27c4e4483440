"""S1 and S2 over random programs: what a cleaned log says is what a dict of its records says.

A program writes batches of few keys (plain, idempotent, transactional, all codecs, tombstones), rolls, lets time pass
and cleans with maps of all sizes, many passes. After each pass the log is compared with the list of what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.ids import Offset
from log.codecs.compression import Codec
from log.compaction import CleanerOptions, clean, log_to_clean
from log.record import ControlType, Record
from tests.log.compaction.logs import RETENTION_MS, Pair, Written, bytes_of, data_of

Step: TypeAlias = Callable[[Written], None]

TRANSACTIONAL: Final = (21, 22)
pairs = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d", b""]), st.none() | st.sampled_from([b"", b"v", b"w" * 30])),
    min_size=1,
    max_size=4,
)
codecs = st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY])


def append(drawn: Sequence[Pair], producer: int, codec: Codec) -> Step:
    return lambda written: written.append(*drawn, producer=producer, codec=codec)


def transact(drawn: Sequence[Pair], producer: int, kind: ControlType | None) -> Step:
    """Write to a transaction of the producer, and end it unless `kind` is None."""

    def step(written: Written) -> None:
        written.append(*drawn, producer=producer, transactional=True)
        if kind is not None:
            written.end_transaction(producer, kind)

    return step


appends = st.builds(append, pairs, st.sampled_from([-1, -1, 11]), codecs)
transactions = st.builds(
    transact, pairs, st.sampled_from(TRANSACTIONAL), st.sampled_from([None, ControlType.COMMIT, ControlType.ABORT])
)
rolls: st.SearchStrategy[Step] = st.just(Written.roll)
sleeps = st.sampled_from([1, RETENTION_MS, 60_000]).map(lambda ms: lambda written: written.sleep(ms))
writes = st.lists(st.one_of(appends, appends, transactions, rolls, sleeps), min_size=1, max_size=10)
passes = st.lists(st.tuples(writes, st.sampled_from([3, 4, 1_000])), min_size=1, max_size=4)


@attrs.define
class Passes:
    """A log that is cleaned now and then, and what was there after the last pass."""

    written: Written
    checkpoint: Offset | None = None
    tombstones_ms: dict[int, int] = attrs.field(factory=dict)
    """Offset of a tombstone to the time from which a pass may drop it."""

    def run(self, slot_count: int) -> None:
        """Clean once if there is anything dirty, and compare."""
        written = self.written
        written.roll()
        target = log_to_clean(written.log, self.checkpoint, now_ms=written.now_ms)
        if not target.is_due:
            return
        before = data_of(written.log)
        untouched = bytes_of(written.log, written.log.local.segments.between(target.end_offset))
        cleaned = clean(target, now_ms=written.now_ms, options=CleanerOptions(map_slot_count=slot_count))
        assert target.first_dirty_offset < cleaned.end_offset <= target.end_offset
        assert bytes_of(written.log, written.log.local.segments.between(target.end_offset)) == untouched
        self.check(before, cleaned.end_offset)
        self.checkpoint = cleaned.end_offset
        written.log.check_invariants()

    def check(self, before: Sequence[Record], end_offset: int) -> None:
        """S1: the survivors are what was there less what may go, in order, unchanged."""
        now_ms, after = self.written.now_ms, data_of(self.written.log)
        committed = [record for record in self.written.records if record.offset not in self.written.aborted]
        latest = {record.key: record.offset for record in committed if record.offset < end_offset}
        gone = {record.offset for record in before} - {record.offset for record in after}
        assert after == [record for record in before if record.offset not in gone]
        for record in before:
            is_superseded = record.offset in self.written.aborted or record.offset < latest.get(record.key, -1)
            is_over = record.value is None and now_ms >= self.tombstones_ms.get(record.offset, now_ms + 1)
            if record.offset in gone:
                # Beyond the map only what was aborted goes.
                assert is_superseded or is_over
                assert record.offset < end_offset or record.offset in self.written.aborted
            elif record.offset < end_offset:
                assert not is_superseded
        self.note_tombstones(end_offset)

    def note_tombstones(self, end_offset: int) -> None:
        """Note until when the tombstones stay, and that all below the end of the pass know."""
        for segment in self.written.log.segments:
            for batch in segment.batches():
                for record in batch.records():
                    if record.value is not None:
                        continue
                    horizon_ms = batch.delete_horizon_ms
                    assert horizon_ms is not None or record.offset >= end_offset
                    if horizon_ms is not None:
                        assert horizon_ms <= self.written.now_ms + RETENTION_MS
                        assert self.tombstones_ms.setdefault(record.offset, horizon_ms) == horizon_ms


@given(passes)
@settings(max_examples=25)
def test_a_cleaned_log_holds_the_latest_committed_record_of_each_key(drawn: list[tuple[list[Step], int]]) -> None:
    cleaner = Passes(Written.empty(segment_bytes=400))
    for steps, slot_count in drawn:
        for step in steps:
            step(cleaner.written)
        cleaner.run(slot_count)


@given(st.lists(st.one_of(appends, appends, rolls, sleeps), min_size=1, max_size=10))
def test_cleaning_twice_is_cleaning_once(steps: list[Step]) -> None:
    written = Written.empty(segment_bytes=400)
    for step in steps:
        step(written)
    written.roll()
    if written.log.log_end_offset == 0:
        return
    first = written.clean()
    once = b"".join(data for _base, data in bytes_of(written.log))
    assert written.clean().end_offset == first.end_offset
    # Segments may join further, since they have become smaller; what is in them stays as it is.
    assert b"".join(data for _base, data in bytes_of(written.log)) == once
    assert not log_to_clean(written.log, first.end_offset, now_ms=written.now_ms).is_due


@pytest.mark.deep
@given(passes)
@settings(max_examples=30)
def test_a_cleaned_log_is_read_the_same_after_recovery(drawn: list[tuple[list[Step], int]]) -> None:
    cleaner = Passes(Written.empty(segment_bytes=400))
    for steps, slot_count in drawn:
        for step in steps:
            step(cleaner.written)
        cleaner.run(slot_count)
    written = cleaner.written
    written.log.flush(now_ms=written.now_ms)
    before = data_of(written.log), written.log.log_end_offset
    written.reopen(clean=False)
    assert (data_of(written.log), written.log.log_end_offset) == before
    for record in before[0]:
        found = written.log.read(record.offset, 1_000)
        assert found.records
