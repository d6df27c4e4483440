"""What is said about retention: by clients that delete records, and by brokers to themselves.

It decides nothing. Source: Kafka clients DeleteRecordsRequest and DeleteRecordsResponse, 4.0; KIP-107.
"""

from __future__ import annotations

from broker.error_codes import ErrorCode
from broker.ids import Offset
from broker.values import value
from replication.roles.messages import Address, HostedMessage


@value
class DeleteRecords(HostedMessage):
    """A client asks the leader to delete what lies below `offset`; -1 is all that is committed."""

    partition: int
    number: int
    offset: Offset


@value
class DeleteRecordsResponse(HostedMessage):
    """The answer to DeleteRecords."""

    partition: int
    number: int
    error: ErrorCode
    low_watermark: Offset


@value
class RetentionDue(HostedMessage):
    """To a broker: look after the logs now."""


@value
class DeletionsDue(HostedMessage):
    """To itself: look whether orders that wait are done."""


@value
class DeletionExpired(HostedMessage):
    """To itself: an order has waited for long enough."""

    partition: int
    number: int
    client: Address


@value
class DeleteRecordsOrder(HostedMessage):
    """An operator tells a client to have records deleted."""

    partition: int
    offset: Offset
