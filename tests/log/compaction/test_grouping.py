"""Which segments are rewritten into one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from broker.ids import Offset
from log.compaction.cleaner import group_segments
from tests.log.compaction.logs import config_of

INT32_MAX = 2**31 - 1


def segment(base_offset: int, size: int, offset_index: int = 0, time_index: int = 0) -> Any:
    return SimpleNamespace(
        base_offset=base_offset,
        size_bytes=size,
        offset_index=SimpleNamespace(size_bytes=offset_index),
        time_index=SimpleNamespace(size_bytes=time_index),
    )


def groups(segments: Sequence[Any], end_offset: int = 10_000, size: int = 700, index: int = 100) -> list[list[int]]:
    config = config_of(segment_bytes=size, segment_index_bytes=index)
    found = group_segments(segments, Offset(end_offset), config)
    return [[one.base_offset for one in group] for group in found]


def test_the_last_offset_is_taken_to_be_below_the_next_base() -> None:
    far = INT32_MAX + 1
    assert groups([segment(0, 1), segment(10, 1), segment(far, 1)], end_offset=far + 1) == [[0, 10], [far]]
    assert groups([segment(0, 1), segment(10, 1), segment(far + 1, 1)], end_offset=far + 2) == [[0], [10, far + 1]]


def test_the_last_segment_ends_where_cleaning_ends() -> None:
    assert groups([segment(0, 1), segment(10, 1)], end_offset=INT32_MAX + 1) == [[0, 10]]
    assert groups([segment(0, 1), segment(10, 1)], end_offset=INT32_MAX + 2) == [[0], [10]]


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60), st.integers(1, 2**30)), min_size=1, max_size=12))
def test_groups_are_consecutive_fit_and_could_not_be_larger(drawn: list[tuple[int, int, int]]) -> None:
    segments, base = [], 0
    for size, index, step in drawn:
        segments.append(segment(base, size, index, index))
        base += step
    found = group_segments(segments, Offset(base), config_of(segment_bytes=700, segment_index_bytes=100))
    assert [one for group in found for one in group] == segments
    ends = [*(one.base_offset for one in segments[1:]), base]
    end_of = {one.base_offset: end for one, end in zip(segments, ends, strict=True)}

    def fits(group: Sequence[Any]) -> bool:
        in_reach = group[-1].size_bytes == 0 or end_of[group[-1].base_offset] - 1 - group[0].base_offset <= INT32_MAX
        sizes = sum(one.size_bytes for one in group), sum(one.offset_index.size_bytes for one in group)
        return in_reach and sizes[0] <= 700 and sizes[1] <= 100

    assert all(len(group) == 1 or fits(group) for group in found)
    for group, following in pairwise(found):
        assert not fits([*group, following[0]])
