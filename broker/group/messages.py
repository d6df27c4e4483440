"""Define the requests for offsets and coordinators that both group protocols share.

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
    """A FindCoordinator request: ask any broker for the coordinator of a group."""

    group_id: str


@attrs.frozen
class FindCoordinatorResponse:
    """The response to a FindCoordinatorRequest; `broker` is absent with an error."""

    broker: BrokerId = NO_COORDINATOR
    error: ErrorCode = ErrorCode.NONE


@attrs.frozen(kw_only=True)
class OffsetCommitRequest:
    """An OffsetCommit request; `generation` is the generation, or the member epoch in a consumer group."""

    commits: tuple[Commit, ...]
    member_id: MemberId = UNKNOWN_MEMBER
    generation: int = -1
    instance_id: InstanceId | None = None


@attrs.frozen
class OffsetCommitResponse:
    """The response to an OffsetCommitRequest, with an error for each partition in the order of the request."""

    errors: tuple[ErrorCode, ...]


@attrs.frozen(kw_only=True)
class OffsetFetchRequest:
    """An OffsetFetch request: a member asks for its committed offsets."""

    partitions: tuple[TopicPartition, ...]
    member_id: MemberId = UNKNOWN_MEMBER
    generation: int = -1


@attrs.frozen
class OffsetFetchResponse:
    """The response to an OffsetFetchRequest, in the order of the request; None where nothing was committed."""

    offsets: tuple[Offset | None, ...] = ()
    error: ErrorCode = ErrorCode.NONE
