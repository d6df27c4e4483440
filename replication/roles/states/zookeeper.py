"""Define the state machines of the ZooKeeper-era controller: ReplicaStateMachine and PartitionStateMachine.

What it decides: what that controller may do next with a replica or a partition: an input is the state it wants, and
Kafka lists for each state those from which it may be reached. Whatever else is asked for is logged and left out, and
the replica or partition stays as it was.

Constraints: a replica is forgotten only after its deletion succeeded; a partition is forgotten only when it is
offline.

Example: ONLINE_REPLICA + DELETE is refused, as a replica is stopped before it is deleted; OFFLINE_REPLICA +
DELETE is REPLICA_DELETION_STARTED.

Left out: what is sent along with each step (LeaderAndIsr, UpdateMetadata, StopReplica), which
`replication.zookeeper.kafka_controller` and `deletion` decide.

Source: Kafka core controller ReplicaStateMachine and PartitionStateMachine, commit 1eb7644 (2024-10), removed in 4.0.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class ZkReplicaState(enum.Enum):
    """The state of a replica; names as in Kafka's ReplicaState."""

    NON_EXISTENT_REPLICA = enum.auto()
    """It is not there."""

    NEW_REPLICA = enum.auto()
    """It was just assigned, and may only become a follower."""

    ONLINE_REPLICA = enum.auto()
    """Its broker is alive: it leads or follows."""

    OFFLINE_REPLICA = enum.auto()
    """Its broker is gone, or it was told to stop."""

    REPLICA_DELETION_STARTED = enum.auto()
    """It was told to delete its log."""

    REPLICA_DELETION_SUCCESSFUL = enum.auto()
    """It said that the log is deleted."""

    REPLICA_DELETION_INELIGIBLE = enum.auto()
    """Deleting failed, or its broker is gone: tried again when the broker is back."""


class ZkReplicaInput(enum.Enum):
    """The state change that the controller asks for a replica."""

    ASSIGN = enum.auto()
    """It is among the replicas of a new or a moved partition."""

    BRING_ONLINE = enum.auto()
    """Its broker is there."""

    TAKE_OFFLINE = enum.auto()
    """Its broker is gone, or it is to stop."""

    DELETE = enum.auto()
    """Its log is to be deleted."""

    CONFIRM_DELETION = enum.auto()
    """Its broker says that it has deleted the log."""

    GIVE_UP_DELETION = enum.auto()
    """Its broker cannot delete the log now."""

    FORGET = enum.auto()
    """All replicas of the topic are deleted, or the move is over."""


class ZkPartitionState(enum.Enum):
    """The state of a partition; names as in Kafka's PartitionState."""

    NON_EXISTENT_PARTITION = enum.auto()
    """It was never made, or is deleted."""

    NEW_PARTITION = enum.auto()
    """It has replicas, and no leader or ISR yet."""

    ONLINE_PARTITION = enum.auto()
    """It has a leader."""

    OFFLINE_PARTITION = enum.auto()
    """It had a leader, which is gone."""


class ZkPartitionInput(enum.Enum):
    """The state change that the controller asks for a partition."""

    ASSIGN = enum.auto()
    """Its topic was made."""

    ELECT = enum.auto()
    """A leader is to be elected, the first or another one."""

    TAKE_OFFLINE = enum.auto()
    """Its leader is gone."""

    FORGET = enum.auto()
    """Its topic is deleted."""


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
"""Every step of a replica; whatever is not here is logged, and the replica stays as it was."""

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
"""Every step of a partition; whatever is not here is logged, and the partition stays as it was."""
