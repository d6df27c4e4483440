"""Decide whether the controller accepts an AlterPartition request, and what the leader does with the answer.

What it decides: on the controller, whether the proposed ISR is accepted, or which error refuses it; on the leader,
whether the change is final, rolled back, sent again, or pending until newer metadata arrives.

Goals, most important first:
1. Only the leader of the current leader epoch changes the ISR, and only from the partition epoch that is current.
2. No replica is added whose broker is fenced, is shutting down, or has restarted since it fetched.
3. A leader never commits on a guess: a change whose fate it does not know stays pending, which only makes the high
   watermark wait for more replicas.

Constraints: a refused request changes nothing. One case is both: if the change completes a reassignment and thereby
moves leadership, it is made, and the sender gets NEW_LEADER_ELECTED.

How: the checks run in this order: epochs above those of the controller (this controller was replaced), leader epoch
below, sender not leader, partition epoch below, ISR not a duplicate-free subset of the replicas with the leader in it,
recovery state, members not eligible.

Example: the leader sends partition epoch 7 while the controller is at 8, because a broker was fenced meanwhile. The
leader keeps the request pending until it learns of 8.

>>> from broker.ids import BrokerEpoch
>>> from replication.rules.partition import FIRST_LEADER_EPOCH, PartitionEpoch
>>> one, two = BrokerId(1), BrokerId(2)
>>> partition = PartitionState(replicas=(one, two), isr=(one,), leader=one, partition_epoch=PartitionEpoch(8))
>>> request = AlterPartitionRequest(
...     leader=one,
...     leader_epoch=FIRST_LEADER_EPOCH,
...     partition_epoch=PartitionEpoch(7),
...     isr=(IsrMember(one), IsrMember(two)),
... )
>>> brokers = {broker: BrokerStatus(epoch=BrokerEpoch(0)) for broker in (one, two)}
>>> alter(partition, request, brokers, PartitionSettings()).error.name
'INVALID_UPDATE_VERSION'
>>> current = attrs.evolve(request, partition_epoch=PartitionEpoch(8))
>>> alter(partition, current, brokers, PartitionSettings()).partition.isr
(1, 2)

Left out: requests of several partitions; versions of the request before broker epochs and topic ids.

Source: Kafka metadata ReplicationControlManager.alterPartition and validateAlterPartitionData, core
Partition.submitAlterPartition, handleAlterPartitionError and handleAlterPartitionUpdate, 4.3.1; KIP-497, KIP-704,
KIP-841, KIP-903, KAFKA-14154.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from replication.rules.controller_events import active_brokers
from replication.rules.election import ElectionPolicy, elect
from replication.rules.partition import (
    UNKNOWN_BROKER_EPOCH,
    AlterPartitionRequest,
    BrokerStatus,
    IsrMember,
    LeaderState,
    PartitionState,
)
from replication.rules.partition_change import change, target_of
from replication.rules.settings import PartitionSettings
from replication.rules.switches import Rules


@attrs.frozen
class Altered:
    """Hold the controller's answer to AlterPartition, and the partition after it; unchanged if refused."""

    error: ErrorCode
    partition: PartitionState


class Reaction(enum.Enum):
    """Name a leader's reactions to the answer to its AlterPartition request."""

    COMMITTED = enum.auto()
    """The ISR of the answer is the confirmed ISR. The caller looks at the high watermark next."""

    ROLLED_BACK = enum.auto()
    """The controller refused the change: the ISR confirmed before stays."""

    PENDING = enum.auto()
    """The fate of the change is unknown: the request stays pending until newer metadata arrives."""

    RETRY = enum.auto()
    """The leader sends the same request again."""

    IGNORED = enum.auto()
    """The answer is to another request, or its epochs are older than those of the leader."""


_NOT_MADE: Final = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)
_AWAITS_NEWS: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)


def validate(
    partition: PartitionState | None,
    request: AlterPartitionRequest,
    brokers: Mapping[BrokerId, BrokerStatus],
    rules: Rules,
) -> ErrorCode:
    """Return the error with which the controller refuses a request, else NONE; None is an unknown partition."""
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    epoch_error = _check_epochs(partition, request, rules)
    if epoch_error is not ErrorCode.NONE:
        return epoch_error
    members = request.members
    if len(set(members)) != len(members) or not set(members).issubset(partition.replicas):
        return ErrorCode.INVALID_REQUEST
    if request.leader not in members:
        return ErrorCode.INVALID_REQUEST
    if request.recovering and (len(members) > 1 or not partition.recovering):
        return ErrorCode.INVALID_REQUEST
    if not all(_is_eligible_member(member, brokers.get(member.broker), rules) for member in request.isr):
        return ErrorCode.INELIGIBLE_REPLICA if rules.isr_join_eligibility else ErrorCode.OPERATION_NOT_ATTEMPTED
    return ErrorCode.NONE


def alter(
    partition: PartitionState,
    request: AlterPartitionRequest,
    brokers: Mapping[BrokerId, BrokerStatus],
    settings: PartitionSettings,
    policy: ElectionPolicy = elect,
) -> Altered:
    """Return the controller's answer to a request, and the partition after it."""
    error = validate(partition, request, brokers, settings.rules)
    if error is not ErrorCode.NONE:
        return Altered(error, partition)
    target = attrs.evolve(target_of(partition, request.members, settings), recovering=request.recovering)
    following = change(partition, target, active_brokers(brokers), settings, policy)
    if following is None:
        return Altered(ErrorCode.NONE, partition)
    # The request is of the partition's leader: another one leads in a later epoch.
    moved = following.leader != request.leader
    return Altered(ErrorCode.NEW_LEADER_ELECTED if moved else ErrorCode.NONE, following)


def react(leader: LeaderState, request: AlterPartitionRequest, altered: Altered) -> tuple[Reaction, LeaderState]:
    """Return a leader's reaction to the answer to `request`, and the leader's state after it."""
    if leader.pending != request:
        return Reaction.IGNORED, leader
    if altered.error in _NOT_MADE:
        return Reaction.ROLLED_BACK, attrs.evolve(leader, pending=None)
    if altered.error in _AWAITS_NEWS:
        return Reaction.PENDING, leader
    if altered.error is not ErrorCode.NONE:
        return Reaction.RETRY, leader
    answer = altered.partition
    if answer.leader_epoch != leader.leader_epoch or answer.partition_epoch < leader.partition_epoch:
        return Reaction.IGNORED, leader
    confirmed = attrs.evolve(leader, isr=answer.isr, partition_epoch=answer.partition_epoch, pending=None)
    return Reaction.COMMITTED, confirmed


def _check_epochs(partition: PartitionState, request: AlterPartitionRequest, rules: Rules) -> ErrorCode:
    ahead = request.leader_epoch > partition.leader_epoch or request.partition_epoch > partition.partition_epoch
    if ahead and rules.isr_write_ahead_refused:
        return ErrorCode.NOT_CONTROLLER
    if request.leader_epoch < partition.leader_epoch and rules.isr_write_epoch_check:
        return ErrorCode.FENCED_LEADER_EPOCH
    if request.leader != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if request.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return ErrorCode.NONE


def _is_eligible_member(member: IsrMember, status: BrokerStatus | None, rules: Rules) -> bool:
    if rules.isr_join_eligibility and (status is None or not status.is_active):
        return False
    if rules.isr_join_broker_epoch and member.epoch != UNKNOWN_BROKER_EPOCH:
        return status is not None and status.epoch == member.epoch
    return True
