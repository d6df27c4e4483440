"""Delete a topic as the ZooKeeper-era controller does (TopicDeletionManager).

Constraints: every step is in the tables of the state machines; any other step is logged and not taken.

Source: Kafka core controller TopicDeletionManager, 2.8 and 4.3.1.
"""

from __future__ import annotations

from typing import Final

from broker.ids import BrokerId, LeaderEpoch
from replication.roles.messages import Address, NodeId
from replication.roles.outbox import Outbox
from replication.roles.states.zookeeper import ZkPartitionInput, ZkPartitionState, ZkReplicaInput, ZkReplicaState
from replication.zookeeper.live_brokers import LiveBrokers
from replication.zookeeper.messages import StopReplica
from replication.zookeeper.state_machines import StateMachines

EPOCH_DURING_DELETE: Final = LeaderEpoch(-2)
"""The leader epoch of StopReplica during a deletion, which no replica refuses as old."""

_R = ZkReplicaState
_STANDING: Final = (_R.NEW_REPLICA, _R.ONLINE_REPLICA)
_TO_STOP: Final = (*_STANDING, _R.REPLICA_DELETION_INELIGIBLE)
_UNFINISHED: Final = (_R.OFFLINE_REPLICA, _R.REPLICA_DELETION_STARTED)


class TopicDeletion:
    """Run the topic deletions in progress under one controller."""

    def __init__(self, controller_epoch: int, machines: StateMachines, live_brokers: LiveBrokers) -> None:
        self._controller_epoch = controller_epoch
        self._machines = machines
        self._live_brokers = live_brokers
        self._begun: dict[int, None] = {}

    def advance(self, topic: str, partition: int, replicas: tuple[BrokerId, ...], out: Outbox) -> bool:
        """Send what a deletion needs next, and return whether every replica is deleted."""
        if partition not in self._begun:
            self._begun[partition] = None
            self._begin(topic, partition, replicas)
        for broker in replicas:
            if self._live_brokers.is_offline(partition, broker):
                self._give_up(topic, partition, broker)
            else:
                self._delete(topic, partition, broker, out)
        return all(self._machines.replica(partition, broker) is _R.REPLICA_DELETION_SUCCESSFUL for broker in replicas)

    def confirm(self, topic: str, partition: int, broker: BrokerId) -> None:
        """Mark a replica's deletion successful; its broker is asked until it answers, and may answer twice."""
        if self._machines.replica(partition, broker) is _R.REPLICA_DELETION_STARTED:
            self._machines.step_replica(topic, partition, broker, ZkReplicaInput.CONFIRM_DELETION)

    def forget(self, topic: str, partition: int) -> None:
        """Remove a partition from the state machines after its topic's znodes are removed."""
        self._begun.pop(partition, None)
        for broker in self._machines.replicas(partition):
            self._machines.step_replica(topic, partition, broker, ZkReplicaInput.FORGET)
            self._live_brokers.forget_epoch(partition, broker)

    def stop(self, partition: int, broker: BrokerId, epoch: LeaderEpoch, out: Outbox, *, deletes: bool) -> None:
        """Send StopReplica to a live broker; a broker without a session gets nothing."""
        broker_epoch = self._live_brokers.epoch_of(broker)
        if broker_epoch is not None:
            order = StopReplica(
                controller_epoch=self._controller_epoch,
                broker_epoch=broker_epoch,
                partition=partition,
                leader_epoch=epoch,
                deletes=deletes,
            )
            out.send(Address(NodeId(broker)), order)

    def _begin(self, topic: str, partition: int, replicas: tuple[BrokerId, ...]) -> None:
        machines = self._machines
        if machines.partition(partition) is ZkPartitionState.NON_EXISTENT_PARTITION:
            machines.step_partition(topic, partition, ZkPartitionInput.ASSIGN)
        for broker in replicas:
            if machines.replica(partition, broker) is _R.NON_EXISTENT_REPLICA:
                machines.step_replica(topic, partition, broker, ZkReplicaInput.ASSIGN)
        machines.step_partition(topic, partition, ZkPartitionInput.TAKE_OFFLINE)
        machines.step_partition(topic, partition, ZkPartitionInput.FORGET)

    def _give_up(self, topic: str, partition: int, broker: BrokerId) -> None:
        machines, was_settled = self._machines, self._live_brokers.has_epoch(partition, broker)
        self._live_brokers.forget_epoch(partition, broker)
        if machines.replica(partition, broker) in _STANDING:
            machines.step_replica(topic, partition, broker, ZkReplicaInput.TAKE_OFFLINE)
        if was_settled or machines.replica(partition, broker) in _UNFINISHED:
            machines.step_replica(topic, partition, broker, ZkReplicaInput.GIVE_UP_DELETION)

    def _delete(self, topic: str, partition: int, broker: BrokerId, out: Outbox) -> None:
        machines = self._machines
        self._live_brokers.record_epoch(partition, broker)
        if machines.replica(partition, broker) in _TO_STOP:
            machines.step_replica(topic, partition, broker, ZkReplicaInput.TAKE_OFFLINE)
            self.stop(partition, broker, EPOCH_DURING_DELETE, out, deletes=False)
        if machines.replica(partition, broker) is _R.OFFLINE_REPLICA:
            machines.step_replica(topic, partition, broker, ZkReplicaInput.DELETE)
        if machines.replica(partition, broker) is _R.REPLICA_DELETION_STARTED:
            self.stop(partition, broker, EPOCH_DURING_DELETE, out, deletes=True)
