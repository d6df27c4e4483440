"""Batches of a reassignment: caps and disks are kept, each partition is in one batch, the bound is a bound."""

from __future__ import annotations

import random
from typing import Any

import attrs
import numpy as np
import pytest

from broker.cluster import ClusterView, PartitionTable
from placement.planning.completion import completed_view
from placement.planning.moves import Moves, Rates, lower_bound
from placement.planning.peak import disks, freed_bytes, in_order
from placement.planning.reassignment import Reassignment
from placement.planning.schedule import Limits, ScheduleError, schedule
from tests.placement.planning.cases import lists, padded, plan_of, random_plan, random_view

SEEDS = [*range(10), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(10, 80))]


def large_plan(seed: int, *, equal: bool, adds: int = 1, partitions: int = 400, brokers: int = 12) -> Reassignment:
    """Return a plan in which every partition of factor 2 gains `adds` replicas elsewhere."""
    chance = random.Random(seed)
    replicas, targets = [], []
    for _ in range(partitions):
        now = chance.sample(range(brokers), 2)
        new = chance.sample([each for each in range(brokers) if each not in now], adds)
        replicas.append(now)
        targets.append([now[0], *new])
    sizes = [1000 if equal else int(chance.lognormvariate(8, 1)) + 1 for _ in range(partitions)]
    return plan_of(replicas, targets, sizes, brokers)


def counts_of(plan: Reassignment, places: Any) -> tuple[dict[int, int], dict[int, int]]:
    """Return the partitions that come into and leave each broker, counted one by one."""
    into: dict[int, int] = {}
    out: dict[int, int] = {}
    for place in places:
        now, target = set(lists(plan.current)[place]), lists(plan.replicas)[place]
        new = [broker for broker in target if broker not in now]
        for broker in new:
            into[broker] = into.get(broker, 0) + 1
        if new:
            source = int(plan.source[place])
            out[source] = out.get(source, 0) + 1
    return into, out


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_is_in_one_batch_and_batches_in_order_give_the_plan(seed: int) -> None:
    view = random_view(random.Random(seed))
    plan = random_plan(random.Random(seed), view)
    found = schedule(plan, Limits(batch_count=random.Random(seed).randint(1, 4)))
    assert sorted(place for batch in found.batches for place in batch.tolist()) == list(range(plan.count))
    last = None
    for part in in_order(found.parts()):
        last = completed_view(part)
    assert last is not None
    assert lists(last.partitions.replicas) == lists(completed_view(plan).partitions.replicas)
    assert last.partitions.leader is not None
    moves = Moves.of(plan)
    moved = sum(
        int(plan.copy_bytes[place]) * len(set(target) - set(now))
        for place, (now, target) in enumerate(zip(lists(plan.current), lists(plan.replicas), strict=True))
    )
    assert int(moves.bytes_in().sum()) == int(moves.bytes_out().sum()) == moved
    assert int(moves.replicas_in().sum()) == int(plan.added.sum())


@pytest.mark.parametrize(
    ("concurrency", "adds", "equal"),
    [
        (3, 1, False),
        pytest.param(2, 2, True, marks=pytest.mark.deep),
        pytest.param(7, 2, False, marks=pytest.mark.deep),
    ],
)
def test_no_batch_passes_the_concurrency_and_none_is_faster_than_the_bound(
    concurrency: int, adds: int, equal: bool
) -> None:
    plan = large_plan(concurrency, equal=equal, adds=adds, partitions=150)
    found = schedule(plan, Limits(concurrency=concurrency, batch_count_max=200))
    for batch in found.batches:
        for side in counts_of(plan, batch.tolist()):
            assert max(side.values()) <= concurrency
    assert found.seconds >= found.bound.seconds
    assert found.bound.seconds == lower_bound(Moves.of(plan), Rates.equal(12)).seconds


@pytest.mark.deep
@pytest.mark.parametrize("batch_count", [2, 8, 32])
def test_up_to_32_batches_take_at_most_a_fifth_more_than_the_bound(batch_count: int) -> None:
    found = schedule(large_plan(5, equal=False, partitions=6000, brokers=20), Limits(batch_count=batch_count))
    assert 1 < len(found.batches) <= 32
    assert found.bound.seconds <= found.seconds <= 1.2 * found.bound.seconds


def with_free(plan: Reassignment) -> np.ndarray:
    """Return free bytes that are not enough for all at once: what stays in the end, and the largest partition."""
    moves = Moves.of(plan)
    stays = np.maximum(moves.bytes_in() - freed_bytes(plan), 0)
    return np.asarray(stays + int(moves.sizes.max()))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 10))])
def test_no_disk_runs_over_in_a_simulation_that_starts_and_ends_one_partition_at_a_time(seed: int) -> None:
    plan = large_plan(seed, equal=False, partitions=400)
    free = with_free(plan)
    found = schedule(plan, Limits(free_bytes=free, batch_count_max=100))
    assert len(found.batches) > 1
    chance = random.Random(seed)
    left = dict(enumerate(free.tolist()))
    for batch in found.batches:
        started = batch.tolist()
        chance.shuffle(started)
        for place in started:
            for broker in plan.replicas[place][plan.added[place]].tolist():
                left[broker] -= int(plan.copy_bytes[place])
                assert left[broker] >= 0
        for place in started:
            for broker in plan.current[place][plan.removed[place]].tolist():
                left[broker] += int(plan.copy_bytes[place])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_peak_of_the_disks_is_that_of_a_simulation_of_events(seed: int) -> None:
    chance = random.Random(seed)
    view = random_view(chance)
    found = schedule(random_plan(chance, view), Limits(batch_count=3))
    parts = list(in_order(found.parts()))
    ids = view.broker_ids.tolist()
    held = dict.fromkeys(ids, 0)
    table = view.partitions
    assert table.replica_size_bytes is not None
    size = {}
    for row in range(table.count):
        for broker, each in zip(table.replicas[row].tolist(), table.replica_size_bytes[row].tolist(), strict=True):
            if broker >= 0:
                held[broker] += each
                size[row, broker] = each
    peak, first = dict(held), dict(held)
    for part in parts:
        for place in range(part.count):
            for broker in part.replicas[place][part.added[place]].tolist():
                size[int(part.rows[place]), broker] = int(part.copy_bytes[place])
                held[broker] += int(part.copy_bytes[place])
                peak[broker] = max(peak[broker], held[broker])
        for place in range(part.count):
            for broker in part.current[place][part.removed[place]].tolist():
                held[broker] -= size.pop((int(part.rows[place]), broker))
    ours = disks(parts)
    assert ours is not None
    assert ours.before.tolist() == [first[broker] for broker in ids]
    assert ours.peak.tolist() == [peak[broker] for broker in ids]
    assert ours.after.tolist() == [held[broker] for broker in ids]


def test_too_little_room_on_a_disk_is_refused_with_the_broker_and_its_bytes() -> None:
    plan = large_plan(1, equal=True, partitions=1)
    broker = int(plan.replicas[0][plan.added[0]][0])
    free = np.full(12, -1, dtype=np.int64)
    free[broker] = 10
    with pytest.raises(ScheduleError) as raised:
        schedule(plan, Limits(free_bytes=free))
    assert str(raised.value) == (
        f"broker {broker} has 10 bytes free and holds 1000 more after the plan; 990 more bytes of disk, or a plan that "
        "moves less to it, would do"
    )


def swapped(plan: Reassignment, back: Reassignment) -> ClusterView:
    """Return a view of two partitions that exchange their replicas."""
    table = plan.view.partitions
    replicas = np.concatenate([plan.current, back.current])
    both = PartitionTable(
        topic_index=[0, 0], partition_ids=[0, 1], replicas=replicas, leader=replicas[:, 0], size_bytes=[1000, 1000]
    )
    assert table.count == 1
    return attrs.evolve(plan.view, partitions=both)


def test_disks_that_have_room_only_at_the_end_are_refused_with_the_fullest_broker() -> None:
    plan = large_plan(1, equal=True, partitions=1)
    back = plan.rollback(completed_view(plan))
    both = Reassignment(view=swapped(plan, back), rows=[0, 1], replicas=[plan.replicas[0], back.replicas[0]])
    with pytest.raises(ScheduleError) as raised:
        schedule(both, Limits(free_bytes=np.zeros(12, dtype=np.int64)))
    assert str(raised.value).startswith("no order of the moves was found that the disks have room for in 32 batches: ")


def test_a_concurrency_that_needs_too_many_batches_is_refused_with_one_that_would_do() -> None:
    plan = large_plan(1, equal=True, partitions=200)
    into, out = counts_of(plan, range(plan.count))
    most = max([*into.values(), *out.values()])
    with pytest.raises(ScheduleError) as raised:
        schedule(plan, Limits(concurrency=1, batch_count_max=10))
    words = str(raised.value)
    assert words.startswith(f"{most} partitions move ")
    assert words.endswith(
        f"with a concurrency of 1 that takes {most} batches, and 10 are allowed; a concurrency of {-(-most // 10)}, or "
        f"{most} batches, would do"
    )


def test_rows_that_copy_nothing_are_in_the_first_batch_and_take_no_time() -> None:
    plan = large_plan(1, equal=True, partitions=3)
    turned = plan.current[:, ::-1]
    found = schedule(attrs.evolve(plan, replicas=turned))
    assert [batch.tolist() for batch in found.batches] == [[0, 1, 2]]
    assert (found.seconds, found.bound.seconds) == (0.0, 0.0)


def test_moves_larger_than_their_share_of_a_batch_find_room_where_disks_limit() -> None:
    plan = large_plan(1, equal=True, partitions=40)
    found = schedule(plan, Limits(batch_count=32, free_bytes=np.full(12, 1 << 40)))
    assert sorted(place for batch in found.batches for place in batch.tolist()) == list(range(40))


def test_an_empty_plan_has_no_batches() -> None:
    plan = large_plan(1, equal=True, partitions=3).take([])
    assert schedule(plan).batches == ()


def test_unknown_sizes_count_one_each_and_are_said_so() -> None:
    plan = large_plan(1, equal=True, partitions=40)
    table = attrs.evolve(plan.view.partitions, size_bytes=None)
    unknown = attrs.evolve(plan, view=attrs.evolve(plan.view, partitions=table))
    found = schedule(unknown, Limits(concurrency=2))
    assert not found.sizes_known
    assert disks([unknown]) is None
    assert found.bound.seconds == max(max(side.values()) for side in counts_of(plan, range(plan.count)))


def test_the_same_plan_gives_the_same_batches_whatever_its_padding() -> None:
    plan = large_plan(3, equal=False, partitions=60)
    wider = attrs.evolve(plan, replicas=padded([[*row, -1] for row in plan.replicas.tolist()]))
    one, other = schedule(plan, Limits(batch_count=8)), schedule(wider, Limits(batch_count=8))
    assert [batch.tolist() for batch in one.batches] == [batch.tolist() for batch in other.batches]
