"""Store what a group's service appends, or refuse it, and hold the service to the order of storing and answering.

What it decides: which appends fail at once and which are not replicated in time, drawn; every request is answered once,
by a response of its kind, and not before the last append that was under way when it came has ended.

Constraints: the next coordinator knows what is in the log, and must know as much as this one after each step.

Source: CoordinatorRuntime 4.3.1, as facts: a write's response waits for the high watermark; offsets.retention.minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.assignors import Subscriber
from broker.group.classic import (
    ClassicOptions,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    Ticket,
)
from broker.group.consumer import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerOptions,
    GroupContext,
)
from broker.group.members import GroupRecord, MemberId
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from broker.group.offsets import OffsetOptions
from broker.group.service import Append, GroupEntry, GroupService, OffsetRecord, Output, Reply, ServiceOptions
from broker.ids import Offset, PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from tests.replication.mutants.drawing import Draws

SESSION_MS: Final = 6_000
EXPIRY_MS: Final = 25 * 60_000
"""Longer than offsets are retained and two looks for old ones."""
EVERY: Final = tuple(TopicPartition("t", PartitionId(each)) for each in range(3))
OWN: Final = Ticket(0)
_ANSWERS: Final[Mapping[type, type]] = {
    JoinGroupRequest: JoinGroupResponse,
    SyncGroupRequest: SyncGroupResponse,
    HeartbeatRequest: HeartbeatResponse,
    LeaveGroupRequest: LeaveGroupResponse,
    ConsumerGroupHeartbeatRequest: ConsumerGroupHeartbeatResponse,
    OffsetCommitRequest: OffsetCommitResponse,
    OffsetFetchRequest: OffsetFetchResponse,
}
REFUSED: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""What a member is told of an append that failed."""
_AT_ONCE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS)


class _ToFirst:
    """Give every partition to the first member."""

    name = "uniform"

    def assign(
        self, members: Sequence[Subscriber], partition_counts: Mapping[str, int]
    ) -> Mapping[MemberId, frozenset[TopicPartition]]:
        """Return the assignment."""
        return {members[0].member_id: frozenset(EVERY[: partition_counts["t"]])}


_OPTIONS: Final = ServiceOptions(
    classic=ClassicOptions(initial_delay_ms=DurationMs(0)),
    context=GroupContext(
        options=ConsumerOptions(assignment_interval_ms=DurationMs(0)), assignors=(_ToFirst(),), topics={"t": 3}
    ),
    offsets=OffsetOptions(retention_ms=DurationMs(60_000)),
)


class ServiceLog:
    """Run one service and its log, and know who waits for which append."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._service = GroupService("g", _OPTIONS, SplitMix64(7))
        self._now_ms = self._count = 0
        self._service.load((), TimeMs(0))
        self._open: dict[int, Any] = {}
        self._answers: dict[int, Any] = {}
        self._under_way: list[Append] = []
        self._settling: list[tuple[int, int, Callable[[ErrorCode], None]]] = []
        """By append: the ticket that waits for it, and what must hold when it ends."""
        self._failed: list[ErrorCode] = []
        """The errors of the appends that failed at once, since the last request."""
        self._log: list[GroupEntry] = []
        self._offsets: dict[TopicPartition, int] = {}
        self._kept_ms: dict[MemberId, int] = {}
        self._is_in_doubt = False
        """Whether a classic group's record timed out: it is in the log, and the group is another."""
        self._told = ""

    # The log, and who waits for it.

    def _expect(self, holds: bool, told: str) -> None:
        if not holds:
            self._told = self._told or f"at {self._now_ms}: {told}"

    def _take(self, outputs: tuple[Output, ...]) -> None:
        for output in outputs:
            if isinstance(output, Append):
                if self._draws.is_one_in(8):
                    self._failed.append(self._draws.one(_AT_ONCE))
                    self._take(self._service.stored(output.token, self._failed[-1], TimeMs(self._now_ms)))
                else:
                    self._under_way.append(output)
                continue
            request = self._open.pop(output.ticket, None)
            self._expect(
                request is not None and isinstance(output.response, _ANSWERS[type(request)]),
                f"{request} is answered {output}",
            )
            self._answers[output.ticket] = output.response

    def _ask(self, request: Any) -> Any:
        """Hand a request in, and return what is answered at once, None for nothing."""
        self._count += 1
        self._open[self._count] = request
        self._failed.clear()
        self._take(self._service.handle(Ticket(self._count), request, TimeMs(self._now_ms)))
        return self._answers.get(self._count)

    def _settle(self, then: Callable[[ErrorCode], None]) -> None:
        """Expect the answer to the last request when the last append ends, at once if none is under way."""
        ticket = self._count
        if self._failed:
            self._expect(ticket in self._answers, f"{ticket} waits for an append that was refused")
            then(self._failed[-1])
        elif self._under_way:
            self._expect(ticket not in self._answers, f"{ticket} is answered before it is stored")
            self._settling.append((self._under_way[-1].token, ticket, then))
        else:
            self._expect(ticket in self._answers, f"{ticket} waits for nothing")
            then(ErrorCode.NONE)

    def _finish(self) -> None:
        """End the oldest append: it is replicated, or not in time."""
        if not self._under_way:
            return
        append = self._under_way.pop(0)
        error = ErrorCode.REQUEST_TIMED_OUT if self._draws.is_one_in(6) else ErrorCode.NONE
        is_late = error is not ErrorCode.NONE
        self._is_in_doubt |= is_late and any(isinstance(each, GroupRecord) for each in append.entries)
        # Offsets that are not replicated in time are the shard's affair.
        self._log += [each for each in append.entries if not (is_late and isinstance(each, OffsetRecord))]
        due = [each for each in self._settling if each[0] == append.token]
        self._settling = [each for each in self._settling if each[0] != append.token]
        self._expect(all(ticket not in self._answers for _, ticket, _ in due), f"{due} were answered too early")
        self._take(self._service.stored(append.token, error, TimeMs(self._now_ms)))
        self._take(self._service.stored(append.token, error, TimeMs(self._now_ms)))
        for _, ticket, then in due:
            self._expect(ticket in self._answers, f"{ticket} still waits")
            if not self._told:
                then(error)

    # Members of both protocols.

    @property
    def _consumers(self) -> Mapping[MemberId, Any]:
        return self._service.consumer.group.members

    @property
    def _classic(self) -> Mapping[MemberId, Any]:
        return self._service.classic.group.members

    # What stays.

    def _compare(self) -> None:
        """See that members are of one protocol, that who commits stays, and that another coordinator knows the same."""
        service = self._service
        self._expect(not (self._classic and self._consumers), "members of both protocols")
        known = self._consumers if service.is_consumer_group else self._classic
        self._expect(service.members == {each: known[each].client_id for each in known}, f"{service.members} are in")
        generation = service.consumer.group.epoch if service.is_consumer_group else service.classic.group.generation
        self._expect(service.generation == generation, f"it is in {service.generation}, not in {generation}")
        for name, at_ms in self._kept_ms.items():
            self._expect(
                name in self._classic or self._now_ms >= at_ms + SESSION_MS, f"{name} is gone, and committed at {at_ms}"
            )
        next_ms = service.next_ms()
        self._expect(next_ms >= self._now_ms, f"it was due at {next_ms}")
        if self._under_way:
            return
        other = GroupService("g", _OPTIONS, SplitMix64(8))
        other.load(self._log, TimeMs(self._now_ms))
        kept = service.consumer.group
        self._expect(other.consumer.group == kept, f"the log has {other.consumer.group}, the coordinator {kept}")
        told = other.handle(OWN, OffsetFetchRequest(partitions=EVERY), TimeMs(self._now_ms))
        offsets = OffsetFetchResponse(
            tuple(None if each not in self._offsets else Offset(self._offsets[each]) for each in EVERY)
        )
        self._expect(told == (Reply(OWN, offsets),), f"another coordinator has {told}, committed are {offsets}")

    def _age(self) -> None:
        """Let the group, or the next coordinator of it, be forgotten by its members: offsets go when they are old."""
        while self._under_way and not self._told:
            self._finish()
        if self._draws.is_one_in(2) and not self._is_in_doubt:
            self._service = GroupService("g", _OPTIONS, SplitMix64(9))
            self._service.load(self._log, TimeMs(self._now_ms))
        end_ms, kept = self._now_ms + 2 * EXPIRY_MS, dict(self._offsets)
        refused_count = 0
        while self._now_ms < end_ms and not self._told:
            next_ms = int(self._service.next_ms())
            self._expect(next_ms > self._now_ms or self._now_ms < end_ms - 2 * EXPIRY_MS + 1_000, "its timers stand")
            self._now_ms = max(self._now_ms + 1, next_ms)
            for output in self._service.advance(TimeMs(self._now_ms)):
                if not isinstance(output, Append):
                    continue
                error = ErrorCode.NONE if refused_count > 2 or self._draws.is_one_in(2) else _AT_ONCE[-1]
                refused_count += 1
                due = [each for each in output.entries if isinstance(each, OffsetRecord)]
                self._expect(all(each.value is None for each in due), f"{due} are stored of themselves")
                self._service.stored(output.token, error, TimeMs(self._now_ms))
                if error is ErrorCode.NONE:
                    self._log += output.entries
                    names = [TopicPartition(each.key.topic, each.key.partition) for each in due]
                    kept = {each: offset for each, offset in kept.items() if each not in names}
                left = {each: int(value.offset) for each, value in self._service.offsets.of_group("g").items()}
                self._expect(left == kept, f"after {error} of {due} {left} are left, and {kept} should be")
        self._expect(not self._service.members, f"{self._service.members} are silent, and still in")
        self._expect(not kept, f"{kept} are older than they may be")
