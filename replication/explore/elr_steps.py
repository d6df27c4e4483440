"""Compute the steps of Model 2 by the rules of replication: one pure function for each kind of step.

States that no rule can distinguish are made equal. They do not contain time (the model chooses which follower lags, and
when the leader checks), the order of the ISR, or the absolute partition epoch.

Source: the rules' own modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, Offset
from broker.units import TimeMs
from replication.explore.tiny_log import LATER, Record, epochs_of
from replication.rules import controller_events
from replication.rules.alter_partition import alter, react
from replication.rules.election import ElectionPolicy
from replication.rules.epochs import assigned, latest_epoch
from replication.rules.fetch import FetchRequest, after_answer, decide_fetch, recorded
from replication.rules.high_watermark import leader_high_watermark
from replication.rules.isr import is_caught_up, may_join, propose_expand, propose_shrink
from replication.rules.leadership import become_leader, unassigned
from replication.rules.partition import (
    AlterPartitionRequest,
    BrokerStatus,
    Follower,
    LeaderState,
    LogState,
    PartitionEpoch,
    PartitionState,
)
from replication.rules.settings import Moment, PartitionSettings
from replication.rules.truncation import out_of_range, truncated

NOW: Final = TimeMs(0)

PAST: Final = PartitionEpoch(0)
PRESENT: Final = PartitionEpoch(1)


class Disk(NamedTuple):
    """Hold one broker's log of the partition, and its high watermark."""

    log: tuple[Record, ...]
    high_watermark: int


class ControllerState(NamedTuple):
    """Hold the controller's state, the AlterPartition request in flight, and the events that may still happen."""

    partition: PartitionState
    statuses: tuple[BrokerStatus, ...]
    in_flight: AlterPartitionRequest | None
    fences_left: int
    losses_left: int
    restarts_left: int
    shrinks_left: int

    @property
    def brokers(self) -> Mapping[BrokerId, BrokerStatus]:
        """Return the registered brokers."""
        return {BrokerId(broker): status for broker, status in enumerate(self.statuses)}

    def with_status(self, broker: int, status: BrokerStatus, partition: PartitionState | None) -> ControllerState:
        """Return the state with one broker's status, and perhaps the partition, changed."""
        statuses = (*self.statuses[:broker], status, *self.statuses[broker + 1 :])
        return rebased(self._replace(statuses=statuses, partition=partition or self.partition))


class ElrSteps:
    """Compute the steps under one partition's settings and one election policy."""

    def __init__(self, settings: PartitionSettings, policy: ElectionPolicy) -> None:
        self.settings = settings
        self._policy = policy

    def leader_state(self, controller: ControllerState, leader: LeaderState | None, disk: Disk) -> LeaderState | None:
        """Return the leader's state once it knows the controller's; `disk` is that of the new leader."""
        partition = controller.partition
        if not partition.has_leader:
            return None
        known = leader if leader is not None and leader.broker == partition.leader else unassigned(partition.leader)
        leading = become_leader(known, partition, self.log_of(disk, None), NOW, self.settings.rules)
        assert leading is not None, (known, partition)
        followers = tuple(_timeless(follower) for follower in leading.state.followers)
        return attrs.evolve(leading.state, followers=followers)

    def fenced(self, controller: ControllerState, broker: int) -> ControllerState:
        """Return the controller's state after a broker's session has expired."""
        active = controller_events.active_brokers(controller.brokers)
        after = controller_events.fenced(controller.partition, BrokerId(broker), active, self.settings, self._policy)
        status = attrs.evolve(controller.statuses[broker], fenced=True)
        return controller.with_status(broker, status, after)._replace(fences_left=controller.fences_left - 1)

    def returned(self, controller: ControllerState, broker: int, *, new_epoch: bool, lossy: bool) -> ControllerState:
        """Return the controller's state after a fenced broker is back, perhaps restarted, perhaps with loss."""
        old = controller.statuses[broker]
        status = BrokerStatus(epoch=BrokerEpoch(old.epoch + new_epoch))
        active = controller_events.active_brokers(controller.brokers)
        partition = controller.partition
        if lossy:
            partition = (
                controller_events.restarted_uncleanly(partition, BrokerId(broker), active, self.settings, self._policy)
                or partition
            )
        after = controller_events.unfenced(partition, BrokerId(broker), active, self.settings, self._policy)
        following = controller.with_status(broker, status, after or partition)
        return following._replace(
            losses_left=controller.losses_left - lossy,
            restarts_left=controller.restarts_left - (new_epoch and not lossy),
        )

    def fetched(
        self, leader: LeaderState, source: Disk, broker: int, disk: Disk, status: BrokerStatus
    ) -> tuple[LeaderState, Disk] | None:
        """Return leader and follower after a fetch of at most one record; None if the fetch is refused."""
        rules = self.settings.rules
        log, served = self.log_of(disk, None), self.log_of(source, leader)
        request = FetchRequest(
            replica=BrokerId(broker),
            offset=log.end_offset,
            leader_epoch=leader.leader_epoch,
            last_fetched_epoch=latest_epoch(log.epochs),
            broker_epoch=status.epoch,
        )
        decision = decide_fetch(leader, served, request, Moment(NOW, {BrokerId(broker): status}), rules)
        answer = decision.answer
        if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            cut_to = out_of_range(log, served.start_offset, served.end_offset).cut_to
            return None if cut_to is None else (leader, _cut(disk, truncated(log, cut_to, rules)))
        if answer.error is not ErrorCode.NONE:
            return None
        if decision.is_recorded:
            leader = self._learned(leader, request, served)
        if answer.diverging is None:
            disk = disk._replace(log=source.log[: len(disk.log) + 1])
        return leader, _cut(disk, after_answer(self.log_of(disk, None), answer, rules))

    def high_watermark(self, leader: LeaderState, disk: Disk, controller: ControllerState) -> int:
        """Return the high watermark to which the leader may raise its own."""
        moment = Moment(LATER, controller.brokers)
        return leader_high_watermark(leader, self.log_of(disk, leader), moment, self.settings)

    def shrunk(
        self, controller: ControllerState, leader: LeaderState, disk: Disk, broker: int
    ) -> tuple[ControllerState, LeaderState] | None:
        """Return controller and leader after the leader dropped a lagging follower, accepted at once."""
        follower = leader.follower(BrokerId(broker))
        if leader.pending is not None or follower is None:
            return None
        if is_caught_up(follower, Offset(len(disk.log)), LATER, self.settings):
            return None
        proposed = propose_shrink(leader, (BrokerId(broker),), controller.statuses[leader.broker].epoch)
        assert proposed.pending is not None
        following, after = self._delivered(controller, proposed, proposed.pending)
        return following._replace(shrinks_left=controller.shrinks_left - 1), after

    def proposed(
        self, controller: ControllerState, leader: LeaderState, disk: Disk, broker: int
    ) -> tuple[ControllerState, LeaderState] | None:
        """Return controller and leader after the leader sent AlterPartition to add a follower."""
        follower = leader.follower(BrokerId(broker))
        moment = Moment(LATER, controller.brokers)
        if follower is None or not may_join(leader, self.log_of(disk, leader), follower, moment, self.settings):
            return None
        after = propose_expand(leader, BrokerId(broker), controller.statuses[leader.broker].epoch)
        return controller._replace(in_flight=after.pending), after

    def delivered(
        self, controller: ControllerState, leader: LeaderState | None
    ) -> tuple[ControllerState, LeaderState | None]:
        """Return controller and leader after the request in flight arrived and was answered."""
        request = controller.in_flight
        assert request is not None
        arrived = controller._replace(in_flight=None)
        if leader is None:
            return arrived, None
        return self._delivered(arrived, leader, request)

    def log_of(self, disk: Disk, leader: LeaderState | None) -> LogState:
        """Return a log as the rules see it; with `leader` given, its epoch is assigned in the cache."""
        noted = epochs_of(disk.log)
        if leader is not None and self.settings.rules.epoch_cached_on_election:
            noted = assigned(noted, leader.leader_epoch, leader.epoch_start_offset)
        return LogState(Offset(0), Offset(len(disk.log)), Offset(disk.high_watermark), noted)

    def _learned(self, leader: LeaderState, request: FetchRequest, log: LogState) -> LeaderState:
        before = leader.follower(request.replica)
        assert before is not None, request
        after = recorded(before, request, leader.leader_epoch, log.end_offset, NOW)
        return leader.with_follower(_timeless(after))

    def _delivered(
        self, controller: ControllerState, leader: LeaderState, request: AlterPartitionRequest
    ) -> tuple[ControllerState, LeaderState]:
        altered = alter(controller.partition, request, controller.brokers, self.settings, self._policy)
        _, after = react(leader, request, altered)
        after = attrs.evolve(after, isr=tuple(sorted(after.isr)), partition_epoch=PRESENT)
        return rebased(controller._replace(partition=altered.partition)), after


def rebased(controller: ControllerState) -> ControllerState:
    """Return the controller's state with the ISR sorted and partition epochs counted from the present one.

    The rules only compare partition epochs, and every live broker knows the present epoch at once. So the epoch only
    says whether the request in flight was sent before the last change.
    """
    partition, request = controller.partition, controller.in_flight
    if request is not None:
        sent = PRESENT if request.partition_epoch == partition.partition_epoch else PAST
        request = attrs.evolve(request, partition_epoch=sent)
    isr = tuple(sorted(partition.isr))
    partition = attrs.evolve(partition, isr=isr, partition_epoch=PRESENT)
    return controller._replace(partition=partition, in_flight=request)


def _timeless(follower: Follower) -> Follower:
    return Follower(
        follower.broker,
        end_offset=follower.end_offset,
        broker_epoch=follower.broker_epoch,
        leader_epoch=follower.leader_epoch,
    )


def _cut(disk: Disk, log: LogState) -> Disk:
    return Disk(disk.log[: log.end_offset], log.high_watermark)
