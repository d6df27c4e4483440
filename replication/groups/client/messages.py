"""Define a consumer's requests and responses, with tickets, and its notes of events.

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
from broker.group import service
from broker.group.classic import Ticket
from broker.group.messages import FindCoordinatorRequest, FindCoordinatorResponse
from broker.ids import BrokerId, Offset, TopicPartition
from broker.units import DurationMs


@attrs.frozen
class TopicMetadataRequest:
    """Ask any broker for the partition counts of topics."""

    topics: tuple[str, ...]


@attrs.frozen
class TopicMetadataResponse:
    """Answer TopicMetadataRequest with the partition counts of the topics that exist."""

    partition_counts: Mapping[str, int]


@attrs.frozen
class Disconnected:
    """State that no response will come: the connection broke, or the request timed out."""


Request: TypeAlias = service.Request | FindCoordinatorRequest | TopicMetadataRequest
Response: TypeAlias = service.Response | FindCoordinatorResponse | TopicMetadataResponse | Disconnected


@attrs.frozen
class Send:
    """Send a request to `broker`, or to any broker if `broker` is None."""

    ticket: Ticket
    request: Request
    broker: BrokerId | None
    timeout_ms: DurationMs


class Why(enum.Enum):
    """Name the reason why a consumer gave up partitions; the value is printed."""

    REVOKED = "asked back"
    LOST = "lost: no longer a member"
    CLOSED = "closed"
    CRASHED = "crashed"


@attrs.frozen
class Read:
    """State that records start_offset to end_offset (exclusive) were handed to the application."""

    partition: TopicPartition
    start_offset: Offset
    end_offset: Offset


@attrs.frozen
class PartitionsAssigned:
    """State that the consumer owns these partitions from now on."""

    partitions: frozenset[TopicPartition]


@attrs.frozen
class PartitionsRevoked:
    """State that the consumer no longer owns these partitions."""

    partitions: frozenset[TopicPartition]
    why: Why


@attrs.frozen
class Committed:
    """State the result of one partition's commit; an unknown result is REQUEST_TIMED_OUT."""

    partition: TopicPartition
    offset: Offset
    error: ErrorCode


@attrs.frozen
class Rebalanced:
    """State that the consumer has finished a rebalance; `latency_ms` is Java's rebalance-latency."""

    latency_ms: DurationMs


@attrs.frozen
class RebalanceFailed:
    """State that an attempt to join ended with an error, as Java counts in failed-rebalance-total."""


@attrs.frozen
class PollExpired:
    """State that the consumer left its group, because max.poll.interval.ms passed without a poll."""


@attrs.frozen
class Died:
    """State that the application ended because its consumer cannot go on; `reason` is the consumer's log line."""

    reason: str


Note: TypeAlias = (
    Read | PartitionsAssigned | PartitionsRevoked | Committed | Rebalanced | RebalanceFailed | PollExpired | Died
)
Output: TypeAlias = Send | Note
