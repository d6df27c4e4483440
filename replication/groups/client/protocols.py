"""Name the three protocols of a group, list the assignors that each takes, and make a consumer for each.

Constraints: an eager group takes any assignor of the client, a cooperative group the cooperative one, and the
coordinator of a consumer group its own two. Without a name a group is assigned by Kafka's default; by `range` if eager.

Example:

    >>> takes(GroupProtocol.COOPERATIVE, "range"), DEFAULT_ASSIGNORS[GroupProtocol.CONSUMER]
    (False, 'uniform')

Source: ConsumerConfig partition.assignment.strategy, group.protocol, group.remote.assignor, and the broker's
group.consumer.assignors, 4.0.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from broker.entropy import RandomSource
from placement.consumer.registry import KAFKAS
from replication.groups.client.assigning import COOPERATIVE, SERVER_NAMES
from replication.groups.client.classic_client import ClassicClient
from replication.groups.client.client import Client
from replication.groups.client.consumer_client import ConsumerClient
from replication.groups.client.options import ClientSpec
from replication.groups.client.subscription_state import Feed


class GroupProtocol(enum.Enum):
    """Name the protocols of a group; the value is used in options and files."""

    EAGER = "eager"
    """Classic: every member gives up all its partitions before it joins again."""

    COOPERATIVE = "cooperative"
    """Classic: a member keeps the partitions that no other member gets (KIP-429)."""

    CONSUMER = "consumer"
    """The coordinator assigns, and each member follows at its own pace (KIP-848)."""


DEFAULT_ASSIGNORS: Final[Mapping[GroupProtocol, str]] = {
    GroupProtocol.EAGER: "range",
    GroupProtocol.COOPERATIVE: "cooperative-sticky",
    GroupProtocol.CONSUMER: "uniform",
}


def takes(protocol: GroupProtocol, assignor: str) -> bool:
    """Return whether a group of this protocol can use the assignor of this name."""
    match protocol:
        case GroupProtocol.CONSUMER:
            return assignor in SERVER_NAMES or assignor not in KAFKAS
        case GroupProtocol.COOPERATIVE:
            return assignor in COOPERATIVE
        case GroupProtocol.EAGER:
            return assignor not in COOPERATIVE and assignor not in SERVER_NAMES


def new_client(spec: ClientSpec, protocol: GroupProtocol, feed: Feed, entropy: RandomSource) -> Client:
    """Return a consumer of this protocol that has not started; `entropy` serves the assignors of a classic leader."""
    if protocol is GroupProtocol.CONSUMER:
        return ConsumerClient(spec, feed)
    return ClassicClient(spec, feed, entropy)
