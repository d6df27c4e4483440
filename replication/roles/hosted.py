"""A further role that a broker hosts beside its parts in partitions: a coordinator, for example.

It decides how such a hosted role gets at its broker: it writes into replicated partitions that the broker leads, learns
when what it wrote is committed, and is told which partitions the broker begins and ceases to lead.

Goals, most important first
1. What a hosted role writes goes the way of every acks=all write: refused below min.insync.replicas, answered when
   the high watermark has passed it, answered with an error when the leadership ends before.
2. A broker knows nothing of what its hosted roles do.

Constraints: a hosted role lives as long as its process. It sends and wakes itself by its outbox only; its messages
derive from `HostedMessage`.

How: `Host.append` writes at once. If it says NONE, a `ProduceResponse` of the same number follows as a message of its
own; on an error nothing was written and nothing follows. A message to the broker's own address arrives in the same
millisecond, past the network.

Worked example: a coordinator takes a commit, appends a record to partition 7 as number 12, and answers the client
when `ProduceResponse(7, 12, ...)` comes.

Left out: transactional writes.

Source: Kafka group-coordinator CoordinatorRuntime and PartitionWriter, core BrokerMetadataPublisher
(onElection, onResignation), commit 1eb7644 (2024-10).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from broker.error_codes import ErrorCode
from broker.ids import BrokerId, LeaderEpoch
from broker.units import TimeMs
from replication.roles.messages import Address, Message
from replication.roles.metadata import MetadataImage
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog


@attrs.frozen
class HostedAppend:
    """What became of a hosted role's append: written as `number`, whose answer follows; or refused, and nothing
    follows."""

    error: ErrorCode
    number: int


class Host(Protocol):
    """What a hosted role sees of its broker."""

    broker: BrokerId
    image: MetadataImage

    def append(self, partition: int, records: bytes, now_ms: TimeMs, out: Outbox) -> HostedAppend:
        """Append one batch, as acks=all, to a partition that this broker leads; NOT_LEADER_OR_FOLLOWER if not."""
        ...

    def led_log(self, partition: int) -> ReplicaLog | None:
        """Return the log of a partition that this broker leads, None if it does not."""
        ...


class HostedRole(Protocol):
    """A further role. Each method takes one event and writes what follows from it into an outbox."""

    def handle(self, message: Message, sender: Address, now_ms: TimeMs, out: Outbox) -> None:
        """Take a message of a hosted role's kind, or a `ProduceResponse` that answers an append."""
        ...

    def on_gained(self, partition: int, leader_epoch: LeaderEpoch, now_ms: TimeMs, out: Outbox) -> None:
        """Learn that this broker leads a partition in a new epoch."""
        ...

    def on_lost(self, partition: int, now_ms: TimeMs, out: Outbox) -> None:
        """Learn that this broker leads a partition no more; waiting appends are answered after this."""
        ...


HostedRoleMaker = Callable[[Host], HostedRole]
"""Makes a hosted role for a broker that starts."""
