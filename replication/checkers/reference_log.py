"""Keep the committed records of one partition, apart from the model.

What it decides: which records count as committed since the last unclean election, with those before them that the
leader of that election has: the records that a leader shows as committed and that the logs of all members which it
counts hold, and those that a leader has acknowledged to a client with acks=all. A high watermark alone commits nothing.
No clean election may lose this prefix.

Constraints: the prefix only grows, except at an unclean election, which truncates it to the records that the new leader
has; the truncated records are noted as lost, with the cause.

How: `matching` holds, for each offset and leader epoch, the record and the epoch before it, from the first replica that
had it; every other replica must have the same (log matching by induction).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from broker.ids import BrokerId
from broker.units import TimeMs
from replication.checkers.elections import Ground, UncleanElection
from replication.checkers.observed_log import Entry, ObservedLog
from replication.rules.partition import AlterPartitionRequest, PartitionState

_NOT_UNCLEAN: Final = frozenset({Ground.NO_ELR, Ground.FORMER_REPLICA, Ground.UNCOUNTED, Ground.REVIVED})
"""The grounds of leaders that Kafka takes for complete, as they are in the ISR or the ELR."""


@attrs.frozen
class Loss:
    """Describe a loss: an unclean election removed the committed records from `start_offset` on."""

    at_ms: TimeMs
    partition: int
    start_offset: int
    values: tuple[int, ...]
    election: UncleanElection

    @property
    def cause(self) -> str:
        """Return the election in words, with what allowed it; "" if nothing did, as then the loss has no excuse."""
        election = self.election
        if election.ground is Ground.NONE:
            return ""
        if election.ground in _NOT_UNCLEAN:
            what = f"leadership of broker {election.leader} from {self.at_ms} ms on (epoch {election.leader_epoch})"
            return f"{what}, allowed by {election.ground.value}"
        return (
            f"unclean election of broker {election.leader} at {self.at_ms} ms (epoch {election.leader_epoch}), "
            f"allowed by {election.ground.value}"
        )


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
        self.dropped: dict[BrokerId, int] = {}
        """The partition epoch of the last AlterPartition request that a leader gave up after a metadata change."""
        self.is_deleted = False
        """Whether the partition's topic was deleted, and all its records with it."""
        self.clean_from_epoch = 0
        """The first leader epoch after the last unclean election; leaders of earlier epochs are not checked."""
        self.unsettled: UncleanElection | None = None
        """The last unclean election, if the log of its leader was not open then, until that leader is seen to lead."""
        self.incomplete: dict[BrokerId, int] = {}
        """Before ELR: members of the ISR whose restart cost them committed records, and how many were committed then.

        Until they leave the ISR, or have copied as many again.
        """
        self.returned: set[BrokerId] = set()
        """Since ELR: members of it that a reassignment removed and another brought back, with an empty log."""
        self.emptied: set[BrokerId] = set()
        """Those of them that have led since then, until another leader says that they are in sync."""
        self.uncounted: dict[BrokerId, int] = {}
        """Members that joined by a request that their leader had given up, and how much it showed without them."""
        self.reused: dict[int, list[range]] = {}
        """Before ELR: each epoch that a leader led on without records of its log, and the offsets that it lost."""
        self.revived: set[int] = set()
        """With ZooKeeper: those of these epochs whose leader had deleted its log, and was told to lead once more."""
        self.former: set[tuple[int, int]] = set()
        """Offset and value of each record that was shown as committed in a history that an unclean election ended."""
        self.ended: dict[int, str] = {}
        """Each value that a leader showed or acknowledged though its history had ended, and the cause."""
        self.former_end = 0
        """The greatest end of any replica's log at an unclean election: below it, a log may be of an ended history."""

    def learn(self, state: PartitionState) -> None:
        """Record the controller's new state of the partition."""
        before = () if self.state is None else self.state.replicas
        self.moved_away.update((broker, state.partition_epoch) for broker in before if broker not in state.replicas)
        self.state = state
        self.incomplete = {broker: count for broker, count in self.incomplete.items() if broker in state.isr}
        if before:
            self.returned.update(broker for broker in state.elr if broker in state.replicas and broker not in before)
        # An empty leader that goes back into the ELR lacks what a replica has that was away while it led.
        self.emptied = {broker for broker in self.emptied if broker == state.leader or broker not in state.isr}
        self.returned.update(self.emptied.intersection(state.elr))
        # Whoever joins the ISR at its leader's word has copied the log; whoever leads from the ELR has not yet.
        self.returned.intersection_update((*state.elr, state.leader))

    @property
    def unclean_count(self) -> int:
        """Return the number of unclean elections; leaders that were in the ISR or ELR were not elected uncleanly."""
        return sum(loss.election.ground not in _NOT_UNCLEAN for loss in self.losses)

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
        self.former.update((keep + place, entry.value) for place, entry in enumerate(lost))
        self.former_end = max(self.former_end, len(self.committed))
        del self.committed[keep:]
        for observed in self.observed_logs.values():
            self.former_end = max(self.former_end, len(observed.entries))
            # What agreed with the removed records must be compared with those that take their place.
            observed.agreed = min(observed.agreed, keep)
        self.clean_from_epoch = election.leader_epoch
        values = tuple(entry.value for entry in lost)
        self.losses.append(Loss(at_ms, self.partition, keep, values, election))

    def take_back(self, observed: ObservedLog) -> None:
        """Count records as committed again that an incomplete leader had lost, and a later leader still shows.

        Before ELR a member of the ISR that lost its log's end can lead. A member that never heard of that leader keeps
        its records and its high watermark, and is a clean choice as the next leader; others copy from it again.
        """
        start = len(self.committed)
        shown = observed.entries[start : observed.high_watermark]
        if observed.agree(self.committed) < start or self.state is None:
            return
        if shown and all((start + place, entry.value) in self.former for place, entry in enumerate(shown)):
            self.committed.extend(shown)
            members = (broker for broker in self.state.isr if broker != observed.broker)
            self.uncounted.update((broker, len(self.committed)) for broker in members)

    def note_copied(self) -> None:
        """Expect all committed records again of each ISR member that has copied what it had lost."""
        for broker, count in tuple(self.incomplete.items()):
            if self.observed_logs[broker].agree(self.committed) >= count:
                del self.incomplete[broker]

    def note_reused(self, leader_epoch: int, lost: range) -> None:
        """Note the offsets of records that a leader lost before it went on in its own leader epoch."""
        if lost:
            self.reused.setdefault(leader_epoch, []).append(lost)

    def is_written_again(self, offset: int, epoch: int) -> bool:
        """Return whether a leader without ELR went on in its own epoch after it had lost what was at an offset."""
        return any(offset in lost for lost in self.reused.get(epoch, ()))

    def is_of_revived(self, offset: int, epoch: int) -> bool:
        """Return whether an offset was in a log that a leader had deleted before it led the same epoch again."""
        return epoch in self.revived and self.is_written_again(offset, epoch)

    def may_follower_show(self, offset: int, value: int) -> bool:
        """Return whether a follower may answer a consumer with another record than is committed at its offset.

        It is of a history that ended, or stands where a leader without ELR went on in its own epoch.
        """
        if (offset, value) in self.former:
            return True
        return offset < len(self.committed) and self.is_written_again(offset, self.committed[offset].epoch)

    def skips_epoch_start(self, offset: int, epoch: int, previous: int) -> bool:
        """Return whether the record before an offset may be of an older epoch than elsewhere, as after compaction."""
        return False

    def is_excused(self, broker: BrokerId, agreed: int, known: Sequence[Entry]) -> bool:
        """Return whether a member of ISR or ELR may lack `known` records from `agreed` on, by holes of Kafka's own.

        Before ELR followers do not see that their leader went on in its own epoch with other records, and keep what
        they have. Since ELR a replica that was removed and added again may be eligible with an empty log. A leader that
        gave up a request for a new member commits without it, until it learns that the controller took the request.
        """
        if broker in self.returned or agreed < max(self.incomplete.get(broker, 0), self.uncounted.get(broker, 0)):
            return True
        return self._differs_where_written_again(broker, agreed, known)

    def _differs_where_written_again(self, broker: BrokerId, agreed: int, known: Sequence[Entry]) -> bool:
        """Return whether a replica first differs from the `known` records where a leader lost one and wrote another.

        A log that ends there, or differs in another epoch or at another offset, has no such excuse.
        """
        observed = self.observed_logs.get(broker)
        if not self.reused or observed is None or agreed >= min(len(observed.entries), len(known)):
            return False
        return any(self.is_written_again(agreed, entry.epoch) for entry in (observed.entries[agreed], known[agreed]))

    def is_succeeded(self, leader_epoch: int) -> bool:
        """Return whether a leader of a later epoch has been seen, so that this one may lack committed records."""
        return any(epoch > leader_epoch for epoch in self.leaders)

    def accept(self, broker: BrokerId, agreed: int) -> Ground:
        """Take an excused broker for complete, as Kafka does, and return what lets it lead."""
        ground = Ground.NO_ELR
        if broker in self.returned:
            ground = Ground.FORMER_REPLICA
            self.emptied.add(broker)
        elif broker in self.uncounted:
            ground = Ground.UNCOUNTED
        elif agreed >= self.incomplete.get(broker, 0):
            entries = (self.observed_logs[broker].entries, self.committed)
            if any(agreed < len(known) and self.is_of_revived(agreed, known[agreed].epoch) for known in entries):
                ground = Ground.REVIVED
        self.incomplete.pop(broker, None)
        self.returned.discard(broker)
        self.uncounted.pop(broker, None)
        return ground

    def has_at(self, offset: int, value: int) -> bool:
        """Return whether a value is committed at an offset."""
        return 0 <= offset < len(self.committed) and self.committed[offset].value == value

    def is_former(self, offset: int, value: int) -> bool:
        """Return whether a place was or may have been of a history that an unclean election ended.

        A leader of an earlier epoch that has not heard of the election may go on, and what it does is not recorded.
        """
        return bool(self.losses) and not self.has_at(offset, value)
