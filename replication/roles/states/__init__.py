"""Every state machine of the simulation as a table: what there is to be drawn, and what the roles step by."""

from __future__ import annotations

from replication.roles.states.catalogue import MACHINES, Machine, find_machines
from replication.roles.states.life import LIFE_TRANSITIONS, LifeInput, LifeState
from replication.roles.states.part import PART_TRANSITIONS, PartInput, PartState
from replication.roles.states.standing import (
    MOVE_TRANSITIONS,
    STANDING_TRANSITIONS,
    MoveInput,
    MoveState,
    Standing,
    StandingInput,
    check_change,
    move_input,
    move_of,
    standing_input,
    standing_of,
)
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
    "LIFE_TRANSITIONS",
    "MACHINES",
    "MOVE_TRANSITIONS",
    "PART_TRANSITIONS",
    "REFUSALS",
    "STANDING_TRANSITIONS",
    "WRITE_ANSWERS",
    "WRITE_TRANSITIONS",
    "ZK_PARTITION_TRANSITIONS",
    "ZK_REPLICA_TRANSITIONS",
    "LifeInput",
    "LifeState",
    "Machine",
    "MoveInput",
    "MoveState",
    "PartInput",
    "PartState",
    "Standing",
    "StandingInput",
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
    "standing_input",
    "standing_of",
)
