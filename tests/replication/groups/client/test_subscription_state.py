"""What a poll returns of the partitions that a consumer owns, and what it would commit."""

from __future__ import annotations

from broker.group.offsets import Commit
from broker.ids import Offset
from broker.units import TimeMs
from replication.groups.client.client import SubscriptionState
from replication.groups.client.messages import Read
from tests.replication.groups.client.script import BOTH, P0, P1, Growing, Ten

NOW = TimeMs(0)


def reading(*, first: int = 0, second: int = 0) -> SubscriptionState:
    """Return the state of a consumer of both partitions that stands at these offsets."""
    state = SubscriptionState(Ten())
    state.assign(BOTH)
    state.seek(P0, Offset(first))
    state.seek(P1, Offset(second))
    return state


def test_after_a_full_poll_the_next_one_begins_with_the_next_partition() -> None:
    """FetchCollector: who returns max.poll.records of one partition goes on with the others, so that none starves."""
    state = reading()
    polls = [state.read(7, NOW) for _ in range(4)]
    assert polls == [
        (Read(P0, Offset(0), Offset(7)),),
        (Read(P1, Offset(0), Offset(7)),),
        (Read(P0, Offset(7), Offset(10)), Read(P1, Offset(7), Offset(10))),
        (),
    ]


def test_after_a_poll_that_is_not_full_the_next_one_begins_with_the_first_partition() -> None:
    state = SubscriptionState(Growing())
    state.assign(BOTH)
    state.seek(P0, Offset(0))
    state.seek(P1, Offset(5))
    assert [read.partition for read in state.read(50, TimeMs(500))] == [P0]
    assert [read.partition for read in state.read(50, TimeMs(1_000))] == [P0, P1]


def test_a_partition_that_is_to_be_revoked_is_not_read_until_it_is_assigned_again() -> None:
    state = reading()
    state.pause(frozenset({P0}))
    assert [read.partition for read in state.read(500, NOW)] == [P1]
    state.assign(BOTH)
    assert state.read(500, NOW) == (Read(P0, Offset(0), Offset(10)),)


def test_a_partition_without_a_position_is_neither_read_nor_committed() -> None:
    state = reading(first=10)
    state.assign(frozenset({P0}))
    state.assign(BOTH)
    assert state.without_position() == (P1,)
    assert state.read(500, NOW) == ()
    assert state.commits() == (Commit(P0, Offset(10)),)


def test_the_offset_of_a_partition_that_was_given_up_meanwhile_is_not_taken() -> None:
    state = reading()
    state.assign(frozenset({P0}))
    state.seek(P1, Offset(3))
    assert state.commits() == (Commit(P0, Offset(0)),)
