"""Define the parameters of a broker process, and additional roles hosted by it, such as a group coordinator.

A process does I/O through the functions of `BrokerStart` only, so that a simulation or real files can implement them.
A hosted role ends with its process. It sends messages and sets timers through its outbox only; its messages derive from
`HostedMessage`.

Source: Kafka group-coordinator CoordinatorRuntime and PartitionWriter, core BrokerMetadataPublisher (onElection,
onResignation), 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from replication.roles.messages import Address, Message
from replication.roles.metadata import MetadataImage
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.rules.fencing import StopProof
from replication.rules.produce import ACKS_ALL


@attrs.frozen
class HostedAppend:
    """Report a hosted role's append: the `number` of the write to be answered, or the error."""

    error: ErrorCode
    number: int


class Host(Protocol):
    """Define what a hosted role uses of its broker."""

    broker: BrokerId
    image: MetadataImage

    def append(self, partition: int, records: bytes, out: Outbox, acks: int = ACKS_ALL) -> HostedAppend:
        """Append one batch to a partition that this broker leads; else NOT_LEADER_OR_FOLLOWER.

        Called while `HostedRole.handle` handles a message; by the broker's clock the append is made at that time.
        """
        ...

    def led_log(self, partition: int) -> ReplicaLog | None:
        """Return the log of a partition that this broker leads; None for any other partition."""
        ...


class HostedRole(Protocol):
    """Define a further role of a broker; each method handles one event and writes its messages to an outbox."""

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Handle a `HostedMessage`, or the `ProduceResponse` that answers an append."""
        ...

    def on_gained(self, partition: int, leader_epoch: LeaderEpoch, now_ms: TimeMs, out: Outbox) -> None:
        """Handle that this broker became leader of a partition in a new leader epoch."""
        ...

    def on_lost(self, partition: int, now_ms: TimeMs, out: Outbox) -> None:
        """Handle that this broker is no longer leader of a partition; pending appends are answered afterwards."""
        ...


HostedRoleMaker = Callable[[Host], HostedRole]
"""A function that makes a hosted role for a starting broker."""


OpenLog = Callable[[int], ReplicaLog]
"""A function that opens, or creates, the log of a partition on this broker's disk."""


def _no_strays(_image: MetadataImage) -> None:
    pass


def _none_beside(_path: str) -> frozenset[int]:
    return frozenset()


@attrs.frozen
class BrokerStart:
    """Hold the arguments of a broker process: its id, its clean shutdown file, its logs and hosted roles."""

    broker: BrokerId
    incarnation: str
    proof: StopProof
    open_log: OpenLog
    drop_log: Callable[[int], None]
    checkpoint: Callable[[dict[int, Offset]], None]
    hosted_roles: tuple[HostedRoleMaker, ...] = ()
    partitions_beside: Callable[[str], frozenset[int]] = _none_beside
    """A function that returns the replicas in the same log directory as a path."""
    drop_strays: Callable[[MetadataImage], None] = _no_strays
    """A function that removes the logs on disk that belong to no partition of this broker."""
    rack: str = ""
    """The broker's broker.rack, "" for none."""
