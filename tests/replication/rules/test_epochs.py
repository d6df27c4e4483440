"""The epoch cache."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.ids import LeaderEpoch, Offset
from replication.rules.epochs import assigned, end_offset_for, latest_epoch, trimmed_at_end, trimmed_at_start
from replication.rules.partition import EpochEnd, LogState
from replication.rules.switches import CURRENT, rules_of
from tests.replication.builders import epochs, log

CACHE = epochs((1, 0), (3, 5))


def end(epoch: int, offset: int) -> EpochEnd:
    return EpochEnd(LeaderEpoch(epoch), Offset(offset))


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(-1, end(-1, -1)), (0, end(0, 0)), (1, end(1, 5)), (2, end(1, 5)), (3, end(3, 8)), (4, end(-1, -1))],
)
def test_where_an_epoch_ends(asked: int, answer: EpochEnd) -> None:
    assert end_offset_for(CACHE, LeaderEpoch(asked), Offset(8), CURRENT) == answer


def test_an_empty_cache_cannot_tell() -> None:
    assert end_offset_for((), LeaderEpoch(1), Offset(8), CURRENT) == end(-1, -1)


def test_before_2_1_a_log_that_began_later_could_not_tell() -> None:
    assert end_offset_for(CACHE, LeaderEpoch(0), Offset(8), rules_of("2.0")) == end(-1, -1)


@pytest.mark.parametrize(
    ("epoch", "start", "after"),
    [
        (4, 8, ((1, 0), (3, 5), (4, 8))),
        (3, 7, ((1, 0), (3, 5))),
        (3, 4, ((1, 0), (3, 4))),
        (2, 9, ((1, 0), (2, 9))),
        (4, 5, ((1, 0), (4, 5))),
        (4, 0, ((4, 0),)),
    ],
)
def test_what_is_put_in_drops_what_it_contradicts(epoch: int, start: int, after: tuple[tuple[int, int], ...]) -> None:
    assert assigned(CACHE, LeaderEpoch(epoch), Offset(start)) == epochs(*after)


@pytest.mark.parametrize(("at", "kept"), [(0, 0), (1, 1), (5, 1), (6, 2)])
def test_a_cut_drops_epochs_that_begin_there_or_later(at: int, kept: int) -> None:
    assert trimmed_at_end(CACHE, Offset(at)) == CACHE[:kept]


@pytest.mark.parametrize(
    ("at", "after"),
    [(0, ((1, 0), (3, 5))), (4, ((1, 4), (3, 5))), (5, ((3, 5),)), (7, ((3, 7),))],
)
def test_a_raised_start_moves_the_epoch_that_lies_there(at: int, after: tuple[tuple[int, int], ...]) -> None:
    assert trimmed_at_start(CACHE, Offset(at)) == epochs(*after)


def test_a_start_below_the_first_epoch_moves_nothing() -> None:
    later = epochs((3, 5))
    assert trimmed_at_start(later, Offset(4)) == later


def test_the_latest_epoch() -> None:
    assert (latest_epoch(CACHE), latest_epoch(())) == (3, -1)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_a_cache_always_rises_in_both_columns(puts: list[tuple[int, int]]) -> None:
    cache = epochs()
    for epoch, start in puts:
        cache = assigned(cache, LeaderEpoch(epoch), Offset(start))
        for earlier, later in itertools.pairwise(cache):
            assert earlier.epoch < later.epoch
            assert earlier.start_offset < later.start_offset
        assert cache[-1].epoch >= 0


@pytest.mark.parametrize(
    "wrong",
    [
        log(9, (1, 0), (1, 4)),
        log(9, (2, 0), (1, 4)),
        log(9, (1, 0), (2, 0)),
        log(9, (1, 5), (2, 4)),
        log(9, (1, 0), (2, 4), (2, 6)),
        log(9, (1, 0), start=2),
        log(9, (1, 0), (2, 10)),
        log(9, committed=10),
    ],
)
def test_a_log_whose_epochs_or_offsets_are_not_in_order_is_a_bug(wrong: LogState) -> None:
    log(9, (1, 0), (2, 4), (4, 9), committed=9).check_invariants()
    with pytest.raises(AssertionError):
        wrong.check_invariants()
