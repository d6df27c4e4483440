"""What brokers, the controller among them, and ZooKeeper say to each other in the older mode.

It decides the contents of the messages; those that both modes have are in `replication.roles.messages`.

Constraints: frozen values. A session is a broker's life: its epoch is the transaction that made its node.

Source: Kafka LeaderAndIsrRequest, UpdateMetadataRequest, KafkaZkClient and KafkaController, 2.8; Apache ZooKeeper
Programmer's Guide (ephemeral nodes, versions, watches).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId
from replication.partition import BrokerStatus, PartitionState
from replication.roles.messages import GuestMessage


@attrs.frozen
class TakeControl(GuestMessage):
    """To ZooKeeper: make the node /controller mine, or watch it if it is somebody's."""

    broker: BrokerId
    epoch: BrokerEpoch


@attrs.frozen
class ControlTold(GuestMessage):
    """The answer: whose the node is, and the controller epoch."""

    controller: BrokerId
    controller_epoch: int


@attrs.frozen
class ReadState(GuestMessage):
    """To ZooKeeper: read all, and watch /brokers/ids and /brokers/topics."""

    broker: BrokerId
    epoch: BrokerEpoch


@attrs.frozen
class StateRead(GuestMessage):
    """The answer: who is alive, every partition, and the last transaction."""

    brokers: Mapping[BrokerId, BrokerStatus]
    partitions: Mapping[int, PartitionState]
    topics: Mapping[int, str]
    offset: int


@attrs.frozen
class WriteState(GuestMessage):
    """To ZooKeeper, from a controller: a partition as it shall be; its partition epoch is one above the version."""

    broker: BrokerId
    controller_epoch: int
    partition: int
    state: PartitionState


@attrs.frozen
class StateWritten(GuestMessage):
    """The answer: whether it was written."""

    partition: int
    state: PartitionState
    is_written: bool


@attrs.frozen
class Notified(GuestMessage):
    """From ZooKeeper: something that was watched has changed; a watch tells once, and not what."""

    path: str


@attrs.frozen
class LeaderAndIsr(GuestMessage):
    """From the controller to a replica: a partition as it is; `broker_epoch` is the life that it is meant for."""

    controller_epoch: int
    broker_epoch: BrokerEpoch
    partition: int
    topic: str
    state: PartitionState


@attrs.frozen
class Obeyed(GuestMessage):
    """The answer to LeaderAndIsr."""

    partition: int
    error: ErrorCode


@attrs.frozen
class UpdateMetadata(GuestMessage):
    """From the controller to a broker: who is alive, and every partition, as of a transaction."""

    controller_epoch: int
    read: StateRead


@attrs.frozen
class StopReplica(GuestMessage):
    """From the controller to a broker: it has no part in a partition any more; the log goes."""

    controller_epoch: int
    partition: int
