"""Delayed operations complete once: by their condition, or by their time."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import UsageError
from broker.requests.purgatory import Purgatory
from broker.units import DurationMs, TimeMs


@attrs.define(eq=False)
class Wish:
    """An operation that waits until it is granted; notes how it ended."""

    is_granted: bool = False
    ends: list[bool] = attrs.field(factory=list)

    def can_complete(self) -> bool:
        return self.is_granted

    def on_complete(self, *, expired: bool) -> None:
        self.ends.append(expired)


def watch(purgatory: Purgatory[str], wish: Wish, keys: str, now_ms: int = 0, delay_ms: int = 10) -> bool:
    return purgatory.try_complete_else_watch(wish, tuple(keys), now_ms=TimeMs(now_ms), delay_ms=DurationMs(delay_ms))


def new(purge_interval: int = 1000) -> Purgatory[str]:
    return Purgatory(start_ms=TimeMs(0), purge_interval=purge_interval)


def test_an_operation_under_two_keys_completes_once_and_its_leftover_goes_when_it_is_met() -> None:
    purgatory, wish = new(), Wish()
    watch(purgatory, wish, "ab")
    wish.is_granted = True
    assert purgatory.check_and_complete("a") == 1
    assert (purgatory.watched_count, purgatory.delayed_count) == (1, 0)
    assert purgatory.check_and_complete("b") == 0
    assert (purgatory.watched_count, wish.ends, purgatory.advance(TimeMs(99))) == (0, [False], 0)


def test_leftovers_are_swept_when_there_are_more_than_allowed() -> None:
    purgatory, wishes = new(purge_interval=2), [Wish() for _ in range(3)]
    for wish in wishes:
        watch(purgatory, wish, "ab")
        wish.is_granted = True
    assert purgatory.check_and_complete("a") == 3
    assert purgatory.watched_count == 3
    purgatory.advance(TimeMs(1))
    assert purgatory.watched_count == 0


def test_time_does_not_go_back() -> None:
    purgatory = new()
    purgatory.advance(TimeMs(5))
    with pytest.raises(UsageError, match=r"^a purgatory at 5 ms cannot go back to 4 ms$"):
        purgatory.advance(TimeMs(4))


@given(
    st.lists(
        st.tuples(st.sampled_from(["watch", "grant", "tick"]), st.integers(0, 30), st.sampled_from(["a", "b", "ab"]))
    )
)
def test_every_operation_ends_once_and_by_its_time_at_the_latest(steps: list[tuple[str, int, str]]) -> None:
    purgatory, now_ms = new(purge_interval=3), 0
    wishes: list[tuple[Wish, int]] = []
    for action, number, keys in steps:
        if action == "watch":
            wishes.append((Wish(), now_ms + number))
            watch(purgatory, wishes[-1][0], keys, now_ms, number)
        elif action == "tick":
            now_ms += number
            purgatory.advance(TimeMs(now_ms))
        elif wishes:
            wishes[number % len(wishes)][0].is_granted = True
            purgatory.check_and_complete(keys[0])
        for wish, end_ms in wishes:
            assert len(wish.ends) == 1 or (not wish.ends and now_ms < end_ms)
    assert purgatory.delayed_count == sum(not wish.ends for wish, _ in wishes)
