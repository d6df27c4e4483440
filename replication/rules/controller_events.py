"""Decide what the controller does to a partition when a broker is fenced, unfenced, restarts uncleanly or loses a disk.

One broker at a time, each event on the result of the one before: two changes computed from the same old state would
undo each other (KAFKA-13173). An event that does not concern a partition returns None.

Example: fence the leader of a partition with ISR (1, 2).

>>> one, two = BrokerId(1), BrokerId(2)
>>> partition = PartitionState(replicas=(one, two), isr=(one, two), leader=one)
>>> after = fenced(partition, one, frozenset((one, two)), PartitionSettings())
>>> after.leader, after.isr, after.leader_epoch
(2, (2,), 1)
>>> fenced(after, one, frozenset((two,)), PartitionSettings()) is None
True

Source: Kafka metadata ReplicationControlManager.handleBrokerFenced, handleBrokerUnfenced, handleUncleanBrokerShutdown,
handleDirectoriesOffline, handleAssignReplicasToDirs, electLeaders (the ElectLeaders request) and
maybeElectUncleanLeaders, 4.3.1; KAFKA-12670, KAFKA-13173, KIP-460, KIP-858, KIP-966.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId
from replication.rules.election import Election, ElectionPolicy, elect
from replication.rules.partition import BrokerStatus, PartitionEpoch, PartitionState
from replication.rules.partition_change import change, target_of
from replication.rules.settings import PartitionSettings


def active_brokers(brokers: Mapping[BrokerId, BrokerStatus]) -> frozenset[BrokerId]:
    """Return the registered brokers that are neither fenced nor in controlled shutdown."""
    return frozenset(broker for broker, status in brokers.items() if status.is_active)


def fenced(
    partition: PartitionState,
    broker: BrokerId,
    active: frozenset[BrokerId],
    settings: PartitionSettings,
    policy: ElectionPolicy = elect,
) -> PartitionState | None:
    """Return the partition after `broker` was fenced, began controlled shutdown, or lost the replica's directory.

    `active` holds the brokers that could lead before the event; `broker` no longer can. None if nothing changes.
    """
    if broker not in partition.isr:
        return None
    isr = tuple(member for member in partition.isr if member != broker)
    return change(partition, target_of(partition, isr, settings), active - {broker}, settings, policy)


def fenced_together(
    partition: PartitionState,
    brokers: tuple[BrokerId, ...],
    active: frozenset[BrokerId],
    settings: PartitionSettings,
    policy: ElectionPolicy = elect,
) -> PartitionState:
    """Return the partition after the sessions of several brokers expired in one tick, in the order given.

    Without the rule `fence_one_at_a_time` each change is computed from the state before the tick, and the last one
    wins.
    """
    state = partition
    for broker in brokers:
        base = state if settings.rules.fence_one_at_a_time else partition
        following = fenced(base, broker, active, settings, policy)
        if following is not None:
            epochs_behind = state.partition_epoch - base.partition_epoch
            state = attrs.evolve(following, partition_epoch=PartitionEpoch(following.partition_epoch + epochs_behind))
        if settings.rules.fence_one_at_a_time:
            active = active - {broker}
    return state


def unfenced(
    partition: PartitionState,
    broker: BrokerId,
    active: frozenset[BrokerId],
    settings: PartitionSettings,
    policy: ElectionPolicy = elect,
) -> PartitionState | None:
    """Return the partition after `broker` was unfenced; None unless it was leaderless and a leader is found."""
    if partition.has_leader:
        return None
    return change(partition, target_of(partition, partition.isr, settings), active | {broker}, settings, policy)


def restarted_uncleanly(
    partition: PartitionState,
    broker: BrokerId,
    active: frozenset[BrokerId],
    settings: PartitionSettings,
    policy: ElectionPolicy = elect,
) -> PartitionState | None:
    """Return the partition after `broker` registered without a clean shutdown; None if nothing changes."""
    if not settings.rules.elr or not settings.rules.elr_excludes_unclean:
        return None
    if broker not in partition.isr and broker not in partition.elr:
        return None
    isr = tuple(member for member in partition.isr if member != broker)
    target = attrs.evolve(target_of(partition, isr, settings), unclean=(broker,))
    return change(partition, target, active - {broker}, settings, policy)


def directories_assigned(partition: PartitionState, settings: PartitionSettings) -> PartitionState:
    """Return the partition after AssignReplicasToDirs moved a replica to another directory."""
    elr = partition.elr if settings.rules.elr_kept_by_every_change else ()
    return attrs.evolve(partition, elr=elr, partition_epoch=PartitionEpoch(partition.partition_epoch + 1))


def election_requested(
    partition: PartitionState,
    election: Election,
    active: frozenset[BrokerId],
    settings: PartitionSettings,
    policy: ElectionPolicy = elect,
) -> tuple[ErrorCode, PartitionState]:
    """Return the answer to an ElectLeaders request, PREFERRED or UNCLEAN, and the partition after it."""
    assert election is not Election.ONLINE, election
    preferred = election is Election.PREFERRED
    if partition.leader == partition.replicas[0] if preferred else partition.has_leader:
        return ErrorCode.ELECTION_NOT_NEEDED, partition
    target = attrs.evolve(target_of(partition, partition.isr, settings), election=election)
    following = change(partition, target, active, settings, policy)
    if following is not None:
        return ErrorCode.NONE, following
    refused = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if preferred else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    return refused, partition


def swept(
    partition: PartitionState,
    active: frozenset[BrokerId],
    settings: PartitionSettings,
    policy: ElectionPolicy = elect,
) -> PartitionState | None:
    """Return the partition after maybeElectUncleanLeaders; None unless it is leaderless and allows unclean election."""
    if partition.has_leader or not settings.unclean_election:
        return None
    target = attrs.evolve(target_of(partition, partition.isr, settings), election=Election.UNCLEAN)
    return change(partition, target, active, settings, policy)
