"""When a consumer looks for its coordinator, and what comes of a request that is not answered."""

from __future__ import annotations

from functools import partial

from broker.error_codes import ErrorCode
from broker.group.messages import FindCoordinatorRequest, FindCoordinatorResponse, OffsetFetchRequest
from broker.group.timers import Timers
from broker.ids import BrokerId
from broker.units import TimeMs
from replication.groups.client.link import Link
from replication.groups.client.messages import Disconnected, Response, Send
from tests.replication.groups.client.script import named

FOUND = FindCoordinatorResponse(BrokerId(1))
FETCH = OffsetFetchRequest(partitions=())


class Talk:
    """A link, with the time."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.link = Link(named("range"), self.timers)

    def asked(self) -> list[Send]:
        """Return what has been asked since the last look."""
        return [each for each in self.link.take() if isinstance(each, Send)]

    def look(self, answer: Response) -> None:
        """Look for the coordinator, and answer that."""
        self.link.look()
        (send,) = self.asked()
        assert isinstance(send.request, FindCoordinatorRequest)
        self.link.answer(send.ticket, answer)

    def at(self, now_ms: int) -> None:
        """Let time pass."""
        self.link.now_ms = TimeMs(now_ms)
        for _, action in self.timers.due(TimeMs(now_ms)):
            action()


def test_who_does_not_find_its_coordinator_looks_again_after_the_backoff() -> None:
    talk = Talk()
    talk.look(FindCoordinatorResponse(error=ErrorCode.COORDINATOR_NOT_AVAILABLE))
    talk.at(99)
    assert talk.asked() == []
    talk.at(100)
    assert [type(each.request) for each in talk.asked()] == [FindCoordinatorRequest]


def test_who_has_found_its_coordinator_meanwhile_does_not_look_again_after_the_backoff() -> None:
    talk = Talk()
    talk.look(Disconnected())
    talk.look(FOUND)
    talk.at(1_000)
    assert talk.asked() == []


def test_the_coordinator_is_looked_for_by_one_request_at_a_time() -> None:
    talk = Talk()
    talk.link.look()
    talk.link.look()
    assert len(talk.asked()) == 1


def test_of_two_that_wait_for_the_coordinator_the_newer_goes_on() -> None:
    talk, went_on = Talk(), list[str]()
    for name in ("older", "newer"):
        talk.link.after_finding(partial(went_on.append, name))
    (send,) = talk.asked()
    talk.link.answer(send.ticket, FOUND)
    assert went_on == ["newer"]


def test_an_answer_is_taken_once_and_not_after_its_time() -> None:
    """NetworkClient completes a request once: with its response, or as disconnected after request.timeout.ms."""
    talk, heard = Talk(), list[Response]()
    talk.look(FOUND)
    for _ in range(2):
        talk.link.ask(FETCH, heard.append)
    first, second = talk.asked()
    assert first.timeout_ms == 30_000
    talk.link.answer(first.ticket, FOUND)
    talk.link.answer(first.ticket, FOUND)
    talk.at(30_000)
    talk.link.answer(second.ticket, FOUND)
    assert heard == [FOUND, Disconnected()]


def test_nothing_is_waited_for_once_all_is_answered() -> None:
    talk = Talk()
    talk.look(FOUND)
    assert talk.timers.next_ms() is None
