"""The columns and kernels against the slow cleaner, which decodes every record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import UsageError
from broker.ids import Offset
from broker.units import DurationMs, TimeMs
from log.batches.batch_v2 import HEADER
from log.batches.build import BatchSpec, build_batch
from log.batches.in_buffer import batches_in
from log.codecs.compression import Codec
from log.compaction.fates import CleanedTransactions, Fates, LastOfProducer
from log.compaction.filter import FilteredBatches, TombstoneRule, filter_source, map_source
from log.compaction.offset_map import OffsetMap
from log.compaction.source import SourceLog
from log.errors import IllegalStateError
from log.record import Record
from log.strategies import Written, streams
from tests.log.compaction.test_offset_map import batches, columns
from tests.oracles.cleaner import SlowCleaner

RETENTION_MS: Final = 1_000
Case: TypeAlias = tuple[tuple[Written, ...], SlowCleaner]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a log file and a cleaner that knows its keys up to some offset."""
    written = draw(streams(count_max=6))
    keyed = [record for one in written if not one.spec.is_control for record in one.records]
    offsets = [record.offset for record in keyed]
    latest_offset = draw(st.sampled_from([-1, *offsets, *offsets[-1:] * 10]))
    mapped = [record for record in keyed if record.key is not None and record.offset <= latest_offset]
    latest = {record.key: record.offset for record in mapped if record.key is not None}
    for key in latest:
        if draw(st.booleans()):  # Written again, later.
            latest[key] = Offset(latest_offset)
    ids = sorted({one.spec.producer_id for one in written if one.spec.producer_id >= 0})
    return written, SlowCleaner(
        latest=latest,
        latest_offset=latest_offset,
        now_ms=draw(st.integers(0, 2**53)),
        delete_retention_ms=RETENTION_MS,
        end_offset=draw(st.sampled_from([-1, *(one.records[-1].offset + 1 for one in written)])),
        keeps_legacy_tombstones=draw(st.booleans()),
        producers={one: draw(lasts(written)) for one in ids if draw(st.booleans())},
    )


def lasts(written: Sequence[Written]) -> st.SearchStrategy[LastOfProducer]:
    ends = [one.records[-1].offset for one in written]
    epochs = [one.spec.producer_epoch for one in written]
    return st.builds(LastOfProducer, st.none() | st.sampled_from(ends), st.sampled_from(epochs))


def filtered(data: bytes, slow: SlowCleaner) -> list[FilteredBatches]:
    source = SourceLog(memoryview(data))
    offset_map = OffsetMap(1_000)
    for key, offset in slow.latest.items():
        row = batches([1], first_offset=offset)
        assert offset_map.put(columns([key], offset), row, Offset(0))
    offset_map.move_to(Offset(slow.latest_offset))
    fates = Fates(slow.end_offset, TimeMs(slow.now_ms))
    fates.producers = slow.producers
    fates.transactions.add_aborted(slow.aborted)
    rule = TombstoneRule.of_pass(TimeMs(slow.now_ms), DurationMs(slow.delete_retention_ms))
    # The slow cleaner is that before Kafka 4.0: old messages stay in their own magic.
    rule = attrs.evolve(rule, keeps_legacy_tombstones=slow.keeps_legacy_tombstones, upgrades_messages=False)
    return list(filter_source(source, fates, offset_map, rule))


@given(cases())
@settings(max_examples=15)
def test_what_is_left_of_each_batch_is_what_the_slow_cleaner_leaves(
    case: tuple[tuple[Written, ...], SlowCleaner],
) -> None:
    written, slow = case
    data = b"".join(one.data for one in written)
    try:
        expected = list(slow.pieces(data))
    except UsageError:  # An older message would have to be left empty.
        with pytest.raises(IllegalStateError):
            filtered(data, slow)
        return
    chunks = filtered(data, slow)
    assert [bytes(piece) for chunk in chunks for piece in chunk.pieces] == expected
    assert [size for chunk in chunks for size in chunk.size_bytes.tolist()] == [len(piece) for piece in expected]


@given(cases())
@settings(max_examples=15)
def test_the_indexes_receive_what_is_in_the_batches_that_are_left(
    case: tuple[tuple[Written, ...], SlowCleaner],
) -> None:
    written, slow = case
    data = b"".join(one.data for one in written)
    try:
        chunks = filtered(data, slow)
    except IllegalStateError:
        return
    for chunk in chunks:
        for row, piece in enumerate(chunk.pieces):
            if len(piece) == 0:
                assert (chunk.max_offset[row], chunk.max_timestamp[row]) == (-1, -1)
                continue
            batch = next(batches_in(piece))
            assert chunk.max_timestamp[row] == batch.max_timestamp
            is_built = batch.record_count and bytes(piece) not in data
            expected = batch.records()[-1].offset if is_built else batch.last_offset
            assert chunk.max_offset[row] == expected


def test_the_records_of_a_batch_that_is_superseded_as_a_whole_are_not_unpacked() -> None:
    specs = [BatchSpec(base_offset=Offset(offset), codec=Codec.LZ4) for offset in (0, 1)]
    old, new = (build_batch(spec, [Record(spec.base_offset, TimeMs(0), b"k", b"v")]) for spec in specs)
    offset_map = OffsetMap(1_000)
    assert map_source(offset_map, SourceLog(memoryview(old + new)), CleanedTransactions())
    unreadable = old[: HEADER.size] + bytes(len(old) - HEADER.size)
    fates = Fates(-1, TimeMs(0))
    rule = TombstoneRule.of_pass(TimeMs(0), DurationMs(RETENTION_MS))
    (left,) = filter_source(SourceLog(memoryview(unreadable + new)), fates, offset_map, rule)
    assert [bytes(piece) for piece in left.pieces] == [b"", new]
    assert (left.records_read, left.records_kept) == (2, 1)
