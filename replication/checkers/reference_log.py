"""Keep the committed records of one partition, apart from the model.

The prefix only grows, except at an unclean election, which truncates it to the records that the new leader has; the
truncated records are noted as lost, with the cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import attrs

from broker.ids import BrokerId
from broker.units import TimeMs
from replication.checkers.elections import Ground, UncleanElection
from replication.checkers.observed_log import Entry, ObservedLog
from replication.rules.partition import AlterPartitionRequest, PartitionState

if TYPE_CHECKING:
    from replication.checkers.clients import Write


@attrs.frozen
class Loss:
    """Describe a loss: an unclean election removed the committed records from `start_offset` on.

    `was_gone` says that no broker had all of them any more when it came to the election.
    """

    at_ms: TimeMs
    partition: int
    start_offset: int
    values: tuple[int, ...]
    election: UncleanElection
    was_gone: bool = False

    @property
    def cause(self) -> str:
        """Return the election in words, with what came before and what allowed it; "" if nothing allowed it."""
        election = self.election
        if election.ground is Ground.NONE:
            return ""
        before = "loss of the last log that had them, then the " if self.was_gone else ""
        return (
            f"{before}unclean election of broker {election.leader} at {self.at_ms} ms "
            f"(epoch {election.leader_epoch}), allowed by {election.ground.value}"
        )


class SettledWrites:
    """Hold the number, the offset ranges and the losses of acknowledged writes that the checkers have dropped."""

    def __init__(self) -> None:
        self.acked_counts: Counter[int] = Counter()
        """How many writes were acknowledged, by their acks."""
        self.lost: list[tuple[int, int, str]] = []
        """The offset, the acks and the cause of each record that an election lost."""
        self._ranges: dict[int, list[list[int]]] = {}

    def note(self, writes: Iterable[Write]) -> None:
        """Add acknowledged writes. Memory: two numbers for each range of offsets without a gap."""
        for write in sorted(writes, key=lambda each: each.offset):
            self.acked_counts[write.acks] += 1
            self._add(write.acks, write.offset)

    def _add(self, acks: int, offset: int) -> None:
        ranges = self._ranges.setdefault(acks, [])
        if ranges and ranges[-1][0] <= offset <= ranges[-1][1]:
            ranges[-1][1] = max(ranges[-1][1], offset + 1)
        else:
            ranges.append([offset, offset + 1])

    def lose(self, keep: int, cause: str) -> None:
        """Count the records from offset `keep` on as lost, with the election that truncated them as the cause."""
        for acks, ranges in sorted(self._ranges.items()):
            gone = {offset for start, end in ranges for offset in range(max(start, keep), end)}
            self.lost += [(offset, acks, cause) for offset in sorted(gone)]
            self._ranges[acks] = [[start, min(end, keep)] for start, end in ranges if start < keep]

    def recall(self, is_back: Callable[[int], bool]) -> None:
        """Remove the losses at the offsets whose records a later election has restored."""
        kept = []
        for offset, acks, cause in self.lost:
            if is_back(offset):
                self._add(acks, offset)
            else:
                kept.append((offset, acks, cause))
        self.lost = kept


class ReferenceLog:
    """Hold the committed records of one partition, and the checkers' knowledge of its replicas."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.state: PartitionState | None = None
        self.committed: list[Entry] = []
        self.observed_logs: dict[BrokerId, ObservedLog] = {}
        self.leaders: dict[int, BrokerId] = {}
        self.matching: dict[tuple[int, int], tuple[Entry, int]] = {}
        self.appended: set[int] = set()
        self.losses: list[Loss] = []
        self.gone: dict[int, str] = {}
        """The event that last removed each value from a broker."""
        self.asked: dict[BrokerId, AlterPartitionRequest | None] = {}
        """The pending change of the ISR that each leader was last seen with."""
        self.moved_away: dict[BrokerId, int] = {}
        """The partition epoch in which the controller last took each broker out of the replicas: its log is deleted."""
        self.is_deleted = False
        """Whether the partition's topic was deleted, and all its records with it."""
        self.clean_from_epoch = 0
        """The first leader epoch after the last unclean election; leaders of earlier epochs are not checked."""
        self.unsettled: UncleanElection | None = None
        """The last unclean election, if the log of its leader was not open then, until that leader is seen to lead."""
        self.former: set[tuple[int, int]] = set()
        """Offset and value of each record that was shown as committed in a history that an unclean election ended."""
        self.ended: dict[int, str] = {}
        """Each value that a leader showed or acknowledged though its history had ended, and the cause."""
        self.settled = SettledWrites()
        self.former_end = 0
        """The greatest end of any replica's log at an unclean election: below it, a log may be of an ended history."""

    def learn(self, state: PartitionState) -> None:
        """Record the controller's new state of the partition."""
        before = () if self.state is None else self.state.replicas
        self.moved_away.update((broker, state.partition_epoch) for broker in before if broker not in state.replicas)
        self.state = state

    @property
    def unclean_count(self) -> int:
        """Return the number of unclean elections."""
        return len(self.losses)

    def note_ended(self, observed: ObservedLog, leader_epoch: int, start_offset: int) -> None:
        """Note what a leader of an ended history shows from `start_offset` on: it has not heard of the election."""
        cause = next((loss.cause for loss in self.losses if loss.election.leader_epoch > leader_epoch), "")
        start = max(start_offset, observed.agree(self.committed))
        for offset, entry in enumerate(observed.entries[start : observed.shown], start):
            self.former.add((offset, entry.value))
            self.ended[entry.value] = cause

    def give_up(self, keep: int, at_ms: TimeMs, election: UncleanElection) -> None:
        """Truncate the committed records to the first `keep`, as an unclean leader has no more of them."""
        lost = self.committed[keep:]
        agreed = [observed.agree(self.committed) for observed in self.observed_logs.values()]
        was_gone = max(agreed, default=len(self.committed)) < len(self.committed)
        self.former.update((keep + place, entry.value) for place, entry in enumerate(lost))
        self.former_end = max(self.former_end, len(self.committed))
        del self.committed[keep:]
        for observed in self.observed_logs.values():
            self.former_end = max(self.former_end, len(observed.entries))
            # What agreed with the removed records must be compared with those that take their place.
            observed.agreed = min(observed.agreed, keep)
        self.clean_from_epoch = election.leader_epoch
        values = tuple(entry.value for entry in lost)
        self.losses.append(Loss(at_ms, self.partition, keep, values, election, was_gone))

    def is_settled(self, write: Write) -> bool:
        """Return whether a write's record was found before the checkers dropped it."""
        return False

    def skips_epoch_start(self, offset: int, epoch: int, previous: int) -> bool:
        """Return whether the record before an offset may be of an older epoch than elsewhere, as after compaction."""
        return False

    def has_at(self, offset: int, value: int) -> bool:
        """Return whether a value is committed at an offset."""
        return 0 <= offset < len(self.committed) and self.committed[offset].value == value

    def is_former(self, offset: int, value: int) -> bool:
        """Return whether a place was or may have been of a history that an unclean election ended.

        A leader of an earlier epoch that has not heard of the election may go on, and what it does is not recorded.
        """
        return bool(self.losses) and not self.has_at(offset, value)
