"""The replicas that are out of sync, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.rules.out_of_sync import OutOfSync, Why, out_of_sync
from replication.rules.partition import Follower
from tests.replication.builders import (
    LAG_MS_MAX,
    NOW,
    follower,
    ids,
    leader,
    log,
    moment,
    partition,
    settings,
    statuses,
)

LATE = NOW - LAG_MS_MAX - 1


@pytest.mark.parametrize(
    ("known", "brokers", "expected"),
    [
        (follower(3, 4), {}, (Why.UNREGISTERED, 5, None)),
        (follower(3, 4), statuses(fenced=(3,), stopping=(3,)), (Why.FENCED, 5, None)),
        (follower(3, 4), statuses(stopping=(3,)), (Why.STOPPING, 5, None)),
        (follower(3, -1, broker_epoch=None), statuses(), (Why.NOT_FETCHED, None, None)),
        (follower(3, 9), statuses(broker_epochs={3: 2}), (Why.RESTARTED, 0, None)),
        (follower(3, 4, fetched_at=LATE, caught_up_at=LATE), statuses(), (Why.STUCK, 5, LAG_MS_MAX + 1)),
        (follower(3, 4, fetched_at=NOW, caught_up_at=LATE), statuses(), (Why.SLOW, 5, LAG_MS_MAX + 1)),
        (follower(3, 4, fetched_at=NOW, caught_up_at=NOW - 7), statuses(), (Why.JOINING, 5, 7)),
        (follower(3, 9, fetched_at=LATE), statuses(), (Why.JOINING, 0, None)),
    ],
)
def test_why_a_replica_is_out_of_sync(
    known: Follower, brokers: object, expected: tuple[Why, int | None, int | None]
) -> None:
    state = leader(follower(2, 9), known, isr=(1, 2))
    assert isinstance(brokers, dict)
    (found,) = out_of_sync(state, log(9), moment(brokers), settings())
    assert (found.broker, found.why, found.lag_records, found.lag_ms) == (3, *expected)


@given(st.sets(st.sampled_from([2, 3])))
def test_every_replica_is_in_sync_or_out_of_it(members: set[int]) -> None:
    isr = (1, *sorted(members))
    out = out_of_sync(leader(isr=isr), log(9), moment(), settings())
    assert sorted((*isr, *(each.broker for each in out))) == [1, 2, 3]
    assert partition(isr).out_of_sync == tuple(each.broker for each in out)


def test_a_full_isr_leaves_nobody_out() -> None:
    assert out_of_sync(leader(), log(9), moment(), settings()) == ()
    assert OutOfSync(ids(2)[0], Why.SLOW, 1, None) != OutOfSync(ids(2)[0], Why.STUCK, 1, None)
