"""Step each replica and partition through the states of Kafka's ReplicaStateMachine and PartitionStateMachine.

Constraints: a refused step changes nothing, and is logged in the words of Kafka's state change log. A replica or
partition without an entry is non-existent, and loses its entry when it becomes so.

Source: Kafka core controller ReplicaStateMachine and PartitionStateMachine (logInvalidTransition,
logFailedStateChange), ControllerContext, 4.3.1.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

from broker.ids import BrokerId
from replication.roles.states.zookeeper import (
    ZK_PARTITION_TRANSITIONS,
    ZK_REPLICA_TRANSITIONS,
    ZkPartitionInput,
    ZkPartitionState,
    ZkReplicaInput,
    ZkReplicaState,
)

_NO_REPLICA, _NO_PARTITION = ZkReplicaState.NON_EXISTENT_REPLICA, ZkPartitionState.NON_EXISTENT_PARTITION


class StateMachines:
    """Hold the states of one controller's replicas and partitions; `tell` takes the lines of its state change log."""

    def __init__(self, controller: BrokerId, epoch: int, tell: Callable[[str], None]) -> None:
        self._log_head = f"Controller {controller} epoch {epoch}"
        self._tell = tell
        self._replicas: dict[int, dict[BrokerId, ZkReplicaState]] = {}
        self._partitions: dict[int, ZkPartitionState] = {}

    def replica(self, partition: int, broker: BrokerId) -> ZkReplicaState:
        """Return the state of a replica."""
        return self._replicas.get(partition, {}).get(broker, _NO_REPLICA)

    def replicas(self, partition: int) -> tuple[BrokerId, ...]:
        """Return the brokers whose replica of a partition has a state, ascending."""
        return tuple(sorted(self._replicas.get(partition, {})))

    def partition(self, partition: int) -> ZkPartitionState:
        """Return the state of a partition."""
        return self._partitions.get(partition, _NO_PARTITION)

    def enter_replica(self, partition: int, broker: BrokerId, state: ZkReplicaState) -> None:
        """Set the state of a replica as a new controller finds it, without a step."""
        self._replicas.setdefault(partition, {})[broker] = state

    def enter_partition(self, partition: int, state: ZkPartitionState) -> None:
        """Set the state of a partition as a new controller finds it, without a step."""
        self._partitions[partition] = state

    def step_replica(self, topic: str, partition: int, broker: BrokerId, event: ZkReplicaInput) -> bool:
        """Step a replica by the table; return False, and log the refusal, if the table has no such step."""
        state = self.replica(partition, broker)
        following = ZK_REPLICA_TRANSITIONS.get((state, event))
        if following is None:
            wanted, allowed = _aim_of(ZK_REPLICA_TRANSITIONS, event)
            self._tell(
                f"{self._log_head} initiated state change of replica {broker} for partition {topic}-0 from "
                f"{kafka_name(state)} to {kafka_name(wanted)} failed: Replica [Topic={topic},Partition=0,"
                f"Replica={broker}] should be in the {allowed} states before moving to {kafka_name(wanted)} state. "
                f"Instead it is in {kafka_name(state)} state"
            )
            return False
        if following is _NO_REPLICA:
            del self._replicas[partition][broker]
        else:
            self.enter_replica(partition, broker, following)
        return True

    def step_partition(self, topic: str, partition: int, event: ZkPartitionInput) -> bool:
        """Step a partition by the table; return False, and log the refusal, if it has no such step."""
        state = self.partition(partition)
        following = ZK_PARTITION_TRANSITIONS.get((state, event))
        if following is None:
            wanted, allowed = _aim_of(ZK_PARTITION_TRANSITIONS, event)
            self._tell(
                f"{self._log_head} failed to change state for partition {topic}-0 from {kafka_name(state)} to "
                f"{kafka_name(wanted)}: Partition {topic}-0 should be in one of {allowed} states before moving to "
                f"{kafka_name(wanted)} state. Instead it is in {kafka_name(state)} state"
            )
            return False
        if following is _NO_PARTITION:
            del self._partitions[partition]
        else:
            self._partitions[partition] = following
        return True


def kafka_name(state: enum.Enum) -> str:
    """Return a state's name as Kafka writes it: NEW_REPLICA is NewReplica."""
    return "".join(part.capitalize() for part in state.name.split("_"))


def _aim_of(table: Mapping[tuple[Any, Any], Any], event: enum.Enum) -> tuple[enum.Enum, str]:
    """Return the state that an input leads to, and from which states it may be reached, in Kafka's words."""
    states = {before: after for (before, each), after in table.items() if each is event}
    (aim,) = set(states.values())
    return aim, ",".join(kafka_name(state) for state in states)
