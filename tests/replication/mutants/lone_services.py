"""Send a group's service requests of both protocols, and see who is refused, what is stored and when it answers.

What it decides: the members, their requests, sound and unsound, and which appends fail or come late, from a seed.

Constraints: what the service must answer is told from the responses before: which protocol has members, their ids and
epochs, and which appends are under way. What is in the log is all that the next coordinator knows.

Source: GroupMetadataManager and GroupCoordinatorService 4.3.1, as facts: a group is of one protocol while it has
members (GROUP_ID_NOT_FOUND, INCONSISTENT_GROUP_PROTOCOL); no answer before the records behind it are stored.
"""

from __future__ import annotations

from typing import Final

from broker.error_codes import ErrorCode
from broker.group.classic import (
    GroupState,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    Protocol,
    SyncGroupRequest,
    Ticket,
)
from broker.group.consumer import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from broker.group.members import MemberId
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from broker.group.offsets import Commit
from broker.group.protocol import Subscription, write_assignment
from broker.ids import Offset
from broker.units import DurationMs, TimeMs
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.service_log import EVERY, OWN, REFUSED, SESSION_MS, ServiceLog

STEP_COUNT: Final = 80
_STREAM: Final = 32


def service_noticed(seed: int) -> str:
    """Return what a group's service answers or stores that it must not, "" if nothing."""
    draws = Draws(seed, _STREAM)
    return next((told for told in (_Life(draws).run() for _ in range(2)) if told), "")


class _Life(ServiceLog):
    """Run one service with its members."""

    def run(self) -> str:
        """Run until the steps are over or something is wrong; then the coordinator moves away."""
        steps = (self._beat, self._beat, self._commit, self._commit, self._join, self._old, self._finish, self._finish)
        for _ in range(STEP_COUNT):
            self._now_ms += self._draws.number(0, 500)
            self._take(self._service.advance(TimeMs(self._now_ms)))
            self._draws.one((*steps, self._fetch))()
            self._compare()
            if self._told:
                return self._told
        if self._draws.is_one_in(2):
            self._take(self._service.unload(TimeMs(self._now_ms)))
            self._expect(not self._open, f"unloaded it owes {self._open}")
        else:
            self._age()
        return self._told

    # Members of both protocols.

    def _beat(self) -> None:
        name, draws = MemberId(self._draws.one(("m1", "m2"))), self._draws
        member = self._consumers.get(name)
        epoch = 0 if member is None else draws.one((member.epoch,) * 4 + (-1, member.epoch + 5))
        joins = {"rebalance_timeout_ms": DurationMs(30_000), "subscribed_topics": frozenset("t"), "owned": frozenset()}
        request = ConsumerGroupHeartbeatRequest(
            member_id=name, epoch=epoch, client_id=f"c-{name}", **(joins if epoch == 0 else {})
        )
        has_classic = bool(self._classic)
        self._service.take_departed()
        told = self._ask(request)
        if has_classic:
            wanted = ConsumerGroupHeartbeatResponse(error=ErrorCode.GROUP_ID_NOT_FOUND, member_id=name, epoch=epoch)
            self._expect(told == wanted, f"beside classic members {request} is answered {told}")
            return
        gone = [client for client, _ in self._service.take_departed()]
        self._expect(gone == [f"c-{name}"] * (epoch == -1), f"after {request} {gone} have left")
        is_fenced, ticket = member is not None and epoch > member.epoch, self._count

        def then(error: ErrorCode) -> None:
            answer = self._answers[ticket]
            if error is not ErrorCode.NONE:
                wanted = ConsumerGroupHeartbeatResponse(error=REFUSED[error], member_id=name, epoch=epoch)
                self._expect(answer == wanted, f"after {error} {request} is answered {answer}")
            else:
                wanted_error = ErrorCode.FENCED_MEMBER_EPOCH if is_fenced else ErrorCode.NONE
                self._expect(answer.error is wanted_error, f"{request} is answered {answer}")

        self._settle(then)

    def _join(self) -> None:
        if self._classic:
            return
        protocols = (Protocol("range", Subscription(topics=("t",)).to_bytes()),)
        request = JoinGroupRequest(
            ticket=OWN,
            client_id="c",
            protocols=protocols,
            session_timeout_ms=DurationMs(SESSION_MS),
            rebalance_timeout_ms=DurationMs(30_000),
            knows_two_steps=False,
        )
        has_consumers = bool(self._consumers)
        told = self._ask(request)
        if has_consumers:
            wanted = JoinGroupResponse(ticket=Ticket(self._count), error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            self._expect(told == wanted, f"beside consumers {request} is answered {told}")

    def _old(self) -> None:
        """Send another request of the classic protocol than a join."""
        group, draws = self._service.classic.group, self._draws
        name = draws.one((*sorted(self._classic), MemberId("x")))
        generation = group.generation
        shares = ((name, write_assignment(EVERY)),)
        request = draws.one(
            (
                SyncGroupRequest(ticket=OWN, member_id=name, generation=generation, assignments=shares),
                SyncGroupRequest(ticket=OWN, member_id=name, generation=generation, assignments=shares),
                HeartbeatRequest(ticket=OWN, member_id=name, generation=generation),
                LeaveGroupRequest(ticket=OWN, members=((name, None),)),
            )
        )
        if any(isinstance(each, SyncGroupRequest) for each in self._open.values()):
            return  # A member waits for one SyncGroup at a time.
        is_known = name in self._classic
        self._service.take_departed()
        told = self._ask(request)
        if isinstance(request, LeaveGroupRequest):
            self._kept_ms.pop(name, None)
            left = [client for client, _ in self._service.take_departed()]
            self._expect(("c" in left) == is_known, f"{request} made {left} leave")
        elif not is_known:
            is_refused = told is not None and told.error is ErrorCode.UNKNOWN_MEMBER_ID
            self._expect(is_refused, f"a stranger's {request} is answered {told}")

    # Offsets.

    def _error_of(self, name: str, generation: int) -> ErrorCode:
        """Return what refuses a commit."""
        service = self._service
        if self._consumers:
            member = self._consumers.get(MemberId(name))
            if member is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            return ErrorCode.NONE if generation == member.epoch else ErrorCode.STALE_MEMBER_EPOCH
        if name not in self._classic:
            return ErrorCode.NONE if generation < 0 and not self._classic else ErrorCode.UNKNOWN_MEMBER_ID
        if generation != service.classic.group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        is_waiting = service.classic.group.state is GroupState.COMPLETING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if is_waiting else ErrorCode.NONE

    def _drawn_member(self) -> tuple[str, int]:
        name = self._draws.one(("", "x", *sorted(self._consumers), *sorted(self._classic) * 3))
        member = self._consumers.get(MemberId(name))
        epoch = self._service.classic.group.generation if member is None else member.epoch
        return name, self._draws.one((-1, epoch + 1) if name in ("", "x") else (epoch, epoch, epoch, epoch + 1))

    def _commit(self) -> None:
        name, generation = self._drawn_member()
        commits = tuple(Commit(each, Offset(self._draws.number(0, 99))) for each in self._draws.some(EVERY, 1))
        wanted, is_classic = self._error_of(name, generation), name in self._classic
        told = self._ask(OffsetCommitRequest(commits=commits, member_id=MemberId(name), generation=generation))
        if wanted is not ErrorCode.NONE:
            refusal = OffsetCommitResponse((wanted,) * len(commits))
            self._expect(told == refusal, f"{name} commits in {generation}: {told}, and it is {wanted}")
            return
        if is_classic:
            self._kept_ms[MemberId(name)] = self._now_ms
        ticket = self._count

        def then(error: ErrorCode) -> None:
            answer = OffsetCommitResponse((REFUSED.get(error, ErrorCode.NONE),) * len(commits))
            self._expect(self._answers[ticket] == answer, f"after {error} a commit is {self._answers[ticket]}")
            if error is ErrorCode.NONE:
                self._offsets |= {each.partition: int(each.offset) for each in commits}

        self._settle(then)

    def _fetch(self) -> None:
        name, generation = self._drawn_member()
        wanted = self._error_of(name, generation) if self._consumers and name else ErrorCode.NONE
        told = self._ask(OffsetFetchRequest(partitions=EVERY, member_id=MemberId(name), generation=generation))
        offsets = tuple(self._offsets.get(each) for each in EVERY)
        is_right = (
            told == OffsetFetchResponse(error=wanted) if wanted is not ErrorCode.NONE else told.offsets == offsets
        )
        is_former = bool(name) and self._service.is_consumer_group and not self._consumers
        self._expect(is_right or is_former, f"{name} of {generation} fetches {told}, of {offsets} and {wanted}")
