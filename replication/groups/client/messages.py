"""Define what a consumer sends and receives: requests with tickets, and notes of what became of them.

What it decides: the outputs of a client, which is a machine without I/O: `Send`s, whose responses come back with the
same ticket, and notes of what it did. Requests are those of `broker.group`.

Constraints: a ticket is the client's own and used once. A client gives up a request after `Send.timeout_ms`; its
surroundings answer `Disconnected` where they know earlier that no response will come.

Source: Kafka clients NetworkClient and ConsumerNetworkClient, 4.0, for the ways in which a request can end.
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
    """A request for the partition counts of topics; any broker answers."""

    topics: tuple[str, ...]


@attrs.frozen
class TopicMetadataResponse:
    """The partition counts of the topics that exist."""

    partition_counts: Mapping[str, int]


@attrs.frozen
class Disconnected:
    """No response will come: the connection broke, or the request timed out."""


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
    """A request to `broker`, or to any broker where that is None."""

    ticket: Ticket
    request: Request
    broker: BrokerId | None
    timeout_ms: DurationMs


class Why(enum.Enum):
    """Why a consumer gave up partitions; the value is printed."""

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
    """The consumer owns these partitions from now on."""

    partitions: frozenset[TopicPartition]


@attrs.frozen
class PartitionsRevoked:
    """The consumer no longer owns these partitions."""

    partitions: frozenset[TopicPartition]
    why: Why


@attrs.frozen
class Committed:
    """The result of a commit of one partition; an unknown result is REQUEST_TIMED_OUT."""

    partition: TopicPartition
    offset: Offset
    error: ErrorCode


@attrs.frozen
class Rebalanced:
    """The consumer has finished a rebalance; `latency_ms` is Java's rebalance-latency."""

    latency_ms: DurationMs


@attrs.frozen
class RebalanceFailed:
    """An attempt to join ended with an error, as Java counts in failed-rebalance-total."""


@attrs.frozen
class PollExpired:
    """The application did not poll for max.poll.interval.ms, so the consumer left its group."""


@attrs.frozen
class Died:
    """The consumer cannot go on and its application ends; `reason` is what it would log."""

    reason: str


Note: TypeAlias = (
    Read | PartitionsAssigned | PartitionsRevoked | Committed | Rebalanced | RebalanceFailed | PollExpired | Died
)
Output: TypeAlias = Send | Note
