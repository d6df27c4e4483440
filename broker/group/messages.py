"""What members and a coordinator say of offsets and of finding each other, whatever the group's protocol.

The joining itself is in `classic.messages` and `consumer.messages`.

Source: OffsetCommit, OffsetFetch, FindCoordinatorRequest in clients/src/main/resources/common/message, 4.0.
"""

from __future__ import annotations

import attrs

from broker.error_codes import ErrorCode
from broker.group.members import UNKNOWN_MEMBER, InstanceId, MemberId
from broker.group.offsets import Commit
from broker.ids import BrokerId, Offset, TopicPartition

NO_COORDINATOR = BrokerId(-1)


@attrs.frozen
class FindCoordinatorRequest:
    """Who coordinates this group? Any broker answers."""

    group_id: str


@attrs.frozen
class FindCoordinatorResponse:
    """The answer to FindCoordinatorRequest; with an error there is no `broker`."""

    broker: BrokerId = NO_COORDINATOR
    error: ErrorCode = ErrorCode.NONE


@attrs.frozen(kw_only=True)
class OffsetCommitRequest:
    """A member says how far it has come. `generation` is the generation, or the epoch in a consumer group."""

    commits: tuple[Commit, ...]
    member_id: MemberId = UNKNOWN_MEMBER
    generation: int = -1
    instance_id: InstanceId | None = None


@attrs.frozen
class OffsetCommitResponse:
    """The answer to a OffsetCommitRequest, with an error for each of its partitions in the order asked."""

    errors: tuple[ErrorCode, ...]


@attrs.frozen(kw_only=True)
class OffsetFetchRequest:
    """A member asks from where on it is to read."""

    partitions: tuple[TopicPartition, ...]
    member_id: MemberId = UNKNOWN_MEMBER
    generation: int = -1


@attrs.frozen
class OffsetFetchResponse:
    """The answer to an OffsetFetchRequest, in the order asked; None where nothing was committed."""

    offsets: tuple[Offset | None, ...] = ()
    error: ErrorCode = ErrorCode.NONE
