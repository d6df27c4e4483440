"""A member's process takes what is meant for it, notices silent brokers, and is started again when that is due."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import Ticket
from broker.group.messages import FindCoordinatorResponse
from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from replication.groups.client.assigning import GroupProtocol
from replication.groups.client.messages import Died
from replication.groups.connections import (
    PROBE_MS,
    EventDue,
    FetchNext,
    GroupRequest,
    GroupResponse,
    MemberDue,
    ProbeDue,
    ProbeResult,
    RequestProbe,
)
from replication.groups.member import Member
from replication.groups.plan import RESTART_MS, Event, EventKind
from replication.roles.messages import ConsumerFetchResponse, Message, MetadataResponse, NodeId
from replication.roles.outbox import Outbox
from tests.replication.groups.builders import LAYOUT, OPTIONS, act, member


class World:
    """Bring one member its own timers, and no answer of any broker."""

    def __init__(self, *events: Event) -> None:
        plan = member("a", GroupProtocol.EAGER, *events, start_ms=0)
        self.eye = Mock()
        self.subject = Member(NodeId(7), plan, (OPTIONS, LAYOUT), SplitMix64(1), self.eye)
        self.sent: list[tuple[int, Any]] = []
        """What the member has sent: when, and the message."""
        self._due: list[tuple[int, int, Any]] = []
        self._count = 0
        self._take(0, self.subject.begin)

    def hand(self, at_ms: int, message: Any) -> None:
        """Let the member take a message."""
        self._take(at_ms, lambda out: self.subject.handle(message, TimeMs(at_ms), out))

    def run_until(self, end_ms: int) -> None:
        """Bring the timers that are due before `end_ms`."""
        while self._due and self._due[0][0] < end_ms:
            at_ms, _, message = heapq.heappop(self._due)
            self.hand(at_ms, message)

    def _take(self, at_ms: int, action: Callable[[Outbox], None]) -> None:
        out = Outbox()
        action(out)
        self.sent += [(at_ms, each) for _, each in out.sent]
        for delay_ms, each in out.woken:
            self._count += 1
            heapq.heappush(self._due, (at_ms + delay_ms, self._count, each))

    def asked(self, kind: type) -> list[int]:
        """Return when the member has sent requests of groups, or probes."""
        return [at_ms for at_ms, each in self.sent if isinstance(each, kind)]


@pytest.mark.parametrize(
    "message",
    [
        GroupResponse(BrokerId(0), 1, Ticket(1), FindCoordinatorResponse(BrokerId(0))),
        *(MemberDue(0), ProbeDue(0), FetchNext(0, 1), ProbeResult(BrokerId(0), 1, (Ticket(1),), frozenset())),
        MetadataResponse(0, 1, BrokerId(0), LeaderEpoch(0)),
    ],
    ids=lambda message: type(message).__name__,
)
@pytest.mark.parametrize("has_been", [False, True])
def test_a_member_whose_process_does_not_run_takes_nothing(message: Message, has_been: bool) -> None:
    world = World(act(500, EventKind.CRASH))
    if has_been:
        world.run_until(501)
    sent = list(world.sent)
    world.hand(600, message)
    assert (world.subject.client, world.sent) == (None, sent)
    world.eye.heard.assert_not_called()


def test_a_member_whose_broker_is_silent_asks_again_long_before_its_request_times_out() -> None:
    """A broker that answers no probe for `answer_ms_max` is given up; request.timeout.ms is 30 s."""
    world = World()
    world.run_until(25_000)
    first_ms, second_ms, *_ = world.asked(GroupRequest)
    silence_ms = OPTIONS.role_settings.answer_ms_max
    assert silence_ms <= second_ms - first_ms <= silence_ms + 2 * PROBE_MS + 200


def test_what_a_frozen_process_had_not_taken_is_gone_with_it_and_is_no_sign_of_life_to_the_next() -> None:
    """The brokers answered the former process; the next one hears nothing of its broker, and gives it up."""
    world = World(
        *(act(1_000, EventKind.FREEZE, 60_000), act(2_000, EventKind.CRASH), act(3_000, EventKind.START)),
        act(4_500, EventKind.FREEZE, 10_000),
    )
    world.run_until(1_500)
    for broker in range(OPTIONS.brokers):
        world.hand(1_500, GroupResponse(BrokerId(broker), 2, Ticket(99), FindCoordinatorResponse(BrokerId(0))))
    world.run_until(14_600)
    assert [at_ms for at_ms in world.asked(RequestProbe) if at_ms > 2_000] == [4_000]
    world.eye.heard.assert_not_called()


def test_the_end_of_a_freeze_does_nothing_to_a_process_that_was_started_meanwhile() -> None:
    freeze, crash, start = act(1_000, EventKind.FREEZE, 5_000), act(2_000, EventKind.CRASH), act(3_000, EventKind.START)
    world = World(freeze, crash, start)
    world.run_until(10_000)
    assert [call.args[1] for call in world.eye.acted.call_args_list] == [
        *("starts", "stands still for 5000 ms", "dies", "starts")
    ]


@pytest.mark.parametrize("has_crashed", [True, False])
def test_a_supervisor_starts_nobody_whose_next_process_was_started_meanwhile(has_crashed: bool) -> None:
    """The restart is due 5 s after a process has ended by itself; the plan starts another before, which may crash."""
    plan = member("a", GroupProtocol.EAGER, act(1_000, EventKind.START), act(2_000, EventKind.CRASH), start_ms=0)
    subject = Member(NodeId(7), plan, (OPTIONS, LAYOUT), SplitMix64(1), Mock())
    out = Outbox()
    subject.handle(EventDue(plan.events[0]), TimeMs(0), out)
    client = subject.client
    assert client is not None
    died = Outbox()
    subject._do(lambda _: (Died("fenced"),), TimeMs(500), died)
    client.is_over = True
    ((delay_ms, restart),) = [each for each in died.woken if isinstance(each[1], EventDue)]
    assert delay_ms == RESTART_MS == DurationMs(5_000)
    subject.handle(EventDue(plan.events[1]), TimeMs(1_000), out)
    second = subject.client
    assert second not in (None, client)
    if has_crashed:
        subject.handle(EventDue(plan.events[2]), TimeMs(2_000), out)
    subject.handle(restart, TimeMs(5_500), out)
    assert subject.client is (None if has_crashed else second)


def test_a_frozen_process_runs_its_due_timers_before_it_takes_what_has_come() -> None:
    """A poll that was due long ago does not read records that a fetch brought since."""
    world = World(act(1_100, EventKind.FREEZE, 5_000))
    world.run_until(1_101)
    done = Mock()
    done.advance.return_value = done.handle.return_value = ()
    done.next_ms.return_value = None
    world.subject.client, world.subject._fetcher = done, done
    world.hand(1_200, ConsumerFetchResponse(0, 1, ErrorCode.NONE, b"", Offset(0), Offset(9)))
    assert done.on_consumed.call_count == done.advance.call_count == 0
    world.run_until(6_101)
    names = [name for name, *_ in done.mock_calls]
    assert names.index("advance") < names.index("on_consumed")
