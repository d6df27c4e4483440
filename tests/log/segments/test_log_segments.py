"""Which segment may hold an offset, against a filter over all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.ids import Offset
from log.segments.log_segments import Segments
from tests.log.made import memory, segment

BASES = st.sets(st.integers(0, 40), min_size=1, max_size=6)


def collected(bases: set[int]) -> Segments:
    storage = memory()
    made = Segments()
    for base in sorted(bases, reverse=True):
        made.add(segment(base_offset=base, storage=storage))
    return made


@given(bases=BASES, offset=st.integers(0, 45))
def test_neighbours_are_those_of_a_sorted_list(bases: set[int], offset: int) -> None:
    segments = collected(bases)
    for found, expected in (
        (segments.floor(Offset(offset)), max((base for base in bases if base <= offset), default=None)),
        (segments.higher(Offset(offset)), min((base for base in bases if base > offset), default=None)),
    ):
        assert (found and found.base_offset) == expected
    assert (segments.first.base_offset, segments.active.base_offset) == (min(bases), max(bases))


@given(bases=BASES, start=st.integers(0, 45), size=st.integers(0, 45))
def test_a_range_begins_at_the_floor_and_ends_before_its_end(bases: set[int], start: int, size: int) -> None:
    floor = max((base for base in bases if base <= start), default=-1)
    expected = [base for base in sorted(bases) if floor <= base < start + size] if size else []
    found = collected(bases).between(Offset(start), Offset(start + size))
    assert [each.base_offset for each in found] == expected


def test_the_active_segment_is_the_last_after_every_change() -> None:
    segments = collected({0, 10, 20})
    segments.remove(Offset(20))
    assert segments.active.base_offset == 10
    segments.remove(Offset(99))
    assert [each.base_offset for each in segments] == [0, 10]
