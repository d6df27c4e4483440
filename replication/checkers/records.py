"""Check the metadata log: the invariants of each record after the records before it.

The checker reads the controller's log only, and keeps its own image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from broker.ids import NO_LEADER, BrokerEpoch, BrokerId
from replication.checkers.elections import (
    Cause,
    Ground,
    UncleanElection,
    ground_of,
    is_unclean,
    next_eligible,
    passed_over,
    without_restarted,
)
from replication.checkers.moves import MoveChecker
from replication.checkers.rare import RareStates
from replication.roles.messages import (
    AlterPartition,
    BrokerRegistration,
    ConfigRecord,
    Incarnation,
    MetadataRecord,
    PartitionRecord,
    PartitionRemoved,
)
from replication.roles.metadata import with_own
from replication.rules.partition import BrokerStatus, PartitionState
from replication.rules.settings import PartitionSettings

Broken = tuple[str, int, str]
"""A violation: its code, its partition, and a description."""


class RecordReader:
    """Read the metadata log, and keep a separate image of it."""

    def __init__(self, settings: PartitionSettings, rare: RareStates) -> None:
        self.offset = 0
        self.removed: list[int] = []
        """The partitions whose topics were deleted."""
        self._settings = settings
        self._own_settings: dict[int, PartitionSettings] = {}
        """The settings of the partitions whose topics have settings of their own."""
        self._rare = rare
        self._moves = MoveChecker(settings)
        self._partitions: dict[int, PartitionState] = {}
        self._eligible: dict[int, frozenset[BrokerId]] = {}
        """Who should be in each partition's ELR, by what happened; not what the records say of it."""
        self._brokers: dict[BrokerId, BrokerStatus] = {}
        self._unclean: dict[int, list[UncleanElection]] = {}
        self._former_epochs: dict[BrokerId, int] = {}
        self._last_leaders: dict[int, BrokerId] = {}
        """The broker that led each partition last."""
        self._reverted: dict[int, tuple[BrokerId, ...]] = {}
        """The ISR that a cancelled move left each partition with, though nobody in it was in sync."""
        self._orders: dict[int, PartitionState] = {}
        """The state that a ZooKeeper-era controller wants to write for an operator's UNCLEAN election."""

    def settings_of(self, partition: int) -> PartitionSettings:
        """Return a partition's settings: its topic's own, or those that hold for all."""
        return self._own_settings.get(partition, self._settings)

    @property
    def brokers(self) -> Mapping[BrokerId, BrokerStatus]:
        """Return the registered brokers after the records read."""
        return self._brokers

    def deposed_sender(self, message: AlterPartition) -> str:
        """Describe a request of an earlier leader epoch or of a fenced broker; "" for another one."""
        request = message.request
        status, state = self._brokers.get(request.leader), self._partitions[message.partition]
        if status is None or status.fenced or request.leader_epoch < state.leader_epoch:
            return f"a request of broker {request.leader}, fenced or deposed,"
        return ""

    def stops_uncleanly(self, request: BrokerRegistration, clean_stops: Mapping[Incarnation, BrokerEpoch]) -> bool:
        """Return whether the last registered incarnation of a broker did not stop cleanly just before this one.

        `clean_stops` is what the machine did; what the request says of it is not asked.
        """
        status = self._brokers.get(request.broker)
        _, _, incarnation = request.incarnation.rpartition("/")
        return status is not None and clean_stops.get(Incarnation(int(incarnation) - 1)) != status.epoch

    def note_order(self, partition: int, state: PartitionState) -> None:
        """Record the state that a ZooKeeper-era controller asks to write for an operator's UNCLEAN election."""
        self._orders[partition] = state

    def take_unclean(self, partition: int) -> list[UncleanElection]:
        """Return the unclean elections since the last call."""
        return self._unclean.pop(partition, [])

    def read_on(self, log: Sequence[MetadataRecord], cause: Cause) -> Iterator[Broken]:
        """Yield the violations of the records from `offset` on, which the controller wrote for `cause`."""
        lost: list[tuple[BrokerId, int]] = []
        while self.offset < len(log):
            record = log[self.offset]
            self.offset += 1
            if isinstance(record, ConfigRecord):
                self._own_settings[record.partition] = with_own(self._settings, record)
                continue
            if isinstance(record, PartitionRemoved):
                del self._partitions[record.partition]
                self._eligible.pop(record.partition, None)
                self._last_leaders.pop(record.partition, None)
                self._moves.forget(record.partition)
                self.removed.append(record.partition)
                continue
            if isinstance(record, PartitionRecord):
                before = self._partitions.get(record.partition)
                self._partitions[record.partition] = record.state
                for code, what in self._shape(record.partition, record.state):
                    yield code, record.partition, what
                if before is None:
                    self._eligible[record.partition] = frozenset(record.state.elr)
                else:
                    self._rare.note_record(before, record.state, cause.proposed)
                    for code, what in self._step(record.partition, before, record.state, cause):
                        yield code, record.partition, what
                if record.state.leader != NO_LEADER:
                    self._last_leaders[record.partition] = record.state.leader
                continue
            known = self._brokers.get(record.broker)
            if known is not None and known.epoch > record.status.epoch:
                yield "I3", -1, f"the epoch of broker {record.broker} fell to {record.status.epoch}"
            if known is not None and known.epoch == record.status.epoch and known.offline - record.status.offline:
                forgotten = sorted(known.offline - record.status.offline)
                yield "I2", forgotten[0], f"the failed directory of broker {record.broker} was forgotten: {forgotten}"
            if known is not None and known.epoch == record.status.epoch:
                lost += [(record.broker, partition) for partition in record.status.offline - known.offline]
            if known is not None and known.epoch != record.status.epoch:
                self._former_epochs[record.broker] = known.epoch
            self._brokers[record.broker] = record.status
        yield from self._fenced_members()
        yield from self._lost_members(lost)

    def unclean_members(self, broker: BrokerId, before: int) -> Iterator[tuple[int, str]]:
        """Yield the partitions whose ISR or ELR holds a broker that has just restarted uncleanly."""
        status = self._brokers.get(broker)
        if not self._settings.rules.elr or status is None or status.epoch < before:
            return
        for partition, state in self._partitions.items():
            if broker in state.isr or broker in state.elr:
                yield partition, f"broker {broker} stopped uncleanly and is in {state.isr} or {state.elr}"

    def _shape(self, partition: int, state: PartitionState) -> Iterator[tuple[str, str]]:
        if state.leader != NO_LEADER and state.leader not in state.isr:
            yield "I1", f"leader {state.leader} is not in {state.isr}"
        counted = (*state.isr, *state.elr)
        # As a reassignment ends, Kafka leaves a removed replica in the ELR.
        if len(set(counted)) != len(counted) or not set(state.isr) <= set(state.replicas):
            yield "I2", f"ISR {state.isr}, ELR {state.elr}, replicas {state.replicas}"
        if state.elr and len(state.isr) >= min(self.settings_of(partition).min_isr, len(state.replicas)):
            yield "I2", f"ELR {state.elr} beside ISR {state.isr}"

    def _fenced_members(self) -> Iterator[Broken]:
        if not self._settings.rules.elr:
            return
        for partition, state in self._partitions.items():
            for broker in () if self._reverted.get(partition) == state.isr else state.isr:
                status = self._brokers.get(broker)
                # Before anybody has registered for the first time, the ISR is as the topic was made.
                if status is not None and status.fenced and broker in self._former_epochs:
                    yield "I2", partition, f"broker {broker} is fenced and in ISR {state.isr}"

    def _lost_members(self, lost: list[tuple[BrokerId, int]]) -> Iterator[Broken]:
        """Yield partitions whose ISR holds a replica in a log directory that was just recorded as failed (I2)."""
        for broker, partition in sorted(lost) if self._settings.rules.elr else ():
            state = self._partitions.get(partition)
            if state is not None and broker in state.isr:
                yield "I2", partition, f"the directory of broker {broker} has failed, and it is in ISR {state.isr}"

    def _step(
        self, partition: int, before: PartitionState, after: PartitionState, cause: Cause
    ) -> Iterator[tuple[str, str]]:
        if after.partition_epoch != before.partition_epoch + 1:
            yield "I3", f"partition epoch {before.partition_epoch} was followed by {after.partition_epoch}"
        is_moved = after.leader != before.leader
        if after.leader_epoch < before.leader_epoch + is_moved:
            yield "I3", f"leader epoch {before.leader_epoch} was followed by {after.leader_epoch}, moved: {is_moved}"
        if not cause.by_zookeeper and after.leader_epoch > before.leader_epoch + self._may_rise(before, after):
            yield "I3", f"leader epoch {before.leader_epoch} became {after.leader_epoch} for nothing"
        if set(before.replicas).difference(after.replicas) and after.leader_epoch == before.leader_epoch:
            yield "I3", f"replicas {before.replicas} became {after.replicas} in leader epoch {after.leader_epoch}"
        yield from self._last_known(before, after)
        leads = self._brokers.get(after.leader)
        if is_moved and not cause.by_zookeeper and leads is not None and partition in leads.offline:
            yield "I28", f"broker {after.leader} was elected, where the directory of the replica has failed"
        # What the controller wrote of the ELR is not asked; an election is judged by who should have been in it.
        eligible = self._eligible[partition]
        counted = attrs.evolve(before, elr=tuple(sorted(eligible)))
        is_outsider = is_unclean(counted, after, cause)
        if is_outsider:
            yield from self._judge(partition, without_restarted(counted, cause), after, cause)
        settings = self.settings_of(partition)
        self._eligible[partition] = frozenset() if is_outsider else next_eligible(counted, after, cause, settings)
        yield from self._compare_elr(partition, after, cause)
        yield from self._moves.note(partition, before, after, cause, is_unclean=is_outsider)
        if self._reverted.get(partition) != after.isr:
            self._reverted.pop(partition, None)
        joined = set(after.isr).difference(before.isr)
        if joined and cause.cancelled == partition and self._is_reverted(partition, before, after):
            # PartitionReassignmentRevert puts the first replica in the ISR, whatever it holds and dead or alive.
            self._reverted[partition] = after.isr
            election = UncleanElection(after.isr[0], after.leader_epoch, Ground.CANCELLED)
            self._unclean.setdefault(partition, []).append(election)
            return
        if joined and not cause.proposed and not is_outsider and not joined <= eligible:
            yield "I26", f"ISR {before.isr} became {after.isr} without its leader's word"

    def _last_known(self, before: PartitionState, after: PartitionState) -> Iterator[tuple[str, str]]:
        """Check the last known leader: the one that led last once leadership is lost, none after an election (I28)."""
        if not self._settings.rules.elr or after.leader == before.leader:
            return
        wanted = (before.leader,) if after.leader == NO_LEADER else ()
        if after.last_known != wanted:
            yield "I28", f"leader {before.leader} became {after.leader}, and the last known are {after.last_known}"

    def _compare_elr(self, partition: int, after: PartitionState, cause: Cause) -> Iterator[tuple[str, str]]:
        """Yield who is in the ELR and should not be, and who should be and is not (I31)."""
        eligible, listed = self._eligible[partition], set(after.elr)
        if missing := sorted(eligible - listed):
            yield "I31", f"brokers {missing} should be eligible: the ISR is {after.isr}, the ELR {after.elr}"
        # A broker that has just restarted uncleanly is looked for in all partitions (I25).
        if added := sorted(listed - eligible - {cause.registers}):
            yield "I31", f"brokers {added} should not be eligible: the ISR is {after.isr}, the ELR {after.elr}"

    def _may_rise(self, before: PartitionState, after: PartitionState) -> bool:
        """Return whether the leader epoch may rise: a new leader, a replica gone, a smaller ISR before KAFKA-15021."""
        is_smaller = not set(after.isr).issuperset(before.isr)
        return (
            after.leader != before.leader
            or not set(after.replicas).issuperset(before.replicas)
            or (is_smaller and not self._settings.rules.isr_shrink_keeps_leader_epoch)
        )

    def _is_reverted(self, partition: int, before: PartitionState, after: PartitionState) -> bool:
        """Return whether a cancelled move left nobody in the ISR but the first replica, where that is allowed."""
        kept = set(before.isr).difference(before.adding)
        return self.settings_of(partition).unclean_election and not kept and after.isr == after.replicas[:1]

    def _judge(
        self, partition: int, before: PartitionState, after: PartitionState, cause: Cause
    ) -> Iterator[tuple[str, str]]:
        """Note an unclean election and its ground, and yield what is wrong with it (I28)."""
        order = self._orders.pop(partition, None)
        is_asked = cause.ordered == partition and not before.has_leader
        if order is not None:
            is_asked = (order.leader, order.leader_epoch) == (after.leader, after.leader_epoch)
        last_leader = self._last_leaders.get(partition, NO_LEADER)
        ground = ground_of(before, after, last_leader, self.settings_of(partition), is_asked=is_asked)
        election = UncleanElection(after.leader, after.leader_epoch, ground)
        self._unclean.setdefault(partition, []).append(election)
        members = f"ISR {before.isr} and ELR {before.elr}"
        if ground is Ground.NONE:
            yield "I28", f"broker {after.leader} was elected from outside {members}; no setting and no rule allows it"
        elif not cause.by_zookeeper and (able := passed_over(partition, before, after, self._brokers)):
            yield "I28", f"broker {after.leader} was elected from outside {members}, though {able} could lead"
