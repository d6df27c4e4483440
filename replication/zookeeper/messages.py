"""Define the messages of ZooKeeper mode; a broker epoch identifies a session, the transaction that created its znode.

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
    """A broker asks ZooKeeper to create the znode /controller, or to watch it if it exists."""

    broker: BrokerId
    epoch: BrokerEpoch


@attrs.frozen
class RegisterControllerResponse(HostedMessage):
    """ZooKeeper answers RegisterController with the current controller and its controller epoch."""

    controller: BrokerId
    controller_epoch: int


@attrs.frozen
class GetClusterState(HostedMessage):
    """The controller asks ZooKeeper for all its znodes, and sets its watches."""

    broker: BrokerId
    epoch: BrokerEpoch


@attrs.frozen(kw_only=True)
class GetClusterStateResponse(HostedMessage):
    """ZooKeeper answers GetClusterState with the brokers and partitions as of a transaction.

    `offset` counts the changes of those two; `unmade` are topics whose partition has no state yet.
    """

    brokers: Mapping[BrokerId, BrokerStatus]
    partitions: Mapping[int, PartitionState]
    topics: Mapping[int, str]
    unmade: Mapping[int, CreateTopic]
    offset: int
    transaction: int


@attrs.frozen
class UpdatePartitionState(HostedMessage):
    """The controller writes a partition's state; its partition epoch is one above the znode's version."""

    broker: BrokerId
    controller_epoch: int
    partition: int
    state: PartitionState


@attrs.frozen
class UpdatePartitionStateResponse(HostedMessage):
    """ZooKeeper answers UpdatePartitionState: whether the state was written."""

    partition: int
    state: PartitionState
    is_written: bool


@attrs.frozen
class CloseSession(HostedMessage):
    """A broker ends its session; the answer lets it stop."""

    broker: BrokerId
    epoch: BrokerEpoch


@attrs.frozen
class WatchNotification(HostedMessage):
    """ZooKeeper notifies the controller that a watched znode has changed; a watch fires once."""

    path: str


@attrs.frozen
class LeaderAndIsr(HostedMessage):
    """The controller sends a replica its partition's state, for the broker epoch `broker_epoch`."""

    controller_epoch: int
    broker_epoch: BrokerEpoch
    partition: int
    topic: str
    state: PartitionState


@attrs.frozen
class LeaderAndIsrResponse(HostedMessage):
    """A broker answers LeaderAndIsr; `broker_epoch` is the broker's own."""

    partition: int
    error: ErrorCode
    broker_epoch: BrokerEpoch


@attrs.frozen
class UpdateMetadata(HostedMessage):
    """The controller sends a broker all brokers and partitions as of a transaction."""

    controller_epoch: int
    read: GetClusterStateResponse


@attrs.frozen(kw_only=True)
class StopReplica(HostedMessage):
    """The controller tells a broker to stop a replica and, if it `deletes`, to remove its log."""

    controller_epoch: int
    broker_epoch: BrokerEpoch
    partition: int
    leader_epoch: LeaderEpoch
    deletes: bool


@attrs.frozen
class StopReplicaResponse(HostedMessage):
    """A broker answers StopReplica; `broker_epoch` is the broker's own."""

    partition: int
    deletes: bool
    error: ErrorCode
    broker_epoch: BrokerEpoch


@attrs.frozen
class ControlledShutdown(HostedMessage):
    """A broker asks the controller to move its leaderships away so that it can stop."""

    broker: BrokerId
    epoch: BrokerEpoch


@attrs.frozen
class ControlledShutdownResponse(HostedMessage):
    """The controller answers ControlledShutdown once the broker leads no partition that another broker could lead."""

    epoch: BrokerEpoch
