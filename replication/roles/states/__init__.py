"""Define every state machine of the simulation as a table: the roles step by it, and commands draw it."""

from __future__ import annotations

from replication.roles.states.catalogue import MACHINES, Machine, find_machines
from replication.roles.states.lifecycle import LIFECYCLE_TRANSITIONS, LifecycleInput, LifecycleState
from replication.roles.states.partition_status import (
    MOVE_TRANSITIONS,
    PARTITION_STATUS_TRANSITIONS,
    MoveInput,
    MoveState,
    PartitionStatus,
    PartitionStatusInput,
    check_change,
    move_input,
    move_of,
    partition_status_input,
    partition_status_of,
)
from replication.roles.states.replica_role import REPLICA_ROLE_TRANSITIONS, ReplicaRole, ReplicaRoleInput
from replication.roles.states.write import (
    APPENDED,
    REFUSALS,
    WRITE_ANSWERS,
    WRITE_TRANSITIONS,
    WriteInput,
    WriteState,
    end_of_write,
)
from replication.roles.states.zookeeper import (
    ZK_PARTITION_TRANSITIONS,
    ZK_REPLICA_TRANSITIONS,
    ZkPartitionInput,
    ZkPartitionState,
    ZkReplicaInput,
    ZkReplicaState,
)

__all__ = (
    "APPENDED",
    "LIFECYCLE_TRANSITIONS",
    "MACHINES",
    "MOVE_TRANSITIONS",
    "PARTITION_STATUS_TRANSITIONS",
    "REFUSALS",
    "REPLICA_ROLE_TRANSITIONS",
    "WRITE_ANSWERS",
    "WRITE_TRANSITIONS",
    "ZK_PARTITION_TRANSITIONS",
    "ZK_REPLICA_TRANSITIONS",
    "LifecycleInput",
    "LifecycleState",
    "Machine",
    "MoveInput",
    "MoveState",
    "PartitionStatus",
    "PartitionStatusInput",
    "ReplicaRole",
    "ReplicaRoleInput",
    "WriteInput",
    "WriteState",
    "ZkPartitionInput",
    "ZkPartitionState",
    "ZkReplicaInput",
    "ZkReplicaState",
    "check_change",
    "end_of_write",
    "find_machines",
    "move_input",
    "move_of",
    "partition_status_input",
    "partition_status_of",
)
