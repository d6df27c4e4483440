"""Model 3: check that no committed metadata record is lost when voters of the KRaft quorum fail or lose disks.

Epoch, vote and log are on disk; the leader's id and the others' log ends are not. A request and its response are one
step; steps happen in any order. A leader that has not learned of a later epoch continues to lead.

Source: Vanlightly/kafka-tlaplus, kraft-kip-853 (823615e8, 2025-01), for the properties; Kafka raft
KafkaRaftClient.handleVoteRequest, LeaderState.maybeUpdateHighWatermark, ValidOffsetAndEpoch, 4.3.1; KIP-595, KIP-853,
KAFKA-14077.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from typing import Final, NamedTuple

import attrs

from broker.ids import Offset
from replication.explore.search import check_bounds
from replication.explore.tiny_log import Interned, Record, epochs_of
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


_BITS: Final = 32


class Violation(enum.Enum):
    """Name the violations that the search looks for."""

    TWO_LEADERS = enum.auto()
    """Two voters lead in the same epoch."""

    LOSS = enum.auto()
    """A leader lacks a record that was committed in its epoch or before."""


@attrs.frozen(kw_only=True)
class QuorumScope:
    """Bound the model, and choose the violations that the search looks for.

    `directory_ids` says whether a voter is identified by its directory id too (KIP-853).
    """

    voters: int = 3
    epochs: int = 2
    records: int = 1
    restarts: int = 0
    lost_disks: int = 1
    directory_ids: bool = True
    violations: tuple[Violation, ...] = tuple(Violation)

    def __attrs_post_init__(self) -> None:
        check_bounds(self, voters=(1, 5), epochs=(1, 6), records=(0, 4), restarts=(0, 4), lost_disks=(0, 4))


class QuorumState(NamedTuple):
    """Hold the voters, the records ever committed, and the events that may still happen."""

    voters: tuple[Voter, ...]
    committed: tuple[Record, ...]
    records_left: int
    restarts_left: int
    losses_left: int

    def with_voter(self, number: int, voter: Voter) -> QuorumState:
        """Return the state with one voter changed."""
        return self._replace(voters=(*self.voters[:number], voter, *self.voters[number + 1 :]))


class QuorumModel:
    """Model a quorum within a scope; a state is the number of a `QuorumState`."""

    def __init__(self, scope: QuorumScope) -> None:
        self.scope = scope
        self._quorums: Interned[QuorumState] = Interned(_BITS)
        self._orders = tuple(permutations(range(scope.voters)))
        self._renamed = cache(_renamed)

    def initial(self) -> int:
        """Return the state of empty logs, without a leader."""
        scope = self.scope
        quorum = QuorumState((Voter(),) * scope.voters, (), scope.records, scope.restarts, scope.lost_disks)
        return self._quorums.number(quorum)

    def steps(self, state: int) -> list[tuple[str, int]]:
        """Return every step from a state: a description of the step, and the next state."""
        quorum = self._quorums.values[state]
        found: list[tuple[str, QuorumState]] = []
        for number in range(self.scope.voters):
            found.extend(self._alone(quorum, number))
            for other in range(self.scope.voters):
                if other != number:
                    found.extend(self._between(quorum, number, other))
        return [(words, self._quorums.number(after)) for words, after in found if after != quorum]

    def renamed(self, state: int) -> tuple[int, int]:
        """Return the least of the states that differ in the voters' names alone, and their number."""
        quorum = self._quorums.values[state]
        named = {self._named(quorum, order) for order in self._orders}
        least = quorum._replace(voters=min(named))
        return self._quorums.number(least), len(named)

    def broken(self, state: int) -> str | None:
        """Return a description of the violation in a state, None if there is none."""
        quorum = self._quorums.values[state]
        leaders = [number for number, voter in enumerate(quorum.voters) if voter.leader == number]
        epochs = [quorum.voters[number].epoch for number in leaders]
        if Violation.TWO_LEADERS in self.scope.violations and len(set(epochs)) != len(epochs):
            return f"voters {leaders} lead in the same epoch"
        if Violation.LOSS not in self.scope.violations or not quorum.committed:
            return None
        for number in leaders:
            voter, committed = quorum.voters[number], quorum.committed
            if voter.epoch >= committed[-1].epoch and voter.log[: len(committed)] != committed:
                return f"voter {number} leads epoch {voter.epoch} without [{_shown(committed)}], which is committed"
        return None

    def state_text(self, state: int) -> str:
        """Return a state on one line."""
        return "; ".join(
            f"{number}: [{_shown(voter.log)}] committed {voter.high_watermark} epoch {voter.epoch}"
            for number, voter in enumerate(self._quorums.values[state].voters)
        )

    def _named(self, quorum: QuorumState, order: tuple[int, ...]) -> tuple[Voter, ...]:
        """Return the voters after voter `order[i]` is renamed to i."""
        return tuple(self._renamed(quorum.voters[number], order) for number in order)

    def _alone(self, quorum: QuorumState, number: int) -> Iterator[tuple[str, QuorumState]]:
        voter = quorum.voters[number]
        is_leader = voter.leader == number
        if not is_leader and voter.is_known and voter.epoch < self.scope.epochs:
            asking = with_epoch(voter, voter.epoch + 1)._replace(voted_for=number, votes=(number,))
            words = f"{number} becomes a candidate in epoch {asking.epoch}"
            yield words, quorum.with_voter(number, self._elected(number, asking))
        if is_leader and quorum.records_left:
            record = Record(self.scope.records - quorum.records_left, voter.epoch)
            after = quorum.with_voter(number, voter._replace(log=(*voter.log, record)))
            yield f"{number} takes m{record.number}", after._replace(records_left=quorum.records_left - 1)
        if is_leader:
            end = committed_end(number, voter)
            committed = max(quorum.committed, voter.log[:end], key=len)
            after = quorum.with_voter(number, voter._replace(high_watermark=end))._replace(committed=committed)
            yield f"{number} raises its high watermark to {end}", after
        if quorum.restarts_left:
            again = Voter(voter.epoch, voter.voted_for, log=voter.log, is_known=voter.is_known)
            after = quorum.with_voter(number, again)._replace(restarts_left=quorum.restarts_left - 1)
            yield f"{number} restarts", after
        if quorum.losses_left:
            empty = Voter(is_known=not self.scope.directory_ids)
            after = quorum.with_voter(number, empty)._replace(losses_left=quorum.losses_left - 1)
            yield f"{number} loses its disk and comes back empty", after

    def _between(self, quorum: QuorumState, number: int, other: int) -> Iterator[tuple[str, QuorumState]]:
        """Yield the steps of voter `number` with voter `other`: request its vote, or fetch from it."""
        own, peer = quorum.voters[number], quorum.voters[other]
        if own.votes and own.leader == NOBODY and other not in own.votes and peer.epoch <= own.epoch:
            asked = with_epoch(peer, own.epoch)
            if peer.is_known and grants_vote(asked, number, own):
                elected = self._elected(number, own._replace(votes=tuple(sorted((*own.votes, other)))))
                after = quorum.with_voter(other, asked._replace(voted_for=number)).with_voter(number, elected)
                won = ", and leads" if elected.leader == number else ""
                yield f"{number} gets the vote of {other} in epoch {own.epoch}{won}", after
            else:
                yield f"{other} refuses {number} its vote in epoch {own.epoch}", quorum.with_voter(other, asked)
        if peer.leader == other and own.epoch > peer.epoch:
            resigned = with_epoch(peer, own.epoch)
            yield f"{other} learns from {number} of epoch {own.epoch} and resigns", quorum.with_voter(other, resigned)
        elif peer.leader == other and own.leader in (NOBODY, other):
            follower = with_epoch(own, peer.epoch)._replace(leader=other, votes=())
            taken = fetched(follower, peer)
            ends = peer.ends
            if own.is_known and follower.log == taken.log[: len(follower.log)]:
                ends = (*ends[:number], len(follower.log), *ends[number + 1 :])
            words = f"{number} fetches from {other} at {len(follower.log)}"
            yield words, quorum.with_voter(number, taken).with_voter(other, peer._replace(ends=ends))

    def _elected(self, number: int, candidate: Voter) -> Voter:
        """Return the candidate, or the leader that it becomes with a majority of votes."""
        if not is_elected(candidate, self.scope.voters):
            return candidate
        log = (*candidate.log, Record(LEADER_CHANGE, candidate.epoch))
        return candidate._replace(leader=number, votes=(), log=log, ends=(0,) * self.scope.voters)


def _renamed(voter: Voter, order: tuple[int, ...]) -> Voter:
    """Return a voter's state after voter `order[i]` is renamed to i."""
    names = {NOBODY: NOBODY, **{number: name for name, number in enumerate(order)}}
    return voter._replace(
        voted_for=names[voter.voted_for],
        leader=names[voter.leader],
        votes=tuple(sorted(names[number] for number in voter.votes)),
        ends=tuple(voter.ends[number] for number in order) if voter.ends else (),
    )


def _shown(log: tuple[Record, ...]) -> str:
    """Return a log as text: led@1 m0@1, or the word empty."""
    names = (f"{'led' if record.number == LEADER_CHANGE else f'm{record.number}'}@{record.epoch}" for record in log)
    return " ".join(names) or "empty"
