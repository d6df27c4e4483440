"""Define a consumer's settings, track its requests under way, and find its coordinator.

Constraints: each request gets one response, `Disconnected` if none comes in time. The coordinator must be known before
a request is sent to it. The settings are ConsumerConfig's; `poll_ms` and `revoke_ms` are the application's own.

Source: ConsumerConfig, AbstractCoordinator.ensureCoordinatorReady, markCoordinatorUnknown; ConsumerNetworkClient,
4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.group.classic import Ticket
from broker.group.members import InstanceId
from broker.group.messages import FindCoordinatorRequest, FindCoordinatorResponse
from broker.group.timers import Timers
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.groups.client.messages import Disconnected, Note, Output, Request, Response, Send


@attrs.frozen(kw_only=True)
class ClientOptions:
    """Hold Kafka's consumer settings; the application works for `poll_ms` on the records of one poll."""

    session_timeout_ms: DurationMs = attrs.field(default=DurationMs(45_000))
    heartbeat_interval_ms: DurationMs = attrs.field(default=DurationMs(3_000))
    max_poll_interval_ms: DurationMs = attrs.field(default=DurationMs(300_000))
    max_poll_records: int = 500
    auto_commit_interval_ms: DurationMs = attrs.field(default=DurationMs(5_000))
    metadata_age_ms_max: DurationMs = attrs.field(default=DurationMs(300_000))
    request_timeout_ms: DurationMs = attrs.field(default=DurationMs(30_000))
    retry_backoff_ms: DurationMs = attrs.field(default=DurationMs(100))
    poll_ms: DurationMs = attrs.field(default=DurationMs(500))


@attrs.frozen(kw_only=True)
class ClientSpec:
    """Describe one consumer: its name, group, topics and settings, and how its application behaves.

    `revoke_ms` is the time that the rebalance listener takes when partitions are revoked, 0 without a listener. An
    application that `remembers_partitions` asks, at every poll, for its position in each partition that it was first
    assigned, and fails if its consumer does not own that partition (SPARK-22968).
    """

    name: str
    group_id: str
    topics: tuple[str, ...]
    assignors: tuple[str, ...]
    """The names of the assignors, the preferred first; a member of a consumer group has at most one, the server's."""
    instance_id: InstanceId | None = None
    rack: str | None = None
    revoke_ms: DurationMs = attrs.field(default=DurationMs(0))
    remembers_partitions: bool = False
    options: ClientOptions = attrs.field(factory=ClientOptions)


LOOK_AGAIN: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
"""Errors after which another coordinator has to be found."""
_FIND: Final = "find"


class Link:
    """Track one consumer's requests that are under way."""

    def __init__(self, spec: ClientSpec, timers: Timers) -> None:
        self._spec = spec
        self._timers = timers
        self._asked: dict[Ticket, Callable[[Response], None]] = {}
        self._outputs: list[Output] = []
        self._count = 0
        self._is_looking = False
        self._found: list[Callable[[], None]] = []
        self.coordinator: BrokerId | None = None
        self.now_ms = TimeMs(0)

    def next_ticket(self) -> Ticket:
        """Return a new ticket, the name of one request."""
        self._count += 1
        return Ticket(self._count)

    def note(self, note: Note) -> None:
        """Add a note of an event to the outputs."""
        self._outputs.append(note)

    def ask(
        self,
        request: Request,
        then: Callable[[Response], None],
        *,
        ticket: Ticket | None = None,
        timeout_ms: DurationMs | None = None,
        anyone: bool = False,
    ) -> None:
        """Send `request` to the coordinator, or to `anyone`, and pass the response to `then`."""
        assert anyone or self.coordinator is not None, request
        number = self.next_ticket() if ticket is None else ticket
        time_ms = self._spec.options.request_timeout_ms if timeout_ms is None else timeout_ms
        self._asked[number] = then
        self._timers.set(_answer(number), self.now_ms, time_ms, lambda: self.answer(number, Disconnected()))
        self._outputs.append(Send(number, request, None if anyone else self.coordinator, time_ms))

    def answer(self, ticket: Ticket, response: Response) -> None:
        """Pass a response to its waiting handler; drop a late response."""
        then = self._asked.pop(ticket, None)
        if then is not None:
            self._timers.cancel(_answer(ticket))
            then(response)

    def take(self) -> tuple[Output, ...]:
        """Return all requests and notes since the last call."""
        outputs, self._outputs = tuple(self._outputs), []
        return outputs

    def lose_coordinator(self) -> None:
        """Forget the coordinator, so that the next request looks for it again."""
        self.coordinator = None

    def after_finding(self, then: Callable[[], None]) -> None:
        """Call `then` once the coordinator is known; a newer call replaces an older one that waits."""
        if self.coordinator is not None:
            then()
            return
        self._found = [then]
        self.look()

    def look(self) -> None:
        """Send FindCoordinator, unless one is under way."""
        if self.coordinator is None and not self._is_looking:
            self._is_looking = True
            self.ask(FindCoordinatorRequest(self._spec.group_id), self._on_found, anyone=True)

    def _on_found(self, response: Response) -> None:
        self._is_looking = False
        if isinstance(response, FindCoordinatorResponse) and response.error is ErrorCode.NONE:
            self.coordinator = response.broker
            found, self._found = self._found, []
            for then in found:
                then()
        else:
            self._timers.set(_FIND, self.now_ms, self._spec.options.retry_backoff_ms, self.look)


def _answer(ticket: Ticket) -> str:
    return f"answer {ticket}"
