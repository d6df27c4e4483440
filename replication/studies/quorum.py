"""Model a partition on a majority quorum after Raft, as KRaft does it: votes, elections, fetches on failing machines.

Constraints: in an epoch at most one voter leads, and it has every committed record. A record is committed once a
majority has flushed it. Epoch, vote and log are flushed before anything is answered, so a power failure loses nothing
that counted. A voter that has lost its disk neither votes nor counts until it has caught up again.

Left out: pre-votes, snapshots, changes of the set of voters other than a lost disk.

Source: Ongaro, Ousterhout, In Search of an Understandable Consensus Algorithm (2014); KIP-595, KIP-853;
controller.quorum.fetch.timeout.ms 2000, controller.quorum.election.timeout.ms 1000 and
controller.quorum.election.backoff.max.ms 1000 of Kafka 4.3's QuorumConfig.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from heapq import heappop, heappush
from typing import Final

import attrs

from broker.entropy import SplitMix64
from replication.explore.quorum_model import has_majority
from replication.simulation.options import NetworkOptions

NOBODY = -1


@attrs.define
class QuorumReplica:
    """Hold one voter's replica: `epochs` and `values` are its log, `ends` what a leader knows of the others."""

    voter: int
    voter_count: int
    epoch: int = 0
    voted_for: int = NOBODY
    leader: int = NOBODY
    epochs: list[int] = attrs.field(factory=list)
    values: list[int] = attrs.field(factory=list)
    high_watermark: int = 0
    votes: set[int] = attrs.field(factory=set)
    ends: dict[int, int] = attrs.field(factory=dict)
    is_counted: bool = True
    """Whether it may vote and be counted: not while it refills a disk that was lost."""

    @property
    def end(self) -> int:
        """Return the offset after the last record."""
        return len(self.epochs)

    @property
    def leads(self) -> bool:
        """Return whether this voter leads its epoch."""
        return self.leader == self.voter

    def see(self, epoch: int) -> bool:
        """Take a later epoch, if it is one; return whether it was."""
        if epoch <= self.epoch:
            return False
        self.epoch, self.voted_for, self.leader = epoch, NOBODY, NOBODY
        return True

    def stand(self) -> None:
        """Become a candidate of the next epoch."""
        self.see(self.epoch + 1)
        self.voted_for = self.voter
        self.votes = {self.voter}

    def grants(self, candidate: int, epoch: int, last: tuple[int, int]) -> bool:
        """Return whether this voter votes for a candidate whose log ends with `last` (epoch, end)."""
        if epoch < self.epoch or not self.is_counted:
            return False
        self.see(epoch)
        if self.leader != NOBODY or self.voted_for not in (NOBODY, candidate) or last < self.last():
            return False
        self.voted_for = candidate
        return True

    def last(self) -> tuple[int, int]:
        """Return the epoch of the last record, and the end."""
        return (self.epochs[-1] if self.epochs else NOBODY, self.end)

    def take_vote(self, voter: int, epoch: int) -> bool:
        """Take a vote; return whether it made this candidate the leader, whose log begins the epoch with a record."""
        if epoch != self.epoch or self.leader != NOBODY or self.voted_for != self.voter:
            return False
        self.votes.add(voter)
        if not has_majority(len(self.votes), self.voter_count):
            return False
        self.leader, self.ends = self.voter, {}
        self.append(NOBODY)
        return True

    def append(self, value: int) -> int:
        """Append a value as leader; return its offset. NOBODY stands for the record that begins an epoch."""
        self.epochs.append(self.epoch)
        self.values.append(value)
        self.commit()
        return self.end - 1

    def hear_fetch(self, voter: int, end: int, *, is_counted: bool) -> bool:
        """Take a fetch as leader: where a follower's log ends; return whether that committed something."""
        if is_counted:
            self.ends[voter] = end
        return self.commit()

    def commit(self) -> bool:
        """Raise the high watermark to what a majority has, from this epoch's first record on."""
        ends = sorted([self.end, *self.ends.values()], reverse=True)
        needed = self.voter_count // 2
        if len(ends) <= needed:
            return False
        reached = ends[needed]
        if reached <= self.high_watermark or self.epochs[reached - 1] != self.epoch:
            return False
        self.high_watermark = reached
        return True

    def agreed_end(self, end: int, last_epoch: int) -> int:
        """Return up to where a follower's log, which ends so, can agree with this leader's."""
        if end <= self.end and (end == 0 or self.epochs[end - 1] == last_epoch):
            return end
        return min(end, bisect_right(self.epochs, last_epoch))

    def cut(self, end: int) -> None:
        """Truncate the log to `end`; what was committed is never cut."""
        assert end >= self.high_watermark, (end, self.high_watermark)
        del self.epochs[end:], self.values[end:]

    def extend(self, start: int, epochs: list[int], values: list[int], high_watermark: int) -> None:
        """Append what a fetch brought from `start` on, and take the leader's high watermark."""
        assert start == self.end, (start, self.end)
        self.epochs += epochs
        self.values += values
        self.high_watermark = max(self.high_watermark, min(high_watermark, self.end))

    def wipe(self) -> None:
        """Lose the disk with log, epoch and vote, and no longer count as a voter."""
        self.epochs, self.values, self.high_watermark = [], [], 0
        self.epoch, self.voted_for, self.leader, self.votes, self.ends = 0, NOBODY, NOBODY, set(), {}
        self.is_counted = False


FETCH_TIMEOUT_MS: Final = 2_000
ELECTION_TIMEOUT_MS: Final = 1_000
ELECTION_BACKOFF_MS_MAX: Final = 1_000
FETCH_WAIT_MS: Final = 500
FETCH_RECORDS_MAX: Final = 1_000
CLIENT: Final = -1
"""The receiver that is always there."""
_DELAY_MS_MAX: Final = NetworkOptions().delay_ms_max


class Machines:
    """Hold the clock, the scheduled actions, and which processes run."""

    def __init__(self, count: int, entropy: SplitMix64) -> None:
        self.count = count
        self.now_ms = 0
        self.is_up = [True] * count
        self.incarnation = [0] * count
        """How often each process has ended."""
        self.message_count = 0
        self._entropy = entropy
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._asked = 0

    def drawn(self, most: int) -> int:
        """Return a whole number from 0 to below `most`."""
        return self._entropy.next_int_bound(most)

    def at(self, at_ms: int, action: Callable[[], None]) -> None:
        """Schedule an action."""
        self._asked += 1
        heappush(self._heap, (at_ms, self._asked, action))

    def send(self, receiver: int, action: Callable[[], None]) -> None:
        """Let a message arrive after a drawn delay."""
        incarnation = CLIENT if receiver == CLIENT else self.incarnation[receiver]

        def arrive() -> None:
            if receiver == CLIENT or (self.is_up[receiver] and self.incarnation[receiver] == incarnation):
                self.message_count += 1
                action()

        self.at(self.now_ms + 1 + self.drawn(_DELAY_MS_MAX), arrive)

    def stop(self, machine: int) -> None:
        """End a process; nothing that was sent to it arrives."""
        self.is_up[machine] = False
        self.incarnation[machine] += 1

    def run_until(self, end_ms: int) -> None:
        """Run all actions up to and including `end_ms`."""
        while self._heap and self._heap[0][0] <= end_ms:
            self.now_ms, _, action = heappop(self._heap)
            action()


@attrs.frozen
class Records:
    """Hold what a fetch brings: records from `start` on, and whether they reach the leader's end."""

    epoch: int
    start: int
    epochs: list[int]
    values: list[int]
    high_watermark: int
    is_whole: bool


class PartitionQuorum:
    """Hold the voters of one partition, and what is on its way between them."""

    def __init__(self, machines: Machines) -> None:
        voters = range(machines.count)
        self._machines = machines
        self.replicas = [QuorumReplica(voter, machines.count) for voter in voters]
        self.election_count = 0
        self._timers = [0] * machines.count
        self._heard_ms: list[dict[int, int]] = [{} for _ in voters]
        self._fetch_numbers = [0] * machines.count
        self._waiting: dict[int, int] = {}
        """Where the log of a follower ends whose fetch waits at the leader, by follower."""
        self._pending: dict[tuple[int, int], Callable[[], None]] = {}
        """What is to be answered when an offset of an epoch is committed."""

    # Elections.

    def begin(self, voter: int, least_ms: int = FETCH_TIMEOUT_MS) -> None:
        """Become a candidate unless a leader is heard within the time, and a drawn one."""
        machines = self._machines
        self._timers[voter] += 1
        number, incarnation = self._timers[voter], machines.incarnation[voter]

        def due() -> None:
            is_set = (number, incarnation) == (self._timers[voter], machines.incarnation[voter])
            if machines.is_up[voter] and is_set:
                self._stand(voter)

        machines.at(machines.now_ms + least_ms + machines.drawn(ELECTION_BACKOFF_MS_MAX), due)

    def restart(self, voter: int) -> None:
        """Begin anew after a process has started."""
        replica = self.replicas[voter]
        if replica.leads:  # In an epoch whose leader has restarted nobody leads.
            replica.leader = NOBODY
        self.begin(voter)

    def _others(self, voter: int) -> Iterator[int]:
        return (other for other in range(self._machines.count) if other != voter)

    def _stand(self, voter: int) -> None:
        replica = self.replicas[voter]
        self.begin(voter, ELECTION_TIMEOUT_MS)
        if not replica.is_counted:
            for other in self._others(voter):  # It may not vote, and asks who leads.
                self._machines.send(other, partial(self._tell_leader, other, voter))
            return
        replica.stand()
        for other in self._others(voter):
            self._machines.send(other, partial(self._on_vote_request, other, voter, replica.epoch, replica.last()))
        self._on_vote(voter, voter, replica.epoch)

    def _tell_leader(self, voter: int, asker: int) -> None:
        replica = self.replicas[voter]
        if replica.leads:
            self._machines.send(asker, partial(self._follow, asker, voter, replica.epoch))

    def _on_vote_request(self, voter: int, candidate: int, epoch: int, last: tuple[int, int]) -> None:
        if self.replicas[voter].grants(candidate, epoch, last):
            self.begin(voter, ELECTION_TIMEOUT_MS)
            self._machines.send(candidate, partial(self._on_vote, candidate, voter, epoch))

    def _on_vote(self, voter: int, other: int, epoch: int) -> None:
        if self.replicas[voter].take_vote(other, epoch):
            self._lead(voter)

    def _lead(self, voter: int) -> None:
        """Tell the others who leads."""
        self.election_count += 1
        self._timers[voter] += 1
        self._heard_ms[voter] = dict.fromkeys(self._others(voter), self._machines.now_ms)
        epoch = self.replicas[voter].epoch
        for other in self._others(voter):
            self._machines.send(other, partial(self._follow, other, voter, epoch))
        self._check_majority(voter, epoch, self._machines.incarnation[voter])

    def _check_majority(self, voter: int, epoch: int, incarnation: int) -> None:
        """Let a leader resign when no majority fetches any more; look again later otherwise."""
        replica, machines = self.replicas[voter], self._machines
        if incarnation != machines.incarnation[voter] or not replica.leads or replica.epoch != epoch:
            return
        since_ms = machines.now_ms - FETCH_TIMEOUT_MS * 3 // 2
        if sum(at_ms >= since_ms for at_ms in self._heard_ms[voter].values()) < machines.count // 2:
            replica.leader = NOBODY
            self.begin(voter)
        else:
            again_ms = machines.now_ms + FETCH_TIMEOUT_MS // 4
            machines.at(again_ms, partial(self._check_majority, voter, epoch, incarnation))

    # Fetching.

    def _follow(self, voter: int, leader: int, epoch: int) -> None:
        replica = self.replicas[voter]
        if epoch < replica.epoch or (epoch == replica.epoch and replica.leader == leader):
            return
        replica.see(epoch)
        replica.leader = leader
        self._fetch(voter)

    def _fetch(self, voter: int) -> None:
        """Fetch from the leader; without an answer in the fetch timeout, stand for election."""
        replica = self.replicas[voter]
        self.begin(voter)
        fetch = partial(
            self._on_fetch, replica.leader, voter, replica.epoch, replica.last(), is_counted=replica.is_counted
        )
        self._machines.send(replica.leader, fetch)

    def _on_fetch(self, leader: int, voter: int, epoch: int, last: tuple[int, int], *, is_counted: bool) -> None:
        """Take a fetch from a follower whose log ends with `last`: a record's epoch, and the end."""
        replica, machines, end = self.replicas[leader], self._machines, last[1]
        if not replica.leads or replica.epoch != epoch:
            return
        self._heard_ms[leader][voter] = machines.now_ms
        agreed = replica.agreed_end(end, last[0])
        if agreed < end:
            machines.send(voter, partial(self._on_cut, voter, epoch, agreed))
            return
        if replica.hear_fetch(voter, end, is_counted=is_counted):
            self._committed(leader)
        self._fetch_numbers[voter] += 1
        self._waiting[voter] = end
        if end < replica.end:
            self._answer(leader, voter)
        else:
            number = self._fetch_numbers[voter]
            machines.at(machines.now_ms + FETCH_WAIT_MS, partial(self._answer_waiting, leader, voter, number))

    def _answer_waiting(self, leader: int, voter: int, number: int) -> None:
        if self._fetch_numbers[voter] == number and self._machines.is_up[leader]:
            self._answer(leader, voter)

    def _answer(self, leader: int, voter: int) -> None:
        """Answer a follower's waiting fetch, once."""
        replica = self.replicas[leader]
        if voter not in self._waiting or not replica.leads:
            return
        self._fetch_numbers[voter] += 1
        start = self._waiting.pop(voter)
        stop = min(replica.end, start + FETCH_RECORDS_MAX)
        found = Records(
            replica.epoch,
            start,
            replica.epochs[start:stop],
            replica.values[start:stop],
            replica.high_watermark,
            is_whole=stop == replica.end,
        )
        self._machines.send(voter, partial(self._on_records, voter, found))

    def _on_cut(self, voter: int, epoch: int, end: int) -> None:
        replica = self.replicas[voter]
        if replica.epoch == epoch:
            replica.cut(end)
            self._fetch(voter)

    def _on_records(self, voter: int, found: Records) -> None:
        replica = self.replicas[voter]
        if replica.epoch != found.epoch or replica.leads or found.start != replica.end:
            return
        replica.extend(found.start, found.epochs, found.values, found.high_watermark)
        replica.is_counted = replica.is_counted or found.is_whole
        self._fetch(voter)

    # Producers.

    def produce(self, value: int, voter: int, answered: Callable[[], None], moved: Callable[[int], None]) -> None:
        """Take a write at a voter: it is acknowledged once committed, or another voter is named."""
        replica, machines = self.replicas[voter], self._machines
        if not replica.leads:
            machines.send(CLIENT, partial(moved, replica.leader if replica.leader != voter else NOBODY))
            return
        recent = replica.values[-FETCH_RECORDS_MAX:]
        # An idempotent producer's batch that is sent again is known.
        offset = replica.end - len(recent) + recent.index(value) if value in recent else replica.append(value)
        if offset < replica.high_watermark:
            machines.send(CLIENT, answered)
        else:
            self._pending[replica.epoch, offset] = partial(machines.send, CLIENT, answered)
        if replica.high_watermark == replica.end:
            self._committed(voter)
        for other in range(machines.count):
            self._answer(voter, other)

    def _committed(self, leader: int) -> None:
        """Answer the writes that are committed."""
        replica = self.replicas[leader]
        for epoch, offset in [place for place in self._pending if place[1] < replica.high_watermark]:
            # What an earlier leader appended there may be another record: its producer sends again.
            answer = self._pending.pop((epoch, offset))
            if epoch == replica.epoch:
                answer()
