"""Three brokers host one group: who answers a request, and what is lost with the coordinator's broker."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import pytest

from broker.entropy import SplitMix64
from broker.error_codes import ErrorCode
from broker.group.classic import Ticket
from broker.group.messages import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from broker.group.offsets import Commit
from broker.group.service import GroupEntry, Response
from broker.ids import BrokerId, Offset
from broker.units import DurationMs, TimeMs
from replication.groups.alone.hosting import STORE_MS, Hosting
from replication.groups.common.coordinator import service_options
from tests.replication.groups.builders import t

COMMIT = OffsetCommitRequest(commits=(Commit(t(0), Offset(7), None, ""),))
FETCH = OffsetFetchRequest(partitions=(t(0),))


class Surroundings:
    """Hold the clock of three brokers, and what they tell."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.told: list[Response] = []
        self.asked_to_store: list[int] = []
        self.have_stored: list[int] = []
        self._due: list[tuple[int, int, Callable[[TimeMs], None]]] = []
        self._count = 0
        self.hosting = Hosting(service_options("uniform", {"t": 1}, 1), SplitMix64(1), self)

    def later(self, delay_ms: DurationMs, action: Callable[[TimeMs], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (self.now_ms + delay_ms, self._count, action))

    def tell(self, ticket: Ticket, response: Response) -> None:
        self.told.append(response)

    def appended(self, entries: tuple[GroupEntry, ...]) -> None:
        self.asked_to_store.append(self.now_ms)

    def stored(self, entries: tuple[GroupEntry, ...]) -> None:
        self.have_stored.append(self.now_ms)

    def ask(self, request: OffsetCommitRequest | OffsetFetchRequest, broker: int = 0) -> bool:
        """Bring a request to a broker; return whether the broker takes it."""
        return self.hosting.handle(BrokerId(broker), Ticket(1), request, TimeMs(self.now_ms))

    def run_until(self, end_ms: int) -> None:
        """Let time pass."""
        while self._due and self._due[0][0] <= end_ms:
            self.now_ms, _, action = heapq.heappop(self._due)
            action(TimeMs(self.now_ms))
        self.now_ms = end_ms


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_broker_that_does_not_coordinate_says_so(is_alive: bool) -> None:
    """KafkaApis: NOT_COORDINATOR, for every partition of the request; the coordinator may be dead."""
    world = Surroundings()
    if not is_alive:
        world.hosting.die()
    assert world.ask(COMMIT, broker=1)
    assert world.told == [OffsetCommitResponse((ErrorCode.NOT_COORDINATOR,))]


def test_a_commit_is_answered_when_it_is_stored() -> None:
    world = Surroundings()
    assert not world.hosting.is_storing
    assert world.ask(COMMIT)
    assert (world.asked_to_store, world.hosting.is_storing) == ([0], True)
    world.run_until(STORE_MS - 1)
    assert (world.told, world.have_stored) == ([], [])
    world.run_until(STORE_MS)
    assert (world.told, world.have_stored) == ([OffsetCommitResponse((ErrorCode.NONE,))], [STORE_MS])
    assert not world.hosting.is_storing
    assert world.ask(FETCH)
    assert world.told[1:] == [OffsetFetchResponse((Offset(7),))]


def test_what_was_not_stored_dies_with_the_coordinator_and_the_next_broker_knows_the_rest() -> None:
    world = Surroundings()
    world.ask(COMMIT)
    world.run_until(10)
    world.ask(OffsetCommitRequest(commits=(Commit(t(0), Offset(9), None, ""),)))
    world.hosting.die()
    world.told.clear()
    assert not world.ask(FETCH), "a dead broker takes nothing"
    world.run_until(10 + STORE_MS)
    assert (world.told, world.have_stored, world.hosting.is_storing) == ([], [STORE_MS], False)
    assert world.hosting.next_ms() is None
    world.hosting.advance(TimeMs(world.now_ms))
    world.hosting.take_over(TimeMs(world.now_ms))
    assert world.ask(FETCH, broker=1)
    assert world.ask(FETCH, broker=0)
    assert world.told == [OffsetFetchResponse((Offset(7),)), OffsetFetchResponse(error=ErrorCode.NOT_COORDINATOR)]
