"""Define the requests for coordinators and offsets, which both group protocols share.

The joining itself is in `classic.messages` and `consumer.messages`.

Source: OffsetCommit, OffsetFetch, FindCoordinatorRequest in clients/src/main/resources/common/message, 4.0.
"""

from __future__ import annotations

import attrs

from broker.error_codes import ErrorCode
from broker.group.members import UNKNOWN_MEMBER, InstanceId, MemberId
from broker.group.offsets import Commit
from broker.group.records import CommittedOffset
from broker.ids import BrokerId, Offset, TopicPartition

NO_COORDINATOR = BrokerId(-1)


@attrs.frozen
class FindCoordinatorRequest:
    """Ask any broker for the coordinator of a group."""

    group_id: str


@attrs.frozen
class FindCoordinatorResponse:
    """Answer a FindCoordinator; `broker` is None in an error response."""

    broker: BrokerId = NO_COORDINATOR
    error: ErrorCode = ErrorCode.NONE


@attrs.frozen(kw_only=True)
class OffsetCommitRequest:
    """Commit offsets; `generation` is the classic group's generation or the consumer group's member epoch."""

    commits: tuple[Commit, ...]
    member_id: MemberId = UNKNOWN_MEMBER
    generation: int = -1
    instance_id: InstanceId | None = None


@attrs.frozen
class OffsetCommitResponse:
    """Answer an OffsetCommit with an error for each partition, in the order of the request."""

    errors: tuple[ErrorCode, ...]


@attrs.frozen(kw_only=True)
class OffsetFetchRequest:
    """Ask for a group's committed offsets."""

    partitions: tuple[TopicPartition, ...]
    member_id: MemberId = UNKNOWN_MEMBER
    generation: int = -1


@attrs.frozen
class OffsetFetchResponse:
    """Answer an OffsetFetch in the order of the request; None where no offset is committed.

    `committed` are the same offsets with their metadata and leader epochs, which no consumer here reads.
    """

    offsets: tuple[Offset | None, ...] = ()
    error: ErrorCode = ErrorCode.NONE
    committed: tuple[CommittedOffset | None, ...] = attrs.field(default=(), eq=False)


@attrs.frozen
class DeleteGroupRequest:
    """Delete a group without members, and its offsets."""


@attrs.frozen
class DeleteGroupResponse:
    """Answer a DeleteGroups for one group."""

    error: ErrorCode = ErrorCode.NONE


@attrs.frozen
class OffsetDeleteRequest:
    """Delete committed offsets of topics to which no member subscribes."""

    partitions: tuple[TopicPartition, ...]


@attrs.frozen
class OffsetDeleteResponse:
    """Answer an OffsetDelete with an error for the group, or for each partition in the order of the request."""

    errors: tuple[ErrorCode, ...] = ()
    error: ErrorCode = ErrorCode.NONE
