"""Let one member of a classic group and one of a consumer group talk to coordinators that change and fail.

What it decides: what each says next, by what it was told last: it joins, synchronises, beats, leaves.

Constraints: a member that was told that it is in, by an answer behind which all is replicated, is known to every later
coordinator until it has been silent for its session; while nothing fails it is refused nothing.

Source: CoordinatorRuntime and GroupMetadataManager 4.3.1, as facts: no response shows what is not committed; one that
appends nothing waits for what is pending (waitForPendingWrites), at most for the timeout of an append.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    Protocol,
    SyncGroupRequest,
    Ticket,
)
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.members import MemberId
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest
from broker.group.protocol import Subscription, write_assignment
from broker.units import DurationMs
from replication.groups.connection_messages import GroupRequest
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.offsets_world import OffsetsLog
from tests.replication.mutants.shard_brokers import CALLER, EVERY, HOME, LOOK_MS, WAIT_MS, Asked, ShardBrokers

_SESSION_MS: Final = {"c": 10_000, "g": 45_000}
REFUSALS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS)
"""The errors with which an append is refused at once."""


ITS_OWN: Final = -1


@attrs.define
class _Wait:
    """Hold what a heartbeat's answer waits for: the log up to `end_offset`, ITS_OWN append, None as it is handled."""

    due_ms: int
    end_offset: int | None

    def allows(self, error: ErrorCode, now_ms: int, log: OffsetsLog, *, has_led: bool, is_losing: bool) -> bool:
        """Return whether the time has come for an answer with this error."""
        if self.end_offset == ITS_OWN:
            return True
        is_committed = log.high_watermark >= (log.log_end_offset if self.end_offset is None else self.end_offset)
        if error is ErrorCode.COORDINATOR_NOT_AVAILABLE and self.end_offset is not None:
            return now_ms >= self.due_ms and not (is_committed and has_led) and not is_losing
        if error is ErrorCode.NOT_COORDINATOR and self.end_offset is not None:
            return is_losing
        return is_committed or error is not ErrorCode.NONE


def _errors(response: Any) -> list[ErrorCode]:
    return list(response.errors) if isinstance(response, OffsetCommitResponse) else [response.error]


class ShardMembers(ShardBrokers):
    """Send requests to the brokers, those of two members among them."""

    def __init__(self, draws: Draws) -> None:
        super().__init__(draws)
        self._ticket, self._is_calm = 0, False
        self._members: dict[str, tuple[str, int]] = {}
        self._known_ms: dict[str, int] = {}
        """When each member was told last that it is in, by an answer behind which all was stored."""
        self._doubted: set[str] = set()
        """The groups of which something was refused, late or moved since then."""
        self._end_offset = {"c": 0, "g": 0}
        """Where the log ended as each member last asked."""

    def _send(self, broker: int, group_id: str, request: Any, is_right: Callable[[Any], bool], wait_ms: int = 0) -> int:
        """Send a request, now and then twice; it waits for `wait_ms` at most."""
        self._ticket += 1
        asked = Asked(broker, group_id, request, self._now + wait_ms, is_right)
        self._open[self._ticket] = asked
        self._hosts[broker].appended.clear()
        message = GroupRequest(CALLER.node, 1, Ticket(self._ticket), Ticket(1), group_id, request)
        self._handle(broker, message)
        if self._draws.is_one_in(10):
            count = self._roles[broker].shards.copy()
            self._handle(broker, message)
            self._expect(count == self._roles[broker].shards, "a request that came twice has changed something")
        if wait_ms == 0:
            self._expect(self._ticket not in self._open, f"{request} is not answered at once")
        return self._ticket

    def _refusal(self, broker: int, group_id: str, request: Any) -> ErrorCode | None:
        state = self._state.get((broker, HOME[group_id]))
        if state is None:
            return ErrorCode.NOT_COORDINATOR
        if state == "reads":
            return ErrorCode.NONE if isinstance(request, HeartbeatRequest) else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return None

    def _refused(self, broker: int, group_id: str, request: Any) -> bool:
        """Send a request that the broker must refuse as a whole, and return whether it must."""
        error = self._refusal(broker, group_id, request)
        if error is None:
            return False
        count = len(request.commits) if isinstance(request, OffsetCommitRequest) else 1
        self._send(broker, group_id, request, lambda told: _errors(told) == [error] * count)
        return True

    # Members.

    def _member(self) -> None:
        """Let the member of the classic or of the consumer group say something, if it has nothing under way."""
        self._member_of(self._draws.one("cg"))

    def _member_of(self, group_id: str) -> None:
        leading = [broker for broker, partition in self._state if partition == HOME[group_id]]
        open_requests = [each.request for each in self._open.values() if each.group_id == group_id]
        if any(not isinstance(each, OffsetFetchRequest) for each in open_requests):
            return
        broker = 0 if self._is_calm else self._draws.one((*leading * 6, 0, 1))
        request = self._beat() if group_id == "g" else self._say()
        if self._refused(broker, group_id, request):
            self._doubted.add(group_id)
            return
        if self._draws.is_one_in(8) and not self._is_calm:
            self._hosts[broker].refusing = self._draws.one(REFUSALS)
            self._doubted.add(group_id)
        joins = isinstance(request, JoinGroupRequest)
        self._end_offset[group_id] = self._logs[4].log_end_offset
        if group_id == "g":
            self._send_beat(broker, request)
        else:
            self._send(broker, group_id, request, lambda told: self._heard(group_id, request, told), 10**9)
        self._hosts[broker].refusing = ErrorCode.NONE
        for asked in self._open.values():
            if asked.request is request and group_id == "c":
                asked.until_ms = self._now + 25_000 if joins else 10**9
                self._expect(joins or self._is_storing(broker, "c"), f"{request} waits for nothing")

    def _is_storing(self, broker: int, group_id: str) -> bool:
        """Return whether a coordinator does not know the result of an append of this group yet."""
        return any(
            each[:2] == (broker, HOME[group_id]) and self._group_of[number] == group_id
            for number, each in self._pending.items()
        )

    def _send_beat(self, broker: int, request: Any) -> None:
        """Send a heartbeat of the consumer group, whose answer waits for an append, or for all that the log has."""
        log, leads = self._logs[HOME["g"]], self._hosts[broker].leads
        wait = _Wait(self._now + WAIT_MS, None if HOME["g"] in leads else ITS_OWN)

        def is_due(error: ErrorCode) -> bool:
            return wait.allows(error, self._now, log, has_led=HOME["g"] in leads, is_losing=self._is_losing)

        def is_right(told: Any) -> bool:
            if told.error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._doubted.add("g")  # Nothing was replicated for as long as an append may take.
            return is_due(told.error) and self._heard("g", request, told)

        ticket = self._send(broker, "g", request, is_right, 10**9)
        if ticket in self._open and wait.end_offset is None and not self._is_storing(broker, "g"):
            wait.end_offset = self._open[ticket].end_offset = log.log_end_offset
            self._open[ticket].until_ms = wait.due_ms + LOOK_MS
            self._expect(log.high_watermark < wait.end_offset, f"{request} waits for nothing")
        else:
            wait.end_offset = ITS_OWN

    def _beat(self) -> Any:
        _, epoch = self._members.get("g", ("m", 0))
        joins = {"rebalance_timeout_ms": DurationMs(30_000), "subscribed_topics": frozenset("t"), "owned": frozenset()}
        return ConsumerGroupHeartbeatRequest(
            member_id=MemberId("m"), epoch=epoch, client_id="x", **(joins if epoch == 0 else {})
        )

    def _say(self) -> Any:
        ticket = Ticket(0)
        if "c" not in self._members:
            return JoinGroupRequest(
                ticket=ticket,
                client_id="x",
                protocols=(Protocol("range", Subscription(topics=("t",)).to_bytes()),),
                session_timeout_ms=DurationMs(_SESSION_MS["c"]),
                rebalance_timeout_ms=DurationMs(10_000),
                knows_two_steps=False,
            )
        name, generation = MemberId(self._members["c"][0]), self._members["c"][1]
        if "c" not in self._known_ms:
            shares = ((name, write_assignment(EVERY[:2])),)
            return SyncGroupRequest(ticket=ticket, member_id=name, generation=generation, assignments=shares)
        if self._draws.is_one_in(10) and not self._is_calm:
            return LeaveGroupRequest(ticket=ticket, members=((name, None),))
        return HeartbeatRequest(ticket=ticket, member_id=name, generation=generation)

    def _heard(self, group_id: str, request: Any, told: Any) -> bool:
        """Take what a member is told; return whether it may be told so."""
        error = told.error
        known_ms = self._known_ms.get(group_id)
        if error is ErrorCode.NONE and not isinstance(request, LeaveGroupRequest):
            self._doubted.discard(group_id)
            if isinstance(request, JoinGroupRequest):
                self._members[group_id] = told.member_id, told.generation
                return True
            if group_id == "g":
                self._members[group_id] = "m", told.epoch
            if self._end_offset[group_id] <= self._logs[4].high_watermark:
                self._known_ms[group_id] = self._now
            return True
        was_sure = known_ms is not None and group_id not in self._doubted
        is_known = known_ms is not None and self._now - known_ms < _SESSION_MS[group_id]
        self._known_ms.pop(group_id, None)
        self._members.pop(group_id, None)
        if isinstance(request, LeaveGroupRequest):
            return True
        return self._is_losing or not (is_known and (was_sure or error is ErrorCode.UNKNOWN_MEMBER_ID))
