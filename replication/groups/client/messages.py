"""What a group's client says and hears: requests with tickets, and notes of what became of it.

Decides nothing. A client is a machine without I/O: it gives `Send`s, whose answers are handed back with the same
ticket, and notes, which tell the outside what it did. Requests are those of `broker.group`.

Constraints: a ticket is the client's own and used once. What never comes back is given up by the client itself after
`Send.timeout_ms`; whoever knows earlier that it will not come says `Disconnected`.

Source: Kafka clients NetworkClient and ConsumerNetworkClient, 4.0, for what a client can be told.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeAlias

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    Ticket,
)
from broker.group.consumer import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from broker.ids import BrokerId, Offset, TopicPartition
from broker.units import DurationMs


@attrs.frozen
class TopicMetadataRequest:
    """How many partitions do these topics have? Any broker answers."""

    topics: tuple[str, ...]


@attrs.frozen
class TopicMetadataResponse:
    """The answer to TopicMetadataRequest; topics that do not exist are left out."""

    partition_counts: Mapping[str, int]


@attrs.frozen
class Disconnected:
    """No answer comes: the connection broke, or the time for it is over."""


Request: TypeAlias = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | ConsumerGroupHeartbeatRequest
    | OffsetCommitRequest
    | OffsetFetchRequest
    | FindCoordinatorRequest
    | TopicMetadataRequest
)
Response: TypeAlias = (
    JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | ConsumerGroupHeartbeatResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | FindCoordinatorResponse
    | TopicMetadataResponse
    | Disconnected
)


@attrs.frozen
class Send:
    """A request under way to `broker`, to any broker where that is None."""

    ticket: Ticket
    request: Request
    broker: BrokerId | None
    timeout_ms: DurationMs


class Why(enum.Enum):
    """Why a client gave up what it owned; the value is said to users."""

    REVOKED = "asked back"
    LOST = "lost: no longer a member"
    CLOSED = "closed"
    CRASHED = "crashed"


@attrs.frozen
class Read:
    """Records start_offset to end_offset (exclusive) were handed to the application."""

    partition: TopicPartition
    start_offset: Offset
    end_offset: Offset


@attrs.frozen
class PartitionsAssigned:
    """The client takes these partitions for its own from now on."""

    partitions: frozenset[TopicPartition]


@attrs.frozen
class PartitionsRevoked:
    """The client does not read these partitions any more."""

    partitions: frozenset[TopicPartition]
    why: Why


@attrs.frozen
class Committed:
    """What happened to a commit of one partition; an unknown outcome is REQUEST_TIMED_OUT."""

    partition: TopicPartition
    offset: Offset
    error: ErrorCode


@attrs.frozen
class Rebalanced:
    """The client came through a rebalance, in Java's measure: rebalance-latency."""

    latency_ms: DurationMs


@attrs.frozen
class RebalanceFailed:
    """The client's attempt to join ended with an error: failed-rebalance-total."""


@attrs.frozen
class PollExpired:
    """The application did not poll for max.poll.interval.ms, so the client left its group."""


@attrs.frozen
class Died:
    """The client cannot go on, and its application ends; `reason` is what it would log."""

    reason: str


Note: TypeAlias = (
    Read | PartitionsAssigned | PartitionsRevoked | Committed | Rebalanced | RebalanceFailed | PollExpired | Died
)
Output: TypeAlias = Send | Note
