"""Decide what one voter of the KRaft quorum does: votes, elections, fetches and the high watermark.

Epoch, vote and log are on disk; the leader's id and the others' log ends are not. A voter votes once in an epoch and
only for a log that is not behind its own. A leader commits nothing before a record of its own epoch is on a majority: a
record of an earlier epoch may be on a majority and yet be overwritten.

Source: Kafka raft KafkaRaftClient.handleVoteRequest, LeaderState.maybeUpdateHighWatermark and ValidOffsetAndEpoch,
4.3.1; KIP-595, KIP-853.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from broker.ids import Offset
from replication.explore.tiny_log import Record, epochs_of
from replication.rules.epochs import UNDEFINED_END, end_offset_for, latest_epoch
from replication.rules.partition import LogState
from replication.rules.switches import CURRENT
from replication.rules.truncation import cut_for

NOBODY: Final = -1
LEADER_CHANGE: Final = -1
"""The number of the LeaderChange record, the first record of a new leader."""


class Voter(NamedTuple):
    """Hold one voter: `votes` are a candidate's votes, `ends` the other voters' log ends as a leader knows them.

    `is_known` says that the voter's directory id is in the voter set: a voter is an id and a directory id (KIP-853), so
    a voter that has lost its disk no longer counts.
    """

    epoch: int = 0
    voted_for: int = NOBODY
    leader: int = NOBODY
    votes: tuple[int, ...] = ()
    log: tuple[Record, ...] = ()
    high_watermark: int = 0
    ends: tuple[int, ...] = ()
    is_known: bool = True


def with_epoch(voter: Voter, epoch: int) -> Voter:
    """Return a voter after it learned a later epoch: without a leader, and without a vote in it."""
    assert epoch >= voter.epoch, (epoch, voter)
    if epoch == voter.epoch:
        return voter
    return Voter(epoch, log=voter.log, high_watermark=voter.high_watermark, is_known=voter.is_known)


def grants_vote(voter: Voter, candidate: int, asking: Voter) -> bool:
    """Return whether a voter, in the candidate's epoch, votes for the candidate."""
    assert voter.epoch == asking.epoch, (voter, asking)
    if voter.leader != NOBODY or voter.voted_for not in (NOBODY, candidate):
        return False
    return _place(asking.log) >= _place(voter.log)


def has_majority(count: int, voter_count: int) -> bool:
    """Return whether `count` voters are more than half of all voters."""
    return count > voter_count // 2


def is_elected(candidate: Voter, voter_count: int) -> bool:
    """Return whether a candidate's votes are a majority."""
    return has_majority(len(candidate.votes), voter_count)


def committed_end(leader: int, state: Voter) -> int:
    """Return a leader's high watermark, from its own log end and the other voters' log ends."""
    ends = sorted((len(state.log) if voter == leader else end for voter, end in enumerate(state.ends)), reverse=True)
    reached = ends[len(ends) // 2]
    start = next(at for at, record in enumerate(state.log) if record.epoch == state.epoch)
    return max(state.high_watermark, reached) if reached > start else state.high_watermark


def fetched(voter: Voter, leader: Voter) -> Voter:
    """Return a follower after a fetch: with one more record, or truncated where its log diverges from the leader's."""
    log, source = _log_of(voter), _log_of(leader)
    last_epoch = latest_epoch(log.epochs)
    end = end_offset_for(source.epochs, last_epoch, source.end_offset, CURRENT)
    if log.epochs and (end == UNDEFINED_END or end.epoch < last_epoch or end.end_offset < log.end_offset):
        cut = cut_for(log, end, CURRENT).end_offset
        return voter._replace(log=voter.log[:cut], high_watermark=min(voter.high_watermark, cut))
    longer = leader.log[: len(voter.log) + 1]
    return voter._replace(log=longer, high_watermark=max(voter.high_watermark, min(leader.high_watermark, len(longer))))


def _place(log: tuple[Record, ...]) -> tuple[int, int]:
    return (log[-1].epoch if log else NOBODY, len(log))


def _log_of(voter: Voter) -> LogState:
    epochs = epochs_of(voter.log)
    return LogState(Offset(0), Offset(len(voter.log)), Offset(voter.high_watermark), epochs)
