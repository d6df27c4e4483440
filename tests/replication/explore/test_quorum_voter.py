"""What one controller decides: votes, elections, what is committed, where logs part."""

from __future__ import annotations

import pytest

from replication.explore.quorum_model import (
    NOBODY,
    Voter,
    committed_end,
    fetched,
    grants_vote,
)
from replication.explore.tiny_log import Record

OLD, NEW = Record(0, 1), Record(1, 2)


def _in(epoch: int, *log: Record, voted_for: int = NOBODY, leader: int = NOBODY, high_watermark: int = 0) -> Voter:
    return Voter(epoch, voted_for, leader, log=log, high_watermark=high_watermark)


@pytest.mark.parametrize(
    ("own", "asking", "granted"),
    [
        ((), (), True),
        ((OLD,), (), False),
        ((OLD,), (OLD,), True),
        ((OLD, OLD), (OLD,), False),
        ((OLD, OLD), (NEW,), True),
        ((NEW,), (OLD, OLD), False),
    ],
)
def test_a_vote_goes_to_a_log_that_is_not_behind(
    own: tuple[Record, ...], asking: tuple[Record, ...], granted: bool
) -> None:
    assert grants_vote(_in(3, *own), 1, _in(3, *asking)) is granted


def test_a_voter_votes_once_in_an_epoch_and_not_where_somebody_leads() -> None:
    asking = _in(3)
    assert grants_vote(_in(3, voted_for=1), 1, asking)
    assert not grants_vote(_in(3, voted_for=2), 1, asking)
    assert not grants_vote(_in(3, leader=2), 1, asking)


@pytest.mark.parametrize(
    ("log", "ends", "committed"),
    [
        ((OLD, NEW), (0, 0, 0), 0),
        ((OLD, NEW), (0, 1, 0), 0),
        ((OLD, NEW), (0, 2, 0), 2),
        ((OLD, NEW, NEW), (0, 2, 3), 3),
        ((OLD, NEW, NEW), (0, 2, 0), 2),
    ],
)
def test_a_leader_commits_what_a_majority_has_once_that_is_of_its_own_epoch(
    log: tuple[Record, ...], ends: tuple[int, ...], committed: int
) -> None:
    assert committed_end(0, Voter(2, leader=0, log=log, ends=ends)) == committed


def test_a_fetch_brings_the_next_record_and_the_high_watermark() -> None:
    leader = Voter(2, leader=0, log=(OLD, NEW), high_watermark=2)
    assert fetched(_in(2), leader).log == (OLD,)
    assert fetched(_in(2), leader).high_watermark == 1
    assert fetched(_in(2, OLD), leader) == _in(2, OLD, NEW, high_watermark=2)


def test_a_log_that_parts_is_cut_where_it_does() -> None:
    leader = Voter(3, leader=0, log=(OLD, Record(5, 3)))
    other = _in(3, OLD, NEW, Record(2, 2))
    assert fetched(other, leader).log == (OLD,)
    assert fetched(_in(3, OLD, OLD, OLD), leader).log == (OLD,)
