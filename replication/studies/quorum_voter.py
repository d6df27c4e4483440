"""One replica of a majority quorum after Raft, as KRaft does it: followers fetch.

Goals, most important first:
1. In an epoch at most one voter leads, and it has every committed record.
2. A record is committed once a majority has flushed it: f of 2f + 1 replicas may be gone for good.

Constraints: epoch, vote and log are flushed before anything is answered, as KRaft does; so a power failure loses
nothing that counted. A voter that has lost its disk neither votes nor counts until it has caught up again.

Example: of the ends (7, 5, 9) the majority's is 7.

Left out: pre-votes, snapshots, changes of the set of voters other than a lost disk.

Source: Ongaro, Ousterhout, In Search of an Understandable Consensus Algorithm (2014); KIP-595, KIP-853.
`replication.explore` searches the states of the same protocol.
"""

from __future__ import annotations

from bisect import bisect_right

import attrs

from replication.explore.quorum_voter import has_majority

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
        """Lose the disk: log, epoch and vote are gone, and with them the right to be counted."""
        self.epochs, self.values, self.high_watermark = [], [], 0
        self.epoch, self.voted_for, self.leader, self.votes, self.ends = 0, NOBODY, NOBODY, set(), {}
        self.is_counted = False
