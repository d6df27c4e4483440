"""A coordinator of a group with one member, in a few dictionaries, that errs until all is calm.

The member is given partitions only as the protocol allows; what it assigns itself as a leader is compared.

Source: GroupMetadataManager 4.3.1, as facts: a classic member without an id is given one and asked again; a member of a
consumer group is given new partitions when it has said that it does not own those that it lost.
"""

from __future__ import annotations

from typing import Any, Final

from broker.error_codes import ErrorCode
from broker.group.classic import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.group.consumer import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.members import InstanceId, MemberId
from broker.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from broker.group.protocol import read_assignment, write_assignment
from broker.ids import BrokerId, Offset, PartitionId, TopicPartition
from broker.units import DurationMs
from replication.groups.client.messages import (
    TopicMetadataRequest,
    TopicMetadataResponse,
)
from tests.support.drawing import Draws

TOPICS: Final = {"t": 3, "u": 2}
EVERY: Final = tuple(
    TopicPartition(topic, PartitionId(each)) for topic, count in TOPICS.items() for each in range(count)
)
_LOST: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_STRANGE: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
_BUSY: Final = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class OneMember:
    """Coordinate one member."""

    def __init__(self, draws: Draws, instance: InstanceId | None, *, is_consumer: bool) -> None:
        self._draws, self._instance, self._is_consumer = draws, instance, is_consumer
        self._member = ""
        self._epoch = 0
        self.share = frozenset(draws.some(EVERY))
        self._given: frozenset[TopicPartition] = frozenset()
        self._ever: frozenset[TopicPartition] = frozenset()
        self._owes = self.is_calling = False
        self._id_count = 0
        self._committed: dict[TopicPartition, Offset] = {}
        self._is_fenced = self._is_calm = self.leads = False
        self.counts = dict(TOPICS)
        self._told = ""

    def _error(self, *errors: ErrorCode) -> ErrorCode:
        """Return one of the errors now and then, while all goes wrong."""
        return self._draws.one(errors) if not self._is_calm and self._draws.is_one_in(6) else ErrorCode.NONE

    def _answer_to(self, request: Any) -> Any:
        match request:
            case FindCoordinatorRequest():
                error = self._error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
                return FindCoordinatorResponse(BrokerId(self._draws.number(0, 1)), error)
            case TopicMetadataRequest():
                return TopicMetadataResponse({topic: self.counts[topic] for topic in request.topics})
            case JoinGroupRequest():
                return self._joined(request)
            case SyncGroupRequest():
                return self._synced(request)
            case HeartbeatRequest():
                return HeartbeatResponse(ticket=request.ticket, error=self._of_heartbeat(request))
            case LeaveGroupRequest():
                return LeaveGroupResponse(ticket=request.ticket)
            case ConsumerGroupHeartbeatRequest():
                return self._beaten(request)
            case OffsetCommitRequest():
                return self._stored(request)
            case _:
                error = self._error(*_LOST, _BUSY)
                return OffsetFetchResponse(tuple(self._committed.get(each) for each in request.partitions), error)

    # A coordinator of one member.

    def _of_heartbeat(self, request: Any) -> ErrorCode:
        fenced = (ErrorCode.FENCED_INSTANCE_ID,) if self._instance and self._draws.is_one_in(30) else ()
        error = self._error(*_LOST, _BUSY, *_STRANGE, ErrorCode.REBALANCE_IN_PROGRESS, *fenced)
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._member = ""
        if error is not ErrorCode.NONE:
            self._is_fenced |= error is ErrorCode.FENCED_INSTANCE_ID
            return error
        if request.member_id != self._member:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if request.generation != self._epoch:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.REBALANCE_IN_PROGRESS if self.is_calling else ErrorCode.NONE

    def _new_id(self) -> str:
        self._id_count += 1
        return f"id-{self._id_count}"

    def _joined(self, request: JoinGroupRequest) -> JoinGroupResponse:
        ticket, name = request.ticket, str(request.member_id)
        error = self._error(*_LOST, _BUSY, ErrorCode.UNKNOWN_MEMBER_ID)
        if error is ErrorCode.NONE and name and name != self._member:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE:
            self._member = "" if error is ErrorCode.UNKNOWN_MEMBER_ID else self._member
            return JoinGroupResponse(ticket=ticket, error=error)
        if not name:
            self._member = self._new_id()
            if self._instance is None:
                needs = ErrorCode.MEMBER_ID_REQUIRED
                return JoinGroupResponse(ticket=ticket, error=needs, member_id=MemberId(self._member))
        self._epoch += 1
        self.is_calling = False
        member = MemberId(self._member)
        chosen = request.protocols[0]
        self.leads = self._draws.is_one_in(3)
        return JoinGroupResponse(
            ticket=ticket,
            member_id=member,
            generation=self._epoch,
            protocol_name=chosen.name,
            leader_id=member if self.leads else MemberId("other"),
            members=(JoinedMember(member, self._instance, chosen.metadata),) if self.leads else (),
        )

    def _synced(self, request: SyncGroupRequest) -> SyncGroupResponse:
        error = self._error(*_LOST, *_STRANGE, ErrorCode.REBALANCE_IN_PROGRESS)
        if error is ErrorCode.NONE and (request.member_id, request.generation) != (self._member, self._epoch):
            error = ErrorCode.ILLEGAL_GENERATION if request.member_id == self._member else ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE:
            self._member = "" if error is ErrorCode.UNKNOWN_MEMBER_ID else self._member
            return SyncGroupResponse(ticket=request.ticket, error=error)
        if self.leads:
            mine = dict(request.assignments).get(MemberId(self._member), b"")
            self.share = read_assignment(mine)
            if self.share != frozenset(EVERY):
                self._told = f"alone in its group it assigns itself {sorted(self.share)}"
        elif request.assignments:
            self._told = f"it does not lead and assigns {request.assignments}"
        return SyncGroupResponse(
            ticket=request.ticket, protocol_name=request.protocol_name, assignment=write_assignment(self.share)
        )

    def _beaten(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        if request.epoch < 0:
            return ConsumerGroupHeartbeatResponse(member_id=request.member_id, epoch=request.epoch)
        name = request.member_id or self._member or self._new_id()
        fenced = (ErrorCode.UNRELEASED_INSTANCE_ID,) if self._instance and self._draws.is_one_in(30) else ()
        error = self._error(*_LOST, _BUSY, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, *fenced)
        if error is ErrorCode.NONE and request.epoch not in (0, self._epoch):
            error = ErrorCode.FENCED_MEMBER_EPOCH
        if error is not ErrorCode.NONE:
            self._is_fenced |= error in fenced
            return ConsumerGroupHeartbeatResponse(error=error, member_id=request.member_id, epoch=request.epoch)
        self._member = name
        is_full = None not in (request.subscribed_topics, request.owned)
        if request.epoch == 0:
            if request.owned != frozenset() or request.subscribed_topics != frozenset(TOPICS):
                self._told = f"it joins with {request}"
            self._epoch += 1
            self._given, self._owes = self.share, False
            is_full = True
        elif request.owned is not None and not request.owned <= self._ever:
            self._told = f"it says that it owns {request.owned}, and was never given more than {self._ever}"
        before = self._given
        self._owes &= request.owned is None or not request.owned <= self.share
        if request.epoch and before - self.share:
            self._given, self._owes = before & self.share, True
        elif request.epoch and before != self.share and not self._owes:
            self._given = self.share
            self._epoch += 1
        self._ever |= self._given
        return ConsumerGroupHeartbeatResponse(
            member_id=MemberId(name),
            epoch=self._epoch,
            heartbeat_interval_ms=DurationMs(5_000),
            assignment=self._given if is_full or self._given != before else None,
        )

    def _stored(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        strange = (ErrorCode.STALE_MEMBER_EPOCH,) if self._is_consumer else (*_STRANGE, ErrorCode.REBALANCE_IN_PROGRESS)
        error = self._error(*_LOST, _BUSY, ErrorCode.REQUEST_TIMED_OUT, *strange)
        if error is ErrorCode.NONE:
            self._committed |= {each.partition: each.offset for each in request.commits}
        return OffsetCommitResponse((error,) * len(request.commits))
