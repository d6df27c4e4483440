"""What brokers, the controller among them, and ZooKeeper say to each other in the older mode.

It decides the contents of the messages; those that both modes have are in `replication.roles.messages`.

Constraints: frozen values. A session is a broker's life: its epoch is the transaction that made its node.

Source: Kafka LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest, ControlledShutdownRequest,
KafkaZkClient and KafkaController, 2.8; Apache ZooKeeper Programmer's Guide (ephemeral nodes, versions, watches).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch
from replication.roles.messages import CreateTopic, HostedMessage
from replication.rules.partition import BrokerStatus, PartitionState


@attrs.frozen
class RegisterController(HostedMessage):
    """To ZooKeeper: make the node /controller mine, or watch it if it is somebody's."""

    broker: BrokerId
    epoch: BrokerEpoch


@attrs.frozen
class RegisterControllerResponse(HostedMessage):
    """The answer: whose the node is, and the controller epoch."""

    controller: BrokerId
    controller_epoch: int


@attrs.frozen
class GetClusterState(HostedMessage):
    """To ZooKeeper: read all, and watch whatever the controller watches."""

    broker: BrokerId
    epoch: BrokerEpoch


@attrs.frozen(kw_only=True)
class GetClusterStateResponse(HostedMessage):
    """The answer: who is alive and every partition, as of a transaction; `offset` counts the changes of those two.

    `unmade` are topics whose partition has no state yet, `deleted` the partitions of those that are to be deleted.
    """

    brokers: Mapping[BrokerId, BrokerStatus]
    partitions: Mapping[int, PartitionState]
    topics: Mapping[int, str]
    unmade: Mapping[int, CreateTopic]
    deleted: frozenset[int]
    offset: int
    transaction: int


@attrs.frozen
class UpdatePartitionState(HostedMessage):
    """To ZooKeeper, from a controller: a partition as it shall be; its partition epoch is one above the version."""

    broker: BrokerId
    controller_epoch: int
    partition: int
    state: PartitionState


@attrs.frozen
class UpdatePartitionStateResponse(HostedMessage):
    """The answer: whether it was written."""

    partition: int
    state: PartitionState
    is_written: bool


@attrs.frozen
class DeleteTopicZnodes(HostedMessage):
    """To ZooKeeper, from a controller: every replica of a partition is deleted, so remove its topic's nodes."""

    broker: BrokerId
    controller_epoch: int
    partition: int


@attrs.frozen
class CloseSession(HostedMessage):
    """To ZooKeeper: end the broker's session now; the answer is that it may stop."""

    broker: BrokerId
    epoch: BrokerEpoch


@attrs.frozen
class WatchNotification(HostedMessage):
    """From ZooKeeper: something that was watched has changed; a watch tells once, and not what."""

    path: str


@attrs.frozen
class LeaderAndIsr(HostedMessage):
    """From the controller to a replica: a partition as it is; `broker_epoch` is the life that it is meant for."""

    controller_epoch: int
    broker_epoch: BrokerEpoch
    partition: int
    topic: str
    state: PartitionState


@attrs.frozen
class LeaderAndIsrResponse(HostedMessage):
    """The answer to LeaderAndIsr, from the broker's life of `broker_epoch`."""

    partition: int
    error: ErrorCode
    broker_epoch: BrokerEpoch


@attrs.frozen
class UpdateMetadata(HostedMessage):
    """From the controller to a broker: who is alive, and every partition, as of a transaction."""

    controller_epoch: int
    read: GetClusterStateResponse


@attrs.frozen(kw_only=True)
class StopReplica(HostedMessage):
    """From the controller to a broker: stop a replica, and if it `deletes`, remove its log.

    `leader_epoch` is -2 while the topic is deleted, which no epoch known to the replica outranks.
    """

    controller_epoch: int
    broker_epoch: BrokerEpoch
    partition: int
    leader_epoch: LeaderEpoch
    deletes: bool


@attrs.frozen
class StopReplicaResponse(HostedMessage):
    """The answer to StopReplica, from the broker's life of `broker_epoch`."""

    partition: int
    deletes: bool
    error: ErrorCode
    broker_epoch: BrokerEpoch


@attrs.frozen
class ControlledShutdown(HostedMessage):
    """To the controller: a broker wants to stop, and to hand over what it leads (ControlledShutdown)."""

    broker: BrokerId
    epoch: BrokerEpoch


@attrs.frozen
class ControlledShutdownResponse(HostedMessage):
    """The answer, given when the broker leads nothing any more that another one could lead."""

    epoch: BrokerEpoch
