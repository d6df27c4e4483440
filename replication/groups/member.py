"""Run a group's member in the cluster: its consumer, connections and fetches, and the events of its plan.

Constraints: no message of a former process reaches the next. A frozen process runs its due timers when it goes on, then
takes the messages that came. A process that ended by itself is started again by its supervisor.

Source: ours; the consumer is that of `replication.groups.client`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from broker.entropy import RandomSource
from broker.group.classic import HeartbeatRequest, JoinGroupResponse, Ticket
from broker.group.consumer import ConsumerGroupHeartbeatRequest
from broker.group.messages import OffsetCommitRequest
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.groups.client.assigning import GroupProtocol
from replication.groups.client.classic_client import ClassicClient
from replication.groups.client.client import Client, Feed
from replication.groups.client.consumer_client import ConsumerClient
from replication.groups.client.link import ClientSpec
from replication.groups.client.messages import Died, Note, Output, PartitionsRevoked, Request, Send, Why
from replication.groups.connections import (
    LOST,
    PROBE_MS,
    ClientEnds,
    Due,
    EventDue,
    FetchNext,
    GroupResponse,
    HeldCommitDue,
    MemberDue,
    ProbeDue,
    ProbeResult,
)
from replication.groups.fetching import Fetcher
from replication.groups.plan import TRACE_TEXTS, Event, EventKind, Layout, MemberPlan
from replication.roles.messages import ConsumerFetchResponse, Message, MetadataResponse, NodeId
from replication.roles.outbox import Outbox
from replication.simulation.options import Options


class Observer(Protocol):
    """Observe members' events, requests and responses."""

    def acted(self, member: Member, text: str, now_ms: TimeMs) -> None:
        """Observe an event of a member."""
        ...

    def sent(self, member: Member, send: Send, now_ms: TimeMs) -> None:
        """Observe a request of a member."""
        ...

    def heard(self, member: Member, answer: GroupResponse, now_ms: TimeMs) -> None:
        """Observe a response that a member received."""
        ...

    def noted(self, member: Member, note: Note, now_ms: TimeMs) -> None:
        """Observe a note of a member's consumer."""
        ...


class Member:
    """Run one member as a client of the cluster; `client` is None while its process is down."""

    def __init__(
        self, node: NodeId, plan: MemberPlan, surroundings: tuple[Options, Layout], entropy: RandomSource, eye: Observer
    ) -> None:
        self.node = node
        self.plan = plan
        self.client: Client | None = None
        self.session = 0
        self._options, self._layout = surroundings
        self._entropy = entropy
        self._eye = eye
        self._fetcher = Fetcher(self._options, self._layout, entropy)
        self._feed = self._fetcher if plan.feed is None else plan.feed
        self._commits_held_until_ms = 0
        self._inbox: list[Message] = []
        self._wakes_ms: TimeMs | None = None
        self._number = 0
        self._begin_session()

    def _begin_session(self) -> None:
        self.session += 1
        options = self._options
        self._ends = ClientEnds(self.node, self.session, self.plan.spec.group_id, options.role_settings.answer_ms_max)
        self._fetcher.forget()
        self._inbox.clear()
        self._wakes_ms = None
        self._number += 1
        self._frozen_until_ms = 0
        self._lost_ticket: Ticket | None = None
        self.is_frozen = self._is_probing = self._loses_answer = self._dies_leading = False

    @property
    def is_alive(self) -> bool:
        """Return whether the member's process runs."""
        return self.client is not None and not self.client.is_over

    def begin(self, out: Outbox) -> None:
        """Plan the member's events."""
        for event in self.plan.events:
            out.wake(DurationMs(event.at_ms), EventDue(event))

    def handle(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        """Take a response, a timer, or an event."""
        if isinstance(message, EventDue):
            self._on_event_due(message, now_ms, out)
        elif self.is_frozen:
            self._inbox.append(message)
        else:
            self._take_message(message, now_ms, out)
        self._await(now_ms, out)

    def _take_message(self, message: Message, now_ms: TimeMs, out: Outbox) -> None:
        if isinstance(message, MemberDue):
            if message.number == self._number:
                self._wakes_ms = None
                self._do(lambda client: client.advance(now_ms), now_ms, out)
        elif isinstance(message, GroupResponse):
            if self._ends.hear(message):
                self._hear(message, now_ms, out)
        elif isinstance(message, ProbeResult):
            for ticket in list(self._ends.hear_probed(message)):
                self._lose(ticket, now_ms, out)
        elif isinstance(message, ProbeDue):
            if message.session == self.session:
                self._is_probing = False
                for ticket in list(self._ends.probe(now_ms, out)):
                    self._lose(ticket, now_ms, out)
        elif isinstance(message, FetchNext):
            self._fetcher.on_due(message, out)
        elif isinstance(message, MetadataResponse):
            self._fetcher.on_leader(message, out)
        elif isinstance(message, ConsumerFetchResponse):
            self._fetcher.on_consumed(message, out)
        elif isinstance(message, EventDue):
            self._on_event_due(message, now_ms, out)
        elif isinstance(message, HeldCommitDue) and message.session == self.session:
            self._ends.send(message.send, self._receiver(message.send), now_ms, out)

    def _hear(self, answer: GroupResponse, now_ms: TimeMs, out: Outbox) -> None:
        response = answer.response
        if answer.ticket == self._lost_ticket:
            self._lose(answer.ticket, now_ms, out)
        elif self._dies_leading and isinstance(response, JoinGroupResponse) and response.members:
            self._crash(now_ms)
        else:
            self._eye.heard(self, answer, now_ms)
            self._do(lambda client: client.handle(answer.ticket, response, now_ms), now_ms, out)

    def _lose(self, ticket: Ticket, now_ms: TimeMs, out: Outbox) -> None:
        self._do(lambda client: client.handle(ticket, LOST, now_ms), now_ms, out)

    def _do(self, action: Callable[[Client], tuple[Output, ...]], now_ms: TimeMs, out: Outbox) -> None:
        """Call the consumer, and carry out its outputs."""
        client = self.client
        assert client is not None, "nothing is under way while no process runs"
        for output in action(client):
            if isinstance(output, Send):
                self._send(output, now_ms, out)
            else:
                self._eye.noted(self, output, now_ms)
                if isinstance(output, Died) and self.plan.restart_ms is not None:
                    out.wake(self.plan.restart_ms, EventDue(Due.RESTART))
        if self.plan.feed is None:
            self._fetcher.follow(client.subscriptions, out)

    def _send(self, send: Send, now_ms: TimeMs, out: Outbox) -> None:
        self._eye.sent(self, send, now_ms)
        if self._loses_answer and _reports(send.request):
            self._loses_answer, self._lost_ticket = False, send.ticket
        if isinstance(send.request, OffsetCommitRequest) and now_ms < self._commits_held_until_ms:
            self._ends.hold(send.ticket)
            out.wake(DurationMs(self._commits_held_until_ms - now_ms), HeldCommitDue(self.session, send))
        else:
            self._ends.send(send, self._receiver(send), now_ms, out)

    def _receiver(self, send: Send) -> BrokerId:
        if send.broker is not None:
            return send.broker
        return BrokerId(self._entropy.next_int_bound(self._options.brokers))

    def _await(self, now_ms: TimeMs, out: Outbox) -> None:
        """Plan the consumer's next timer, and the next probe of requests under way."""
        client = self.client
        if client is None:
            return
        next_ms = client.next_ms()
        if next_ms is not None and (self._wakes_ms is None or next_ms < self._wakes_ms):
            self._wakes_ms = next_ms
            self._number += 1
            out.wake(DurationMs(next_ms - now_ms), MemberDue(self._number))
        if not self._is_probing and not self._ends.is_idle:
            self._is_probing = True
            out.wake(PROBE_MS, ProbeDue(self.session))

    # What befalls it.

    def _on_event_due(self, due: EventDue, now_ms: TimeMs, out: Outbox) -> None:
        if due.what is Due.FREEZE_ENDS:
            self._thaw(now_ms, out)
        elif due.what is Due.RESTART:
            if self.client is not None and self.client.is_over:
                self._start(now_ms, out)
        elif due.what.kind is EventKind.START:
            self._start(now_ms, out)
        elif self.is_frozen and due.what.kind in (EventKind.CLOSE, EventKind.STALL):
            self._inbox.append(due)
        elif self.is_alive:
            self._happen(due.what, now_ms, out)

    def _happen(self, event: Event, now_ms: TimeMs, out: Outbox) -> None:
        """Let an event strike the running process."""
        kind = event.kind
        lasting = f" for {event.for_ms} ms" if kind in (EventKind.STALL, EventKind.FREEZE) else ""
        self._eye.acted(self, f"{TRACE_TEXTS[kind]}{lasting}", now_ms)
        match kind:
            case EventKind.CRASH:
                self._crash(now_ms)
            case EventKind.CLOSE:
                self._do(lambda client: client.close(now_ms), now_ms, out)
            case EventKind.STALL:
                self._do(lambda client: client.stall(event.for_ms, now_ms), now_ms, out)
            case EventKind.FREEZE:
                self.is_frozen, self._frozen_until_ms = True, now_ms + event.for_ms
                out.wake(event.for_ms, EventDue(Due.FREEZE_ENDS))
            case EventKind.CRASH_LEADING:
                self._dies_leading = True
            case EventKind.HOLD_COMMITS:
                self._commits_held_until_ms = now_ms + event.for_ms
            case EventKind.LOSE_ANSWER:
                self._loses_answer = True
            case _:
                raise AssertionError(kind)

    def _crash(self, now_ms: TimeMs) -> None:
        assert self.client is not None
        owned = self.client.subscriptions.owned
        self.client = None
        self._begin_session()
        if owned:
            self._eye.noted(self, PartitionsRevoked(owned, Why.CRASHED), now_ms)

    def _start(self, now_ms: TimeMs, out: Outbox) -> None:
        self._begin_session()
        self.client = new_client(self.plan.spec, self.plan.protocol, self._feed, self._entropy)
        self._eye.acted(self, TRACE_TEXTS[EventKind.START], now_ms)
        self._do(lambda client: client.start(now_ms), now_ms, out)

    def _thaw(self, now_ms: TimeMs, out: Outbox) -> None:
        """End a freeze: run the timers that are due, then take the messages that have come."""
        if not self.is_frozen or now_ms < self._frozen_until_ms:
            return
        self.is_frozen = False
        self._eye.acted(self, "goes on", now_ms)
        self._do(lambda client: client.advance(now_ms), now_ms, out)
        inbox, self._inbox = self._inbox, []
        for message in inbox:
            self._take_message(message, now_ms, out)


def _reports(request: Request) -> bool:
    """Return whether a request is a heartbeat; in a consumer group, one that reports the owned partitions."""
    return isinstance(request, HeartbeatRequest) or (
        isinstance(request, ConsumerGroupHeartbeatRequest) and request.owned is not None
    )


def new_client(spec: ClientSpec, protocol: GroupProtocol, feed: Feed, entropy: RandomSource) -> Client:
    """Return a consumer of this protocol that has not started; `entropy` serves the assignors of a classic leader."""
    if protocol is GroupProtocol.CONSUMER:
        return ConsumerClient(spec, feed)
    return ClassicClient(spec, feed, entropy)
