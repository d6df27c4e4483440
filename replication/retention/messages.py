"""Define the messages of retention: DeleteRecords between clients and brokers, and timers of a broker.

Source: Kafka clients DeleteRecordsRequest and DeleteRecordsResponse, 4.0; KIP-107.
"""

from __future__ import annotations

from broker.error_codes import ErrorCode
from broker.ids import Offset
from broker.values import value
from replication.roles.messages import Address, HostedMessage


@value
class DeleteRecords(HostedMessage):
    """Ask the leader to delete the records below `offset`; -1 means the high watermark."""

    partition: int
    number: int
    offset: Offset


@value
class DeleteRecordsResponse(HostedMessage):
    """Answer DeleteRecords with an error code and the partition's low watermark."""

    partition: int
    number: int
    error: ErrorCode
    low_watermark: Offset


@value
class RetentionDue(HostedMessage):
    """Tell a broker to run retention and the log cleaner now."""


@value
class DeletionsDue(HostedMessage):
    """Tell the log manager to check the waiting DeleteRecords requests."""


@value
class DeletionExpired(HostedMessage):
    """Tell the log manager that a DeleteRecords request has waited too long."""

    partition: int
    number: int
    client: Address


@value
class DeleteRecordsOrder(HostedMessage):
    """Tell a client to delete the records of a partition below `offset`."""

    partition: int
    offset: Offset
