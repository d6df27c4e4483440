"""A request is taken once and answered once, and a client learns within seconds that an answer will not come."""

from __future__ import annotations

from broker.group.classic import Ticket
from broker.group.messages import FindCoordinatorRequest, FindCoordinatorResponse
from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.groups.client.messages import Send
from replication.groups.connections import (
    PROBE_MS,
    BrokerEnds,
    ClientEnds,
    GroupRequest,
    GroupResponse,
    ProbeResult,
    RequestProbe,
)
from replication.roles.messages import Address, NodeId
from replication.roles.outbox import Outbox

CLIENT = Address(NodeId(2_001))
BROKER = BrokerId(1)
SILENCE_MS = DurationMs(2_000)
ANSWER = FindCoordinatorResponse(BROKER)


def asked(ticket: int, session: int = 1, floor: int = 1) -> GroupRequest:
    return GroupRequest(CLIENT.node, session, Ticket(ticket), Ticket(floor), "g", FindCoordinatorRequest("g"))


def send(ticket: int, timeout_ms: int = 30_000) -> Send:
    return Send(Ticket(ticket), FindCoordinatorRequest("g"), None, DurationMs(timeout_ms))


def test_a_doubled_request_is_taken_once() -> None:
    ends = BrokerEnds(BROKER)
    assert ends.take(asked(1), CLIENT) is not None
    assert ends.take(asked(1), CLIENT) is None


def test_a_request_that_is_long_done_with_is_not_taken_again() -> None:
    ends = BrokerEnds(BROKER)
    assert ends.take(asked(1), CLIENT) is not None
    assert ends.take(asked(5, floor=5), CLIENT) is not None
    assert ends.take(asked(1), CLIENT) is None


def test_an_answer_to_what_the_client_has_given_up_lets_nothing_else_be_taken_again() -> None:
    """The broker still works on 1 when the client says that it waits for 5 and later only."""
    ends = BrokerEnds(BROKER)
    given_up = ends.take(asked(1), CLIENT)
    assert given_up is not None
    assert ends.take(asked(2), CLIENT) is not None
    assert ends.take(asked(5, floor=5), CLIENT) is not None
    ends.answer(given_up, ANSWER, Outbox())
    assert ends.take(asked(2), CLIENT) is None


def test_a_former_process_is_not_served_any_more() -> None:
    ends = BrokerEnds(BROKER)
    assert ends.take(asked(1, session=2), CLIENT) is not None
    assert ends.take(asked(9, session=1), CLIENT) is None
    out = Outbox()
    ends.probe(RequestProbe(1, (Ticket(9),)), CLIENT, out)
    assert out.sent == []


def test_a_probe_tells_what_is_under_way_and_says_answers_again() -> None:
    ends, out = BrokerEnds(BROKER), Outbox()
    for ticket in (1, 2):
        caller = ends.take(asked(ticket), CLIENT)
        assert caller is not None
        if ticket == 1:
            ends.answer(caller, ANSWER, Outbox())
    ends.probe(RequestProbe(1, (Ticket(1), Ticket(2), Ticket(3))), CLIENT, out)
    assert [message for _, message in out.sent] == [
        GroupResponse(BROKER, 1, Ticket(1), ANSWER),
        ProbeResult(BROKER, 1, (Ticket(1), Ticket(2), Ticket(3)), frozenset({Ticket(2)})),
    ]


def test_what_the_broker_does_not_know_is_lost() -> None:
    ends = ClientEnds(CLIENT.node, 1, "g", SILENCE_MS)
    for ticket in (1, 2):
        ends.send(send(ticket), BROKER, TimeMs(0), Outbox())
    tickets = (Ticket(1), Ticket(2))
    assert list(ends.hear_probed(ProbeResult(BROKER, 1, tickets, frozenset({Ticket(2)})))) == [Ticket(1)]
    assert not ends.is_idle


def test_a_silent_broker_is_given_up_and_one_that_works_is_waited_for() -> None:
    ends, out = ClientEnds(CLIENT.node, 1, "g", SILENCE_MS), Outbox()
    ends.send(send(1), BROKER, TimeMs(0), Outbox())
    assert list(ends.probe(TimeMs(PROBE_MS - 1), out)) == []
    assert out.sent == []
    assert list(ends.probe(TimeMs(1_000), out)) == []
    assert len(out.sent) == 1
    assert list(ends.hear_probed(ProbeResult(BROKER, 1, (Ticket(1),), frozenset({Ticket(1)})))) == []
    assert list(ends.probe(TimeMs(2_000), out)) == []
    assert list(ends.probe(TimeMs(3_000), out)) == []
    assert list(ends.probe(TimeMs(4_000), out)) == [Ticket(1)]
    assert ends.is_idle


def test_an_answer_is_heard_once_and_of_its_session_only() -> None:
    ends = ClientEnds(CLIENT.node, 2, "g", SILENCE_MS)
    ends.send(send(1), BROKER, TimeMs(0), Outbox())
    assert not ends.hear(GroupResponse(BROKER, 1, Ticket(1), ANSWER))
    assert ends.hear(GroupResponse(BROKER, 2, Ticket(1), ANSWER))
    assert not ends.hear(GroupResponse(BROKER, 2, Ticket(1), ANSWER))


def test_what_the_consumer_has_given_up_is_not_asked_after() -> None:
    ends, out = ClientEnds(CLIENT.node, 1, "g", SILENCE_MS), Outbox()
    ends.send(send(1, timeout_ms=5_000), BROKER, TimeMs(0), out)
    assert list(ends.probe(TimeMs(5_000), out)) == []
    assert ends.is_idle


def test_a_new_process_begins_with_no_request_under_way() -> None:
    ends, out = BrokerEnds(BROKER), Outbox()
    assert ends.take(asked(7), CLIENT) is not None
    caller = ends.take(asked(1, session=2), CLIENT)
    assert caller is not None
    ends.answer(caller, ANSWER, Outbox())
    ends.probe(RequestProbe(2, (Ticket(1), Ticket(7))), CLIENT, out)
    told = GroupResponse(BROKER, 2, Ticket(1), ANSWER)
    assert [message for _, message in out.sent] == [
        told,
        ProbeResult(BROKER, 2, (Ticket(1), Ticket(7)), frozenset()),
    ]
