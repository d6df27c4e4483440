"""Define the state machines of the ZooKeeper-era controller: ReplicaStateMachine and PartitionStateMachine.

A replica becomes non-existent only after its deletion succeeded, a partition only when it is offline.

Source: Kafka core controller ReplicaStateMachine and PartitionStateMachine, 4.3.1, removed in 4.0.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class ZkReplicaState(enum.Enum):
    """Name the states of a replica, as Kafka's ReplicaState does."""

    NON_EXISTENT_REPLICA = enum.auto()
    """The controller does not know the replica."""

    NEW_REPLICA = enum.auto()
    """The replica was just assigned, and can only become a follower."""

    ONLINE_REPLICA = enum.auto()
    """The replica leads or follows, as its broker is live."""

    OFFLINE_REPLICA = enum.auto()
    """The replica's broker is not live, or the replica was stopped."""

    REPLICA_DELETION_STARTED = enum.auto()
    """The controller has sent StopReplica with deletion."""

    REPLICA_DELETION_SUCCESSFUL = enum.auto()
    """The replica's broker has answered that the log is deleted."""

    REPLICA_DELETION_INELIGIBLE = enum.auto()
    """The deletion failed, or the broker is not live; the controller tries again when the broker is back."""


class ZkReplicaInput(enum.Enum):
    """Name the state changes that the controller asks for a replica."""

    ASSIGN = enum.auto()
    """The replica belongs to the assignment of a new or a reassigned partition."""

    BRING_ONLINE = enum.auto()
    """The replica's broker is live."""

    TAKE_OFFLINE = enum.auto()
    """The replica's broker is not live, or the replica must stop."""

    DELETE = enum.auto()
    """The replica's log must be deleted."""

    CONFIRM_DELETION = enum.auto()
    """The replica's broker answers that the log is deleted."""

    GIVE_UP_DELETION = enum.auto()
    """The replica's broker cannot delete the log now."""

    FORGET = enum.auto()
    """All replicas of the topic are deleted, or the reassignment has removed the replica."""


class ZkPartitionState(enum.Enum):
    """Name the states of a partition, as Kafka's PartitionState does."""

    NON_EXISTENT_PARTITION = enum.auto()
    """The partition was never created, or is deleted."""

    NEW_PARTITION = enum.auto()
    """The partition has replicas, but no leader and ISR yet."""

    ONLINE_PARTITION = enum.auto()
    """The partition has a leader."""

    OFFLINE_PARTITION = enum.auto()
    """The partition has lost its leader."""


class ZkPartitionInput(enum.Enum):
    """Name the state changes that the controller asks for a partition."""

    ASSIGN = enum.auto()
    """The partition's topic was created."""

    ELECT = enum.auto()
    """The controller elects the partition's first or next leader."""

    TAKE_OFFLINE = enum.auto()
    """The partition's leader is not live."""

    FORGET = enum.auto()
    """The partition's topic is deleted."""


_R, _I = ZkReplicaState, ZkReplicaInput
_P, _J = ZkPartitionState, ZkPartitionInput
_SERVING: Final = (_R.NEW_REPLICA, _R.ONLINE_REPLICA, _R.OFFLINE_REPLICA, _R.REPLICA_DELETION_INELIGIBLE)
_MADE: Final = (_P.NEW_PARTITION, _P.ONLINE_PARTITION, _P.OFFLINE_PARTITION)

ZK_REPLICA_TRANSITIONS: Final[Mapping[tuple[ZkReplicaState, ZkReplicaInput], ZkReplicaState]] = MappingProxyType(
    {
        (_R.NON_EXISTENT_REPLICA, _I.ASSIGN): _R.NEW_REPLICA,
        **{(state, _I.BRING_ONLINE): _R.ONLINE_REPLICA for state in _SERVING},
        **{(state, _I.TAKE_OFFLINE): _R.OFFLINE_REPLICA for state in _SERVING},
        (_R.OFFLINE_REPLICA, _I.DELETE): _R.REPLICA_DELETION_STARTED,
        (_R.REPLICA_DELETION_STARTED, _I.CONFIRM_DELETION): _R.REPLICA_DELETION_SUCCESSFUL,
        (_R.OFFLINE_REPLICA, _I.GIVE_UP_DELETION): _R.REPLICA_DELETION_INELIGIBLE,
        (_R.REPLICA_DELETION_STARTED, _I.GIVE_UP_DELETION): _R.REPLICA_DELETION_INELIGIBLE,
        (_R.REPLICA_DELETION_SUCCESSFUL, _I.FORGET): _R.NON_EXISTENT_REPLICA,
    }
)
"""Every step of a replica; any other step is logged, and the replica keeps its state."""

ZK_PARTITION_TRANSITIONS: Final[Mapping[tuple[ZkPartitionState, ZkPartitionInput], ZkPartitionState]] = (
    MappingProxyType(
        {
            (_P.NON_EXISTENT_PARTITION, _J.ASSIGN): _P.NEW_PARTITION,
            **{(state, _J.ELECT): _P.ONLINE_PARTITION for state in _MADE},
            **{(state, _J.TAKE_OFFLINE): _P.OFFLINE_PARTITION for state in _MADE},
            (_P.OFFLINE_PARTITION, _J.FORGET): _P.NON_EXISTENT_PARTITION,
        }
    )
)
"""Every step of a partition; any other step is logged, and the partition keeps its state."""
