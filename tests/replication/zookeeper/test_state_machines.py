"""The controller's book moves by the tables, over all pairs, and says what it refuses."""

from __future__ import annotations

import pytest

from broker.ids import BrokerId
from replication.roles.states import (
    ZK_PARTITION_TRANSITIONS,
    ZK_REPLICA_TRANSITIONS,
    ZkPartitionInput,
    ZkPartitionState,
    ZkReplicaInput,
    ZkReplicaState,
)
from replication.zookeeper.state_machines import StateMachines

ONE = BrokerId(1)


@pytest.mark.parametrize("event", ZkReplicaInput)
@pytest.mark.parametrize("state", ZkReplicaState)
def test_a_replica_moves_by_the_table_and_stays_as_it_is_otherwise(
    state: ZkReplicaState, event: ZkReplicaInput
) -> None:
    lines: list[str] = []
    machines = StateMachines(BrokerId(9), 4, lines.append)
    if state is not ZkReplicaState.NON_EXISTENT_REPLICA:
        machines.enter_replica(0, ONE, state)
    is_taken = machines.step_replica("t", 0, ONE, event)
    assert is_taken is ((state, event) in ZK_REPLICA_TRANSITIONS)
    assert machines.replica(0, ONE) is ZK_REPLICA_TRANSITIONS.get((state, event), state)
    assert len(lines) == (not is_taken)
    assert (ONE in machines.replicas(0)) is (machines.replica(0, ONE) is not ZkReplicaState.NON_EXISTENT_REPLICA)


@pytest.mark.parametrize("event", ZkPartitionInput)
@pytest.mark.parametrize("state", ZkPartitionState)
def test_a_partition_moves_by_the_table_and_stays_as_it_is_otherwise(
    state: ZkPartitionState, event: ZkPartitionInput
) -> None:
    lines: list[str] = []
    machines = StateMachines(BrokerId(9), 4, lines.append)
    if state is not ZkPartitionState.NON_EXISTENT_PARTITION:
        machines.enter_partition(0, state)
    is_taken = machines.step_partition("t", 0, event)
    assert is_taken is ((state, event) in ZK_PARTITION_TRANSITIONS)
    assert machines.partition(0) is ZK_PARTITION_TRANSITIONS.get((state, event), state)
    assert len(lines) == (not is_taken)


def test_a_refused_step_is_told_in_the_words_of_kafkas_state_change_log() -> None:
    lines: list[str] = []
    machines = StateMachines(BrokerId(9), 4, lines.append)
    machines.enter_replica(0, ONE, ZkReplicaState.REPLICA_DELETION_STARTED)
    machines.step_replica("t", 0, ONE, ZkReplicaInput.BRING_ONLINE)
    machines.step_partition("t", 0, ZkPartitionInput.ELECT)
    assert lines == [
        "Controller 9 epoch 4 initiated state change of replica 1 for partition t-0 from ReplicaDeletionStarted to "
        "OnlineReplica failed: Replica [Topic=t,Partition=0,Replica=1] should be in the "
        "NewReplica,OnlineReplica,OfflineReplica,ReplicaDeletionIneligible states before moving to OnlineReplica "
        "state. Instead it is in ReplicaDeletionStarted state",
        "Controller 9 epoch 4 failed to change state for partition t-0 from NonExistentPartition to OnlinePartition: "
        "Partition t-0 should be in one of NewPartition,OnlinePartition,OfflinePartition states before moving to "
        "OnlinePartition state. Instead it is in NonExistentPartition state",
    ]
