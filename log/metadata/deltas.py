"""Define the change that one metadata record makes, with the state before and after it.

Constraints: what is None was not there. A record that changes nothing gives no delta.

Source: ours.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from broker.ids import BrokerId, LeaderEpoch, PartitionId
from broker.values import value
from log.metadata.image import BrokerImage, PartitionImage, Resource, TopicId
from log.metadata.schemas import RecordType


@attrs.frozen
class BrokerDelta:
    """Describe how a broker was registered, changed or unregistered."""

    before: BrokerImage | None
    after: BrokerImage | None


@attrs.frozen
class TopicDelta:
    """Describe how a topic was created, or deleted with `partition_count` partitions."""

    id: TopicId
    name: str
    deleted: bool
    partition_count: int = 0


@value
class PartitionDelta:
    """Describe how a partition was created, changed, or deleted with its topic."""

    topic: str
    partition: PartitionId
    before: PartitionImage | None
    after: PartitionImage | None


@attrs.frozen
class ConfigDelta:
    """Describe how a setting of a resource was set, changed or removed."""

    resource: Resource
    name: str
    before: str | None
    after: str | None


@attrs.frozen
class FeatureDelta:
    """Describe how the level of a feature changed; 0 means the feature is off."""

    name: str
    before: int
    after: int


@attrs.frozen
class ControllerDelta:
    """Describe the election of a quorum leader, perhaps the same controller in a new epoch."""

    leader: BrokerId
    epoch: LeaderEpoch


@attrs.frozen
class OtherDelta:
    """Describe a changed quota, ACL, credential or token; `subject` names it, without secrets."""

    type: RecordType
    subject: str


Delta: TypeAlias = BrokerDelta | TopicDelta | PartitionDelta | ConfigDelta | FeatureDelta | ControllerDelta | OtherDelta
