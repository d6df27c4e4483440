"""Connect one client with two brokers over a network that loses and repeats, and see that each request is taken once.

What it decides: requests, losses, duplicates, brokers that die, clients that start anew and the time, from a seed; and
by lists of all that happened what each end must answer.

Constraints: messages between two processes keep their order, but for what comes twice. The lists are those of a reader
of the specification: what arrived where, and when each broker was last heard of; they share nothing with the ends' own
tables.

Source: ours, as `replication.groups.connections`; a probe each second, a silent broker given up after `SILENCE_MS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from broker.group.classic import HeartbeatRequest, HeartbeatResponse, Ticket
from broker.group.members import MemberId
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.groups.client.messages import Send
from replication.groups.connection_messages import GroupRequest, GroupResponse, ProbeResult, RequestProbe
from replication.groups.connections import PROBE_MS, BrokerEnds, Caller, ClientEnds
from replication.roles.messages import Address, NodeId
from replication.roles.outbox import Outbox
from tests.replication.mutants.drawing import Draws

STEP_COUNT: Final = 160
SILENCE_MS: Final = 3_000
_CLIENT: Final = Address(NodeId(7))
_BROKERS: Final = (0, 1)
_STREAM: Final = 31


@attrs.define
class _Asked:
    """Hold one request as the client knows it."""

    ticket: int
    broker: int
    sent_ms: int
    timeout_ms: int


def connections_noticed(seed: int) -> str:
    """Return what an end of a connection does that it must not, "" if nothing."""
    draws = Draws(seed, _STREAM)
    return next((told for told in (_Life(draws).run() for _ in range(6)) if told), "")


class _Life:
    """Run one client and its brokers."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._now_ms = 0
        self._tickets = 0
        self._session = 1
        self._client = self._new_client()
        self._brokers = {each: BrokerEnds(BrokerId(each)) for each in _BROKERS}
        self._ways: dict[tuple[str, int], list[Any]] = {(way, each): [] for way in ("out", "in") for each in _BROKERS}
        self._late: dict[int, list[GroupRequest]] = {each: [] for each in _BROKERS}
        # The lists.
        self._open: list[_Asked] = []
        self._probed_since: dict[int, int] = {}
        self._taken: dict[int, list[tuple[int, int]]] = {each: [] for each in _BROKERS}
        self._working: dict[int, list[Caller]] = {each: [] for each in _BROKERS}
        self._told: dict[tuple[int, int, int], HeartbeatResponse] = {}
        self._newest: dict[int, int] = {}
        self._floors: dict[int, int] = {}

    def _new_client(self) -> ClientEnds:
        return ClientEnds(_CLIENT.node, self._session, "g", DurationMs(SILENCE_MS))

    def run(self) -> str:
        """Run until the steps are over or something is wrong."""
        steps = (self._ask, self._ask, self._answer, self._probe, self._probe, self._deliver, self._deliver)
        for _ in range(STEP_COUNT):
            self._now_ms = max(self._now_ms + self._draws.number(0, 250), self._edge_ms())
            rare = self._draws.number(0, 40)
            step = {0: self._die, 1: self._start_anew}.get(rare) or self._draws.one((*steps, self._deliver))
            told = next(step(), "")
            if not told and self._client.is_idle != (not self._open):
                told = f"the client is idle: {self._client.is_idle}, under way are {self._open}"
            if told:
                return told
        return ""

    def _edge_ms(self) -> int:
        """Return now and then the very moment at which something is due, 0 otherwise."""
        edges = [each.sent_ms + after for each in self._open for after in (PROBE_MS, each.timeout_ms)]
        edges += [since + SILENCE_MS for since in self._probed_since.values()]
        later = sorted(each for each in edges if each >= self._now_ms)
        return later[0] if later and self._draws.is_one_in(6) else 0

    def _post(self, way: str, broker: int, messages: list[tuple[Address, Any]]) -> None:
        """Put messages on their way; each may be lost, or be there twice, a request long after it came."""
        for _, message in messages:
            count = self._draws.one((0, 1, 1, 1, 1, 2))
            self._ways[way, broker] += [message] * count
            if count and isinstance(message, GroupRequest) and self._draws.is_one_in(6):
                self._late[broker].append(message)
        if way == "out" and self._late[broker] and self._draws.is_one_in(6):
            self._ways[way, broker].append(self._late[broker].pop(0))

    # The client.

    def _ask(self) -> Iterator[str]:
        broker, out = self._draws.one(_BROKERS), Outbox()
        self._tickets += 1
        timeout_ms = self._draws.one((1_500, 30_000))
        request = HeartbeatRequest(ticket=Ticket(0), member_id=MemberId("m"), generation=self._tickets)
        send = Send(Ticket(self._tickets), request, BrokerId(broker), DurationMs(timeout_ms))
        self._open.append(_Asked(self._tickets, broker, self._now_ms, timeout_ms))
        self._client.send(send, BrokerId(broker), TimeMs(self._now_ms), out)
        floor = min(each.ticket for each in self._open)
        wanted = GroupRequest(_CLIENT.node, self._session, send.ticket, Ticket(floor), "g", request)
        if out.sent != [(Address(NodeId(broker)), wanted)]:
            yield f"{send} goes out as {out.sent}"
        self._post("out", broker, out.sent)

    def _probe(self) -> Iterator[str]:
        out, now_ms = Outbox(), self._now_ms
        lost = sorted(self._client.probe(TimeMs(now_ms), out))
        self._open = [each for each in self._open if now_ms < each.sent_ms + each.timeout_ms]
        old = [each for each in self._open if now_ms >= each.sent_ms + PROBE_MS]
        wanted, silent = [], []
        for broker in _BROKERS:
            tickets = [each.ticket for each in old if each.broker == broker]
            if not tickets:
                continue
            if now_ms >= self._probed_since.setdefault(broker, now_ms) + SILENCE_MS:
                del self._probed_since[broker]
                silent += tickets
            else:
                probe = RequestProbe(self._session, tuple(Ticket(each) for each in tickets))
                wanted.append((Address(NodeId(broker)), probe))
        if out.sent != wanted:
            yield f"at {now_ms} it probes {out.sent}, and {wanted} are due"
        if lost != sorted(silent):
            yield f"at {now_ms} {lost} are given up, and of silent brokers are {silent}"
        self._open = [each for each in self._open if each.ticket not in silent]
        for receiver, message in out.sent:
            self._post("out", int(receiver.node), [(receiver, message)])

    def _hear(self, broker: int, message: GroupResponse | ProbeResult) -> Iterator[str]:
        is_mine = message.session == self._session
        if is_mine or isinstance(message, GroupResponse):
            self._probed_since.pop(broker, None)
        waiting = {each.ticket for each in self._open}
        if isinstance(message, GroupResponse):
            is_due = is_mine and message.ticket in waiting
            if self._client.hear(message) is not is_due:
                yield f"of {sorted(waiting)} in session {self._session} it was waiting for {message}: {not is_due}"
            over = {int(message.ticket)} if is_due else set()
        else:
            over = (
                {int(each) for each in message.tickets if each not in message.waiting} & waiting if is_mine else set()
            )
            lost = sorted(self._client.hear_probed(message))
            if lost != sorted(over):
                yield f"by {message} {lost} are lost, and of {sorted(waiting)} {sorted(over)} are"
        self._open = [each for each in self._open if each.ticket not in over]

    # A broker.

    def _take(self, broker: int, message: GroupRequest | RequestProbe) -> Iterator[str]:
        ends, out, session = self._brokers[broker], Outbox(), message.session
        is_newest = session >= self._newest.get(broker, 0)
        if session > self._newest.get(broker, 0):
            self._newest[broker], self._floors[broker] = session, 0
        if isinstance(message, GroupRequest):
            mine = (session, int(message.ticket))
            caller = ends.take(message, _CLIENT)
            is_new = is_newest and mine not in self._taken[broker]
            wanted = Caller(_CLIENT, session, message.ticket) if is_new else None
            if caller != wanted:
                yield f"of {self._taken[broker]} it takes {message} as {caller}, and it is {wanted}"
            if caller is not None:
                self._taken[broker].append(mine)
                self._working[broker].append(caller)
                self._floors[broker] = int(message.floor)
            return
        ends.probe(message, _CLIENT, out)
        expected: list[object] = []
        if is_newest:
            expected = self._of_probe(broker, message)
        if [each for _, each in out.sent] != expected or any(receiver != _CLIENT for receiver, _ in out.sent):
            yield f"{message} is answered {out.sent}, and {expected} is so"
        self._post("in", broker, out.sent)

    def _of_probe(self, broker: int, probe: RequestProbe) -> list[object]:
        """Return the responses that a broker repeats, and what it says of the other requests."""
        tickets = [each for each in probe.tickets if each >= self._floors.get(broker, 0)]
        known = [(each, self._told.get((broker, probe.session, int(each)))) for each in tickets]
        repeated = [GroupResponse(BrokerId(broker), probe.session, each, told) for each, told in known if told]
        working = {each.ticket for each in self._working[broker] if each.session == probe.session}
        waiting = frozenset(each for each in probe.tickets if each in working)
        return [*repeated, ProbeResult(BrokerId(broker), probe.session, probe.tickets, waiting)]

    def _answer(self) -> Iterator[str]:
        broker = self._draws.one(_BROKERS)
        if not self._working[broker]:
            return
        out = Outbox()
        caller = self._working[broker].pop(self._draws.number(0, len(self._working[broker]) - 1))
        response = HeartbeatResponse(ticket=caller.ticket)
        self._told[broker, caller.session, int(caller.ticket)] = response
        self._brokers[broker].answer(caller, response, out)
        if out.sent != [(_CLIENT, GroupResponse(BrokerId(broker), caller.session, caller.ticket, response))]:
            yield f"{caller} is answered {out.sent}"
        self._post("in", broker, out.sent)

    # The world.

    def _deliver(self) -> Iterator[str]:
        way, broker = self._draws.one(sorted(self._ways))
        waiting = self._ways[way, broker]
        if waiting:
            message = waiting.pop(0)
            yield from self._take(broker, message) if way == "out" else self._hear(broker, message)

    def _die(self) -> Iterator[str]:
        """Start a broker anew: it has forgotten all, and what was on the way to it is lost."""
        broker = self._draws.one(_BROKERS)
        self._brokers[broker] = BrokerEnds(BrokerId(broker))
        self._ways["out", broker].clear()
        self._late[broker].clear()
        self._working[broker].clear()
        self._taken[broker].clear()
        self._told = {key: told for key, told in self._told.items() if key[0] != broker}
        self._newest.pop(broker, None)
        self._floors.pop(broker, None)
        yield from ()

    def _start_anew(self) -> Iterator[str]:
        """Start the client anew; messages of and to its former process may still come."""
        self._session += 1
        self._tickets = 0
        self._client = self._new_client()
        self._open.clear()
        self._probed_since.clear()
        yield from ()
