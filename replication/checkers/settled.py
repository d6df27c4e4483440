"""Keep the checkers' memory of a long run small: forget the records on which all replicas in sync have agreed.

What it decides: the settled end of each partition. Below it every member of the ISR and the ELR held the committed
records when the end was raised, and the clients' writes were found there. What is forgotten is summed up: how many
writes were acknowledged, at which offsets; an unclean election that loses such an offset still loses the record.

Constraints: a write that was acknowledged and is not where the response said is never settled; where the record is
settled already, the leader epochs are compared. A partition without a leader settles nothing.

Left out: a log that copies settled records once more is compared from the settled end on; of a lost record that was
settled, the value is not known. A log whose settled beginning an unclean election took away counts as agreeing with
what takes its place, until it is cut.

Source: ours.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable
from typing import Any, Final, SupportsIndex

from broker.units import TimeMs
from replication.checkers.clients import Write
from replication.checkers.elections import UncleanElection
from replication.checkers.observed_log import Decoder, Entry, LogChange, ObservedLog
from replication.checkers.reference_log import ReferenceLog
from replication.checkers.steps import StepChecker
from replication.checkers.view import NodeView
from replication.roles.replica_log import ReplicaLog
from replication.rules.produce import Fate

KEPT_COUNT: Final = 1_000
"""The committed records of a partition that are kept, whatever is settled."""
SETTLED: Final = Entry(-2, -1)
"""Stands in the place of each record that is settled."""


class Tail(list[Entry]):
    """Hold the end of a log whose beginning is settled; offsets count from the beginning of the log.

    The list itself has the entries from `start` on. Entries that are added below the settled end are not kept.
    """

    def __init__(self, truth: SettledReferenceLog) -> None:
        super().__init__()
        self._truth = truth
        self.start = 0

    def __len__(self) -> int:
        return self.start + super().__len__()

    def __bool__(self) -> bool:
        return super().__len__() > 0

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            begin, end, _ = place.indices(len(self))
            missing = max(min(self.start, end) - begin, 0)
            kept = super().__getitem__(slice(max(begin - self.start, 0), max(end - self.start, 0)))
            return [SETTLED] * missing + kept
        index = place if place >= 0 else len(self) + place
        return SETTLED if index < self.start else super().__getitem__(index - self.start)

    def __setitem__(self, place: Any, value: Any) -> None:
        super().__setitem__(place - self.start, value)

    def __delitem__(self, place: SupportsIndex | slice) -> None:
        assert isinstance(place, slice), place
        assert place.stop is None, place
        end = min(place.start, len(self))
        super().__delitem__(slice(max(end - self.start, 0), None))
        self.start = min(self.start, end)

    def __iadd__(self, added: Iterable[Entry]) -> Tail:  # type: ignore[override, misc]  # A list's own returns Self.
        self.extend(added)
        return self

    def extend(self, added: Iterable[Entry]) -> None:
        """Add entries; those below the settled end are counted and dropped."""
        before, new = len(self), list(added)
        if new and new[0] is SETTLED:
            # A leader has again what an unclean election took from the committed records.
            self.start = before + new.count(SETTLED)
            super().clear()
            new = new[new.count(SETTLED) :]
            self._truth.settle_again(self.start)
        if not self and self.start < self._truth.settled_end:
            passed = min(self._truth.settled_end - self.start, len(new))
            self.start += passed
            new = new[passed:]
        super().extend(new)
        if before < self._truth.former_settled_end and self is self._truth.committed:
            self._truth.recall()

    def forget_before(self, offset: int) -> None:
        """Drop the entries before an offset; a log that ends before that offset begins there anew."""
        if offset > self.start:
            super().__delitem__(slice(0, offset - self.start))
            self.start = offset


class SettledObservedLog(ObservedLog):
    """Follow one replica's log from the settled end or from its own start on."""

    entries: Tail

    def __init__(self, truth: SettledReferenceLog, log: ReplicaLog, node: NodeView, former: ObservedLog | None) -> None:
        super().__init__(log, node.incarnation, node.broker, former)
        self.entries = Tail(truth)
        self._truth = truth
        self.start_max: int = former.start_max if isinstance(former, SettledObservedLog) else 0
        """The greatest start that this broker's log ever had; a process that is killed may forget it."""

    def read_on(self, decoder: Decoder) -> LogChange:
        """Read the records appended and truncated since the last reading."""
        change = super().read_on(decoder)
        self.start_max = max(self.start_max, self.log.log.log_start_offset)
        if self.claim is not None:
            self._truth.deleted_end = max(self._truth.deleted_end, self.log.log.log_start_offset)
        first_offset = max(change.first_offset, self.entries.start)
        return LogChange(first_offset, change.is_first, change.is_cut, change.taken)

    def _read_through(self, decoder: Decoder, end_offset: int) -> None:
        self.entries.forget_before(min(self.log.log.log_start_offset, end_offset))
        super()._read_through(decoder, end_offset)

    @property
    def read_from(self) -> int:
        """Return the offset from which on the entries are known."""
        return max(self.start_max, self.entries.start)

    def begins_after(self, offset: int) -> bool:
        """Return whether the record at an offset is not known."""
        return offset < self.read_from

    def agree(self, committed: list[Entry]) -> int:
        """Return how many first entries equal the committed ones; what is settled, or below a log start, counts."""
        start = committed.start if isinstance(committed, Tail) else 0
        known_end = min(max(self.entries.start, start), len(self.entries), len(committed))
        self.agreed = max(self.agreed, known_end)
        return super().agree(committed)


class SettledReferenceLog(ReferenceLog):
    """Hold the committed records of one partition from the settled end on."""

    committed: Tail

    def __init__(self, partition: int) -> None:
        super().__init__(partition)
        self.settled_end = 0
        self.deleted_end = 0
        """The greatest log start of a leader: retention or DeleteRecords has taken what lies below."""
        self._epochs: list[tuple[int, int]] = []
        """The offset at which each leader epoch begins in what is settled, and the epoch."""
        self._former_epochs: list[tuple[int, int]] = []
        """The same of the longest settled beginning that an unclean election cut."""
        self.former_settled_end = 0
        """Where that beginning ended."""
        self.committed = Tail(self)

    def give_up(self, keep: int, at_ms: TimeMs, election: UncleanElection) -> None:
        """Truncate the committed records to the first `keep`, settled ones too."""
        super().give_up(keep, at_ms, election)
        if keep < self.settled_end:
            if self.settled_end > self.former_settled_end:
                self._former_epochs, self.former_settled_end = self._epochs, self.settled_end
            self.settled_end = keep
            self.deleted_end = min(self.deleted_end, keep)
            self._epochs = [each for each in self._epochs if each[0] < keep]
            self.settled.lose(keep, self.losses[-1].cause)

    def settle_again(self, end: int) -> None:
        """Restore the settled end to an offset below which an unclean election had cut the records."""
        self.settled_end = end
        self._epochs = [each for each in self._former_epochs if each[0] < end]

    def recall(self) -> None:
        """Remove the losses of settled records that are committed again, in the same leader epochs."""
        committed, former = self.committed, self._former_epochs

        def is_back(offset: int) -> bool:
            if not offset < len(committed):
                return False
            return offset < committed.start or committed[offset].epoch == _epoch_at(former, offset)

        self.settled.recall(is_back)

    def settle(self, writes: list[Write]) -> list[Write]:
        """Raise the settled end as far as the replicas allow; return the writes to this partition that are left.

        All of them were acknowledged.
        """
        end = max(self._agreed_end() - KEPT_COUNT, self.settled_end)
        settled = {id(write): write for write in writes if 0 <= write.offset < end and self._has(write)}
        self.settled.note(settled.values())
        if end > self.settled_end:
            self._note_epochs(end)
            self.settled_end = end
            self.appended.clear()  # Asked of writes that failed for certain alone; real clients' never do.
            self.matching = {place: known for place, known in self.matching.items() if place[0] >= end}
            for log in (self.committed, *(each.entries for each in self._settling(end))):
                log.forget_before(end)
        return [write for write in writes if id(write) not in settled]

    def is_settled(self, write: Write) -> bool:
        """Return whether the record of an acknowledged write is settled or deleted at the write's offset."""
        return 0 <= write.offset < max(self.settled_end, self.deleted_end) and self._has(write)

    def _has(self, write: Write) -> bool:
        """Return whether a write's record is committed: one offset has one record in a leader epoch (I11)."""
        if write.offset >= self.settled_end:
            return self.has_at(write.offset, write.value)
        return _epoch_at(self._epochs, write.offset) == write.epoch

    def _note_epochs(self, end: int) -> None:
        for offset in range(self.settled_end, end):
            epoch = self.committed[offset].epoch
            if not self._epochs or self._epochs[-1][1] != epoch:
                self._epochs.append((offset, epoch))

    def _settling(self, end: int) -> list[SettledObservedLog]:
        logs = (each for each in self.observed_logs.values() if isinstance(each, SettledObservedLog))
        return [each for each in logs if each.agreed >= end]

    def _agreed_end(self) -> int:
        """Return the offset up to which all logs of ISR and ELR equal the committed records; 0 without a leader."""
        state = self.state
        if state is None or not state.has_leader or self.is_deleted:
            return 0
        logs = [self.observed_logs.get(broker) for broker in (*state.isr, *state.elr)]
        return min(0 if log is None else log.agree(self.committed) for log in logs)


def _epoch_at(epochs: list[tuple[int, int]], offset: int) -> int | None:
    """Return the leader epoch of the record at an offset; None if it is not known."""
    place = bisect(epochs, offset, key=lambda each: each[0]) - 1
    return epochs[place][1] if place >= 0 else None


class SettlingStepChecker(StepChecker):
    """Check the invariants after every event; `settle` drops the records that are settled."""

    def settle(self, writes: list[Write]) -> list[Write]:
        """Settle all partitions; return the acknowledged writes that are not settled, and no others.

        Cost: linear in writes and in what is kept.
        """
        of_partition: dict[int, list[Write]] = {}
        for write in writes:
            if write.fate is Fate.ACKED:
                of_partition.setdefault(write.partition, []).append(write)
        left: list[Write] = []
        for partition in sorted(of_partition.keys() | self.references.keys()):
            reference, written = self._reference(partition), of_partition.get(partition, [])
            assert isinstance(reference, SettledReferenceLog)
            left += reference.settle(written)
        return left

    def _new_reference(self, partition: int) -> ReferenceLog:
        return SettledReferenceLog(partition)

    def _new_observed(
        self, reference: ReferenceLog, node: NodeView, log: ReplicaLog, former: ObservedLog | None
    ) -> ObservedLog:
        assert isinstance(reference, SettledReferenceLog)
        return SettledObservedLog(reference, log, node, former)
