"""Define the subscription and assignment of members of classic consumer groups.

What it decides: the fields of both structures, which stand as bytes in the record of a classic group.

Constraints: names and order are those of Kafka's schemas, as its tools print them.

Example: SUBSCRIPTION.version_max == 3

Source: clients/src/main/resources/common/message/ConsumerProtocol*.json, 4.3.1.
"""

from __future__ import annotations

from typing import Final

from log.internal_topics.messages import Message
from log.metadata.fields import Field, Kind

SUBSCRIPTION: Final = Message(
    "ConsumerProtocolSubscription",
    3,
    None,
    (
        Field("topics", Kind.STRING, is_array=True),
        Field("userData", Kind.BYTES, is_nullable=True, default=None),
        Field(
            "ownedPartitions",
            Kind.STRUCT,
            since=1,
            is_array=True,
            fields=(
                Field("topic", Kind.STRING, since=1),
                Field("partitions", Kind.INT32, since=1, is_array=True),
            ),
        ),
        Field("generationId", Kind.INT32, since=2, default=-1),
        Field("rackId", Kind.STRING, since=3, is_nullable=True, default=None),
    ),
)
"""What a member asks for."""

ASSIGNMENT: Final = Message(
    "ConsumerProtocolAssignment",
    3,
    None,
    (
        Field(
            "assignedPartitions",
            Kind.STRUCT,
            is_array=True,
            fields=(
                Field("topic", Kind.STRING),
                Field("partitions", Kind.INT32, is_array=True),
            ),
        ),
        Field("userData", Kind.BYTES, is_nullable=True, default=None),
    ),
)
"""What a member was given."""
