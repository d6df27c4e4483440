"""The walk from an index entry to a batch: it passes what the reader of batches reads, and finds what that finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.ids import Offset
from broker.units import TimeMs
from log.batches.batch import RecordBatch
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.errors import CorruptBatchError
from log.record import Record
from log.segments.search import BatchPlace, first_ending_at_or_after
from log.strategies import Written, streams


def found(data: bytes, position: int, offset: int) -> BatchPlace | None:
    def batches_from(start: int) -> Iterator[RecordBatch]:
        return batches_in(data, start_position=start, source="x")

    return first_ending_at_or_after(memoryview(data), position, Offset(offset), batches_from)


def one(offset: int, magic: int) -> bytes:
    return build_batch(BatchSpec(Offset(offset), magic=magic), (Record(Offset(offset), TimeMs(1), b"k", b"v"),))


@given(streams(), st.integers(0, 50), st.data())
def test_it_is_the_first_batch_that_the_reader_finds(
    stream: tuple[Written, ...], cut: int, drawn: st.DataObject
) -> None:
    data = b"".join(written.data for written in stream)
    data = data[: max(len(data) - cut, 0)]  # A tail may be torn.
    batches = list(batches_in(data))
    last_offsets = [batch.last_offset for batch in batches]
    offset = drawn.draw(st.sampled_from([0, *last_offsets, *(each + 1 for each in last_offsets)]))
    position = drawn.draw(st.sampled_from([0, *(batch.position for batch in batches)]))
    expected = next((each for each in batches if each.position >= position and each.last_offset >= offset), None)
    place = None if expected is None else BatchPlace(expected.last_offset, expected.position, expected.size_bytes)
    assert found(data, position, offset) == place


def test_a_size_that_no_batch_can_have_is_told_with_its_place() -> None:
    data = one(0, 2) + one(1, 2)[:8] + bytes(60)
    with pytest.raises(CorruptBatchError, match=rf"^x at byte {len(one(0, 2))}: Record size 0 is less than"):
        found(data, 0, 1)
