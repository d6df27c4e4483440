"""Let one consumer talk to a sound coordinator on a fast network, and write down all that either says, with its time.

What it decides: when each answer arrives, a few milliseconds after its request; the next answer to a kind of request
may be given from outside.

Constraints: the consumer is advanced exactly when it says that it has something to do.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.group.consumer import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.members import InstanceId
from broker.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from broker.ids import Offset, TopicPartition
from broker.units import DurationMs, TimeMs
from replication.groups.client.messages import Disconnected, Send
from replication.groups.client.options import ClientOptions, ClientSpec
from replication.groups.client.protocols import GroupProtocol, new_client
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.one_member import EVERY, TOPICS, OneMember

MAX_POLL_MS: Final = 60_000
METADATA_MS: Final = 20_000
POLL_MS: Final = 500
SETTLED_MS: Final = 12_000
"""When a consumer has long joined."""
TALK_ASSIGNORS: Final = {
    GroupProtocol.EAGER: ("sticky",),
    GroupProtocol.COOPERATIVE: ("cooperative-sticky",),
    GroupProtocol.CONSUMER: ("uniform",),
}


@attrs.frozen
class Entry:
    """Hold what was sent, noted or answered at a time: a request, a note, or a request with its response."""

    at_ms: int
    sent: Any = None
    noted: Any = None
    response: Any = None


class _Feed:
    """Ten records a second in each partition."""

    def end_offset(self, partition: TopicPartition, now_ms: TimeMs) -> Offset:
        """Return the offset after the last record."""
        return Offset(now_ms // 100)


class Talk(OneMember):
    """Hold one consumer and its coordinator; `log` is all that was said."""

    def __init__(self, draws: Draws, protocol: GroupProtocol, **options: Any) -> None:
        is_consumer = protocol is GroupProtocol.CONSUMER
        super().__init__(draws, draws.one((None, InstanceId("i"))), is_consumer=is_consumer)
        self._is_calm = True
        self.protocol, self.is_consumer, self.is_static = protocol, is_consumer, self._instance is not None
        self.revoke_ms = draws.one((0, 0, 700))
        timeout_ms = options.pop("request_timeout_ms", DurationMs(10_000))
        self.spec = ClientSpec(
            name="c",
            group_id="g",
            topics=tuple(TOPICS),
            assignors=TALK_ASSIGNORS[protocol],
            instance_id=self._instance,
            rack="r",
            revoke_ms=DurationMs(self.revoke_ms),
            options=ClientOptions(
                max_poll_interval_ms=DurationMs(MAX_POLL_MS),
                metadata_age_ms_max=DurationMs(METADATA_MS),
                request_timeout_ms=timeout_ms,
            ),
            **options,
        )
        self.client = new_client(self.spec, protocol, _Feed(), SplitMix64(draws.number(0, 10**6)))
        self.now_ms = 0
        self.log: list[Entry] = []
        self.replies: dict[type, Callable[[Any], Any]] = {}
        """How the next request of a kind is answered, if not by the coordinator."""
        self.silent: set[type] = set()
        self.unanswered: list[Send] = []
        """The requests of such kinds, which may be answered from outside."""
        self.trouble_ms = -1
        """When the last of these answers arrived."""
        self._under_way: list[tuple[int, Send]] = []

    def do(self, outputs: tuple[Any, ...]) -> None:
        """Write down what the consumer says, and plan the answers."""
        for output in outputs:
            if isinstance(output, Send):
                self.log.append(Entry(self.now_ms, sent=output.request))
                if type(output.request) in self.silent:
                    self.unanswered.append(output)
                else:
                    last_ms = self._under_way[-1][0] if self._under_way else 0
                    self._under_way.append((max(last_ms, self.now_ms + self._draws.number(1, 9)), output))
            else:
                self.log.append(Entry(self.now_ms, noted=output))

    def run_until(self, end_ms: int) -> None:
        """Let time pass."""
        while not self.client.is_over:
            next_ms = self.client.next_ms()
            times = [at_ms for at_ms, _ in self._under_way] + ([] if next_ms is None else [int(next_ms)])
            at_ms = max(min(times, default=end_ms), self.now_ms)
            if at_ms >= end_ms:
                break
            self.now_ms = at_ms
            due = next((each for each in self._under_way if each[0] <= at_ms), None)
            if due is None:
                self.do(self.client.advance(TimeMs(at_ms)))
            else:
                self._under_way.remove(due)
                self._reply(due[1])
        self.now_ms = max(self.now_ms, end_ms)

    def _reply(self, send: Send) -> None:
        given = self.replies.pop(type(send.request), None)
        response = self._answer_to(send.request) if given is None else given(send.request)
        if given is not None:
            self.trouble_ms = self.now_ms
        self.answer(send, response)

    def answer(self, send: Send, response: Any) -> None:
        """Bring the answer to a request now."""
        self.log.append(Entry(self.now_ms, sent=send.request, response=response))
        self.do(self.client.handle(send.ticket, response, TimeMs(self.now_ms)))

    # What was said.

    def sends(self, kind: type, since_ms: int = 0) -> list[tuple[int, Any]]:
        """Return the requests of a kind from a time on, each with its time."""
        return [
            (each.at_ms, each.sent)
            for each in self.log
            if isinstance(each.sent, kind) and each.response is None and each.at_ms >= since_ms
        ]

    def answers(self, kind: type) -> list[Entry]:
        """Return the answered requests of a kind."""
        return [each for each in self.log if isinstance(each.sent, kind) and each.response is not None]

    def notes(self, kind: type, since_ms: int = 0) -> list[tuple[int, Any]]:
        """Return the notes of a kind from a time on, each with its time."""
        return [
            (each.at_ms, each.noted) for each in self.log if isinstance(each.noted, kind) and each.at_ms >= since_ms
        ]


def settled(draws: Draws, protocol: GroupProtocol, **options: Any) -> Talk:
    """Return a consumer that has joined, owns something and reads."""
    talk = Talk(draws, protocol, **options)
    talk.share = frozenset(draws.some(EVERY, 1))
    talk.leads = False
    talk.do(talk.client.start(TimeMs(0)))
    talk.run_until(SETTLED_MS + draws.number(0, 6_000))
    return talk


def erring(error: ErrorCode | None) -> Callable[[Any], Any]:
    """Return who answers every request by an error; None for a broken connection."""

    def answer(request: Any) -> Any:
        if error is None:
            return Disconnected()
        match request:
            case HeartbeatRequest():
                return HeartbeatResponse(ticket=request.ticket, error=error)
            case JoinGroupRequest():
                return JoinGroupResponse(ticket=request.ticket, error=error)
            case SyncGroupRequest():
                return SyncGroupResponse(ticket=request.ticket, error=error)
            case ConsumerGroupHeartbeatRequest():
                return ConsumerGroupHeartbeatResponse(error=error, member_id=request.member_id, epoch=request.epoch)
            case OffsetCommitRequest():
                return OffsetCommitResponse((ErrorCode.NONE,) * (len(request.commits) - 1) + (error,))
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(error=error)
            case _:
                return OffsetFetchResponse(error=error)

    return answer
