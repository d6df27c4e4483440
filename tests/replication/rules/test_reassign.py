"""Moving a partition to other replicas."""

from __future__ import annotations

import attrs
import pytest

from replication.rules.partition_change import Target, change
from replication.rules.reassign import Phase, cancelled, completed, started
from replication.rules.switches import CURRENT, rules_of
from tests.replication.builders import active, ids, partition, settings


def phase(
    replicas: tuple[int, ...], isr: tuple[int, ...], *, adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()
) -> Phase:
    return Phase(replicas=ids(*replicas), isr=ids(*isr), adding=ids(*adding), removing=ids(*removing))


@pytest.mark.parametrize(
    ("target", "replicas", "adding", "removing"),
    [
        ((1, 2, 4), (1, 2, 4, 3), (4,), (3,)),
        ((5, 4), (5, 4, 1, 2, 3), (4, 5), (1, 2, 3)),
        ((3, 2, 1), (3, 2, 1), (), ()),
        ((1, 2), (1, 2, 3), (), (3,)),
        ((1, 2, 3, 4), (1, 2, 3, 4), (4,), ()),
    ],
)
def test_a_move_begins_with_all_replicas(
    target: tuple[int, ...], replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...]
) -> None:
    assert started(partition(), ids(*target)) == phase(replicas, (1, 2, 3), adding=adding, removing=removing)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        (phase((1, 2, 4, 3), (1, 2, 3), adding=(4,), removing=(3,)), None),
        (phase((1, 2, 4, 3), (1, 2, 4), adding=(4,), removing=(3,)), phase((1, 2, 4), (1, 2, 4))),
        (phase((1, 2, 4, 3), (1, 3, 4), adding=(4,), removing=(3,)), phase((1, 2, 4), (1, 4))),
        (phase((1, 2, 3, 4), (1, 3, 4), adding=(4,)), phase((1, 2, 3, 4), (1, 3, 4))),
        (phase((2, 3, 4, 5, 0, 1), (0, 1, 5), adding=(5,), removing=(0, 1)), None),
        (phase((2, 3, 0), (0, 2), removing=(0,)), None),
        (phase((1, 2, 3), (3,), removing=(3,)), None),
        (phase((1, 2, 3), (1, 2, 3), removing=(3,)), phase((1, 2), (1, 2))),
        (phase((1, 2, 3, 4), (1, 2, 3, 4), adding=(4,)), phase((1, 2, 3, 4), (1, 2, 3, 4))),
        (phase((1, 2, 3), (1, 2, 3)), None),
    ],
)
def test_when_a_move_is_complete(now: Phase, end: Phase | None) -> None:
    assert completed(now, CURRENT) == end


def test_before_3_8_the_added_ones_were_enough() -> None:
    now = phase((2, 3, 4, 5, 0, 1), (0, 1, 5), adding=(5,), removing=(0, 1))
    assert completed(now, rules_of("3.7")) == phase((2, 3, 4, 5), (5,))
    assert completed(now, CURRENT) is None


@pytest.mark.parametrize("release", ["3.8", "4.0", "4.2"])
def test_from_3_8_to_4_2_an_unhealthy_kept_replica_holds_a_move_up(release: str) -> None:
    """The examples of KAFKA-19975, with replica 2 out of sync."""
    for now in (
        phase((0, 1, 2, 3), (0, 1, 3), adding=(3,)),
        phase((1, 2, 3, 0), (0, 1, 3), adding=(3,), removing=(0,)),
        phase((2, 3, 4, 0, 1), (0, 1, 3, 4), adding=(3, 4), removing=(0, 1)),
    ):
        assert completed(now, rules_of(release)) is None
        assert completed(now, CURRENT) is not None


def test_shrinking_waits_for_the_kept_ones() -> None:
    """Five replicas shall be three, and only those that go are in sync."""
    now = phase((1, 2, 3, 4, 5), (4, 5), removing=(4, 5))
    assert completed(now, CURRENT) is None
    assert completed(now, rules_of("3.7")) is None


def test_cancelling_takes_the_added_ones_away() -> None:
    moving = partition((1, 4), replicas=(1, 2, 4, 3), adding=(4,), removing=(3,))
    assert cancelled(moving) == phase((1, 2, 3), (1,))


def test_cancelling_with_only_added_ones_in_sync_loses() -> None:
    moving = partition((4,), replicas=(1, 2, 4, 3), leader=4, adding=(4,), removing=(3,))
    assert cancelled(moving) == attrs.evolve(phase((1, 2, 3), (1,)), loses=True)


def made(start: tuple[int, ...], target: tuple[int, ...]) -> Target:
    return Target(phase=started(partition(replicas=start, isr=start), ids(*target)))


def test_a_move_starts_without_a_new_leader_epoch() -> None:
    state = change(partition(), made((1, 2, 3), (1, 2, 4)), active(1, 2, 3, 4), settings())
    assert state is not None
    assert (state.replicas, state.adding, state.removing) == (ids(1, 2, 4, 3), ids(4), ids(3))
    assert (state.isr, state.leader, state.leader_epoch) == (ids(1, 2, 3), 1, 5)
    assert state.is_reassigning
    assert not state.is_under_replicated


def test_another_order_is_complete_at_once_and_costs_no_leader_epoch() -> None:
    state = change(partition(), made((1, 2, 3), (3, 2, 1)), active(1, 2, 3), settings())
    assert state is not None
    assert (state.replicas, state.leader, state.leader_epoch) == (ids(3, 2, 1), 1, 5)


def test_a_smaller_target_is_complete_at_once_and_costs_one() -> None:
    state = change(partition(), made((1, 2, 3), (1, 2)), active(1, 2, 3), settings())
    assert state is not None
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == (ids(1, 2), ids(1, 2), 1, 6)
