"""Define the messages between members and coordinators, and keep both ends of the connections between them.

Constraints: each request is taken once and answered once, though the network may lose and duplicate every message; it
keeps the order of the rest. `session` counts a client's starts, so that a response to a former process is not taken for
the present one's. A broker's end of a connection dies with the broker's process.

Source: ours; the probe stands for TCP's detection of broken connections.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

import attrs

from broker.group.classic import Ticket
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.groups.client.messages import Disconnected, Request, Response, Send
from replication.groups.plan import Event
from replication.roles.messages import Address, HostedMessage, NodeId
from replication.roles.outbox import Outbox


@attrs.frozen
class GroupRequest(HostedMessage):
    """Carry a client's request; the broker may forget its responses to tickets below `floor`."""

    client: NodeId
    session: int
    ticket: Ticket
    floor: Ticket
    group_id: str
    request: Request


@attrs.frozen
class GroupResponse(HostedMessage):
    """Carry the response to a request."""

    broker: BrokerId
    session: int
    ticket: Ticket
    response: Response


@attrs.frozen
class RequestProbe(HostedMessage):
    """Ask a broker whether these requests are still under way."""

    session: int
    tickets: tuple[Ticket, ...]


@attrs.frozen
class ProbeResult(HostedMessage):
    """Answer a probe: the broker works on `waiting`; other requests, or their responses, are lost."""

    broker: BrokerId
    session: int
    tickets: tuple[Ticket, ...]
    waiting: frozenset[Ticket]


@attrs.frozen
class ShardRead(HostedMessage):
    """Notify a broker that shard `number` has read its partition of `__consumer_offsets`."""

    partition: int
    number: int


@attrs.frozen
class ShardDue(HostedMessage):
    """Tell a broker that a coordinator has work to do now."""

    partition: int
    number: int


@attrs.frozen
class MemberDue(HostedMessage):
    """Tell a member that its consumer has work to do, if `number` is still the newest."""

    number: int


@attrs.frozen
class ProbeDue(HostedMessage):
    """Tell a member to probe the requests that are under way."""

    session: int


class Due(enum.Enum):
    """Name what is due at a member's process beside the events of its plan."""

    FREEZE_ENDS = enum.auto()
    RESTART = enum.auto()


@attrs.frozen
class EventDue(HostedMessage):
    """Tell a member that an event happens now."""

    what: Event | Due


@attrs.frozen
class HeldCommitDue(HostedMessage):
    """Tell a member to send a commit that was held back."""

    session: int
    send: Send


@attrs.frozen
class FetchNext(HostedMessage):
    """Tell a member to fetch a partition, if `number` is still the newest request for it."""

    partition: int
    number: int


PROBE_MS: Final = DurationMs(1_000)


@attrs.frozen
class Caller:
    """Name a client that waits for a response: its address, session and ticket."""

    sender: Address
    session: int
    ticket: Ticket


@attrs.define
class _BrokerEnd:
    session: int
    answers: dict[Ticket, Response | None] = attrs.field(factory=dict)
    """By ticket; None while the broker is at work on it."""


class BrokerEnds:
    """Hold a broker's ends of its connections, by client."""

    def __init__(self, broker: BrokerId) -> None:
        self._broker = broker
        self._ends: dict[NodeId, _BrokerEnd] = {}

    def take(self, asked: GroupRequest, sender: Address) -> Caller | None:
        """Return the caller of a request; None for a request that was taken before."""
        end = self._end(sender, asked.session)
        if end is None or asked.ticket in end.answers or asked.ticket < min(end.answers, default=Ticket(0)):
            return None
        end.answers = {ticket: answer for ticket, answer in end.answers.items() if ticket >= asked.floor}
        end.answers[asked.ticket] = None
        return Caller(sender, asked.session, asked.ticket)

    def answer(self, caller: Caller, response: Response, out: Outbox) -> None:
        """Send a response, and keep it until the client acknowledges it by `floor`."""
        end = self._ends.get(caller.sender.node)
        if end is not None and end.session == caller.session and caller.ticket in end.answers:
            end.answers[caller.ticket] = response
        out.send(caller.sender, GroupResponse(self._broker, caller.session, caller.ticket, response))

    def probe(self, probe: RequestProbe, sender: Address, out: Outbox) -> None:
        """Answer a probe with the requests under way, after the responses that the client may have missed."""
        end = self._end(sender, probe.session)
        if end is None:
            return
        waiting = set()
        for ticket in probe.tickets:
            response = end.answers.get(ticket)
            if response is not None:
                out.send(sender, GroupResponse(self._broker, probe.session, ticket, response))
            elif ticket in end.answers:
                waiting.add(ticket)
        out.send(sender, ProbeResult(self._broker, probe.session, probe.tickets, frozenset(waiting)))

    def _end(self, sender: Address, session: int) -> _BrokerEnd | None:
        """Return the end of a client's session, None for a session that is over."""
        end = self._ends.get(sender.node)
        if end is None or end.session < session:
            end = self._ends[sender.node] = _BrokerEnd(session)
        return end if end.session == session else None


@attrs.frozen
class _UnderWay:
    broker: BrokerId
    sent_ms: TimeMs
    timeout_ms: DurationMs


class ClientEnds:
    """Hold a client's ends of its connections, in one session."""

    def __init__(self, node: NodeId, session: int, group_id: str, silence_ms_max: DurationMs) -> None:
        self.session = session
        self._node = node
        self._group_id = group_id
        self._silence_ms_max = silence_ms_max
        self._under_way: dict[Ticket, _UnderWay] = {}
        self._held: set[Ticket] = set()
        self._silent_since: dict[BrokerId, TimeMs] = {}
        """When a broker was first probed without a sign of it since."""

    @property
    def is_idle(self) -> bool:
        """Return whether no request is under way."""
        return not self._under_way

    def hold(self, ticket: Ticket) -> None:
        """Keep the broker from taking a request that is sent later for one that was taken before."""
        self._held.add(ticket)

    def send(self, send: Send, broker: BrokerId, now_ms: TimeMs, out: Outbox) -> None:
        """Send a request to a broker."""
        self._under_way[send.ticket] = _UnderWay(broker, now_ms, send.timeout_ms)
        self._held.discard(send.ticket)
        floor = min(*self._under_way, *self._held) if self._held else min(self._under_way)
        asked = GroupRequest(self._node, self.session, send.ticket, floor, self._group_id, send.request)
        out.send(Address(NodeId(broker)), asked)

    def hear(self, answer: GroupResponse) -> bool:
        """Take a response; return whether the client still waited for the response."""
        self._silent_since.pop(answer.broker, None)
        return answer.session == self.session and self._under_way.pop(answer.ticket, None) is not None

    def hear_probed(self, answer: ProbeResult) -> Iterator[Ticket]:
        """Take the answer to a probe, and yield the tickets of requests that are lost."""
        if answer.session != self.session:
            return
        self._silent_since.pop(answer.broker, None)
        for ticket in answer.tickets:
            if ticket not in answer.waiting and self._under_way.pop(ticket, None) is not None:
                yield ticket

    def probe(self, now_ms: TimeMs, out: Outbox) -> Iterator[Ticket]:
        """Probe requests that are under way for a while, and yield the tickets that a silent broker will not answer."""
        by_broker: dict[BrokerId, list[Ticket]] = {}
        for ticket, each in list(self._under_way.items()):
            if now_ms - each.sent_ms >= each.timeout_ms:
                # The consumer has given it up by itself.
                del self._under_way[ticket]
            elif now_ms - each.sent_ms >= PROBE_MS:
                by_broker.setdefault(each.broker, []).append(ticket)
        for broker, tickets in sorted(by_broker.items()):
            if now_ms - self._silent_since.setdefault(broker, now_ms) >= self._silence_ms_max:
                del self._silent_since[broker]
                for ticket in tickets:
                    del self._under_way[ticket]
                    yield ticket
            else:
                out.send(Address(NodeId(broker)), RequestProbe(self.session, tuple(tickets)))


LOST: Final = Disconnected()
"""The response that a consumer gets for a lost request."""
