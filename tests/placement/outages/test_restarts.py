"""Schedules of restarts: what a cluster forbids, what a batch leaves in sync, and what is refused."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.errors import RefusedError, UsageError
from broker.ids import BrokerId
from broker.liveness import Liveness
from placement.outages.lost import outage
from placement.outages.restart_budget import EMPTY, distinct_rows, restart_limits
from placement.outages.restart_savings import savings
from placement.outages.restart_stuck import stuck_partitions
from placement.outages.restarts import restart_schedule, schedule_table
from placement.outages.succession import successions
from tests.placement.outages.views import FEW, Small, clusters


@FEW
@given(clusters(), st.integers(0, 1))
def test_no_batch_takes_a_partition_under_min_isr_that_could_keep_it(small: Small, margin: int) -> None:
    view = small.view()
    found = restart_schedule(view, margin=margin, despite_out_of_sync=True)
    live = {broker.id for broker in view.brokers if broker.is_active}
    held = {each for partition in small.partitions for each in partition.replicas}
    alive = {broker.id for broker, is_alive in zip(view.brokers, view.alive.tolist(), strict=True) if is_alive}
    assert sorted(each for batch in found.batches for each in batch) == sorted(alive & held)
    left_out = dict(found.limits.left_out)
    assert set(left_out) == {broker.id for broker in view.brokers} - (alive & held)
    assert {broker for broker, why in left_out.items() if why == EMPTY} == alive - held
    assert small.dead <= set(left_out)
    stuck = set(found.limits.stuck.rows.tolist())
    for batch in found.batches:
        after = outage(view, batch)
        for row, partition in enumerate(small.partitions):
            needed = min(partition.min_isr, len(partition.replicas))
            if row not in stuck and any(each in live for each in partition.isr):
                assert after.isr_count[row] >= needed + margin
    for row in stuck:
        partition = small.partitions[row]
        needed = min(partition.min_isr, len(partition.replicas))
        assert len([each for each in partition.isr if each in live]) - needed - margin < 1
        for batch in found.batches:
            assert len(set(batch) & set(partition.isr)) <= 1


def racked(rows: list[list[int]], racks: str, **given: object) -> ClusterView:
    table = PartitionTable(topic_index=[0] * len(rows), partition_ids=list(range(len(rows))), replicas=rows, **given)
    return ClusterView.build(
        name="n",
        source="s",
        format="f",
        brokers=[BrokerView(id=BrokerId(each), rack=rack, stated=Liveness.ALIVE) for each, rack in enumerate(racks)],
        topics=[TopicView("t", min_insync_replicas=2)],
        partitions=table,
    )


@pytest.mark.deep  # Compiles the search.
def test_two_partitions_that_ignore_the_racks_are_what_costs_batches() -> None:
    clean = [[a, b, c] for a in (0, 3) for b in (1, 4) for c in (2, 5)] * 3
    view = racked([*clean, [0, 3, 1], [1, 4, 2]], "abcabc")
    found = restart_schedule(view)
    assert (len(found.batches), found.is_optimal) == (5, True)
    (three, four) = savings(view, found)
    assert (three.batch_count, three.rows.tolist()) == (3, [24, 25])
    assert (four.batch_count, four.rows.size) == (4, 1)


@pytest.mark.deep
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("has_racks", [False, True])
def test_savings_of_many_batches_are_of_fewer_batches_and_more_than_none(has_racks: bool) -> None:
    """Any two of 18 brokers share a partition: 18 batches, more than are tried one by one; as many racks, or none."""
    rows = [
        [one, other, (other + 1) % 18]
        for one in range(18)
        for other in range(18)
        if len({one, other, (other + 1) % 18}) == 3
    ]
    view = racked(rows, "abcdefghijklmnopqr")
    if not has_racks:
        view = attrs.evolve(view, brokers=tuple(attrs.evolve(each, rack=None) for each in view.brokers))
    assert len(view.racks) == 18 * has_racks
    found = restart_schedule(view)
    assert (len(found.batches), found.bound) == (18, 18)
    counts = [each.batch_count for each in savings(view, found)]
    assert counts[-1] == 17
    assert all(0 < each < 18 for each in counts)


def test_a_batch_leaves_a_majority_of_the_controllers() -> None:
    view = racked([[0], [1]], "aaaaaa")
    controllers = tuple(map(BrokerId, (1, 2, 3, 4, 5)))
    assert len(restart_schedule(view).batches) == 1
    batches = restart_schedule(view, controllers=controllers).batches
    assert len(batches) == 3
    assert all(len(set(batch) & set(controllers)) <= 2 for batch in batches)
    two = restart_limits(view, controllers=controllers[:2])
    assert two.notes[-1] == "2 controllers, 0 of them down: any restart ends the quorum's majority"
    with pytest.raises(UsageError, match="controller 9 is not one of the brokers of n"):
        restart_limits(view, controllers=[BrokerId(9)])


def test_a_controller_that_is_down_takes_from_what_a_batch_may_hold_and_one_named_twice_counts_once() -> None:
    six = racked([[0], [1]], "aaaaaa")
    down = attrs.evolve(six, brokers=tuple(BrokerView(id=BrokerId(each), fenced=each == 5) for each in range(6)))
    controllers = tuple(map(BrokerId, (1, 2, 3, 4, 5)))
    limits = restart_limits(down, controllers=controllers)
    assert (limits.members.tolist(), limits.budget.tolist()) == ([[1, 2, 3, 4]], [1])
    assert len(restart_schedule(down, controllers=controllers).batches) == 4
    twice = restart_schedule(six, controllers=[BrokerId(1), BrokerId(2), BrokerId(1)])
    assert twice.limits.notes[-1] == "2 controllers, 0 of them down: any restart ends the quorum's majority"
    assert [sorted(set(batch) & {1, 2}) for batch in twice.batches] == [[1], [2]]


def test_what_a_stuck_partition_lacks_counts_no_observer() -> None:
    view = racked([[0, 1, 2], [0, 1, 2]], "abc", isr=[[0, 1, -1], [0, 1, -1]], observers=[[2], [-1]])
    stuck = restart_limits(view, despite_out_of_sync=True).stuck
    assert stuck.rows.tolist() == [0, 1]
    assert stuck.missing_count.tolist() == [1, 1]
    assert stuck.out_of_sync_count.tolist() == [0, 1]
    assert stuck.min_isr.tolist() == [2, 2]


def test_replicas_that_must_come_into_sync_first_do_not_restart_together() -> None:
    """A batch begins when all are in sync; then two of the three at once leave one where two are needed."""
    view = racked([[0, 1, 2], [1, 2, -1]], "abc", isr=[[0, -1, -1], [1, 2, -1]])
    table = attrs.evolve(view.partitions, topic_index=[0, 1], partition_ids=[0, 0])
    view = attrs.evolve(view, partitions=table, topics=(*view.topics, TopicView("u", min_insync_replicas=1)))
    assert restart_limits(view, despite_out_of_sync=True).stuck.rows.tolist() == [0]
    found = restart_schedule(view, despite_out_of_sync=True)
    assert [len(batch) for batch in found.batches] == [1, 1, 1]
    observed = racked([[0, 1, 2]], "abc", isr=[[0, 1, -1]], observers=[[2]])
    assert len(restart_schedule(observed).batches) == 2


@FEW
@given(clusters())
def test_no_batch_takes_a_partition_under_min_isr_once_all_are_in_sync(small: Small) -> None:
    view = small.view()
    found = restart_schedule(view, despite_out_of_sync=True)
    for partition in small.partitions:
        live = [each for each in partition.replicas if each not in small.dead]
        needed = min(partition.min_isr, len(partition.replicas))
        if partition.leader >= 0 and len(live) > needed:
            assert all(len(set(live) - set(batch)) >= needed for batch in found.batches)


OUT_OF_SYNC = (
    "at or under min.insync.replicas because replicas are out of sync, on broker{} {}; bring these brokers back and "
    "wait until every replica is in sync"
)


def test_a_cluster_whose_last_replicas_in_sync_would_restart_is_refused() -> None:
    rows, in_sync = [[0, 1, 2], [1, 2, 0], [0, 3, 4]], [[0, -1, -1], [0, -1, -1], [0, 3, 4]]
    gone = attrs.evolve(racked(rows, "abcde", isr=in_sync), brokers=tuple(BrokerView(id=BrokerId(n)) for n in range(5)))
    with pytest.raises(RefusedError) as refused:
        restart_schedule(gone)
    where = OUT_OF_SYNC.format("s", "1 (2 replicas, in no ISR), 2 (2 replicas, in no ISR)")
    assert str(refused.value) == f"2 of 3 partitions are {where}"
    fenced = attrs.evolve(
        racked([[0, 1, 2], [1, 0, -1]], "abc", isr=[[0, 1, -1], [1, 0, -1]]),
        brokers=tuple(BrokerView(id=BrokerId(number), fenced=number == 2) for number in range(3)),
    )
    with pytest.raises(RefusedError) as refused:
        restart_schedule(fenced)
    where = OUT_OF_SYNC.format("", "2 (1 replica, fenced)")
    assert str(refused.value) == f"1 of 2 partitions is {where}"
    many = racked([[0, 1, 2]] * 1_200, "abc", isr=[[0, -1, -1]] * 1_200)
    with pytest.raises(RefusedError, match=r"^1,200 of 1,200 partitions are at or under min\.insync\.replicas "):
        restart_schedule(many)


@pytest.mark.parametrize(
    ("view", "margin"),
    [
        (racked([[0, 1], [1, 2]], "abc"), 0),  # As many replicas as min.insync.replicas: no waiting helps.
        (racked([[0, 1, 2]], "abc"), 1),
        (racked([[0, 1, 2, 3]], "abcd", isr=[[0, 1, 2]]), 0),  # One out of sync, and still one to lose.
        (racked([[0, 1, 2]], "abc", isr=[[0, 1]], observers=[[2]]), 0),
    ],
)
def test_replicas_that_are_missing_by_design_refuse_nothing(view: ClusterView, margin: int) -> None:
    batches = restart_schedule(view, margin=margin).batches
    for in_sync in view.partitions.isr if view.partitions.isr is not None else view.partitions.replicas:
        assert all(len(set(batch) & {each for each in in_sync.tolist() if each >= 0}) <= 1 for batch in batches)


def test_despite_replicas_out_of_sync_the_brokers_of_their_partitions_restart_one_at_a_time() -> None:
    # Brokers 1 and 2 are dead, which no describe shows; broker 0 holds the last replica, so it restarts last.
    gone = racked([[0, 1, 2], [2, 0, 1], [2, 1, 3]], "abcd", isr=[[0, -1, -1], [0, -1, -1], [2, 1, 3]])
    batches = restart_schedule(gone, despite_out_of_sync=True).batches
    assert len(batches) == 3
    assert batches[-1] in ((0,), (0, 3))
    assert all(len(set(batch) & {0, 1, 2}) == 1 for batch in batches)


def test_the_brokers_of_a_partition_without_a_leader_forbid_restarts_unless_all_are_down() -> None:
    view = racked([[0, 1], [2, 3]], "abcd", isr=[[-1, -1], [2, 3]], leader=[-1, 2])
    with pytest.raises(
        RefusedError,
        match=r"1 of 2 partitions is .* on brokers 0 \(1 replica\), 1 \(1 replica\); ",
    ):
        restart_schedule(view)
    batches = restart_schedule(view, despite_out_of_sync=True).batches
    assert len(batches) == 2
    assert not any({0, 1} <= set(batch) for batch in batches)
    seen = racked([[0, 1], [2, 3]], "abcd", isr=[[0, 1], [2, 3]], leader=[-1, 2])  # Either would lead if it were alive.
    for known, fenced in ((view, {0, 1}), (seen, set())):
        brokers = tuple(BrokerView(id=BrokerId(each), fenced=each in fenced) for each in range(4))
        assert restart_schedule(attrs.evolve(known, brokers=brokers)).batches == ((2,), (3,))


def test_wrong_arguments_are_refused() -> None:
    view = racked([[0, 1]], "ab")
    with pytest.raises(UsageError, match="the margin is -1; allowed are 0 to 32,767"):
        restart_limits(view, margin=-1)
    with pytest.raises(UsageError, match="the margin is 2147483647; allowed are 0 to 32,767"):
        restart_limits(view, margin=2**31 - 1)
    with pytest.raises(UsageError, match="a batch holds at most 0 brokers; allowed are 1 and more"):
        restart_limits(view, batch_max=0)


def test_a_cluster_without_brokers_or_partitions_has_a_schedule() -> None:
    empty = ClusterView(name="n", source="s", format="f", brokers=())
    assert restart_schedule(empty).batches == ()
    alone = attrs.evolve(empty, brokers=(BrokerView(id=BrokerId(3)), BrokerView(id=BrokerId(4))))
    found = restart_schedule(alone)
    assert (found.batches, found.limits.left_out) == ((), ((3, EMPTY), (4, EMPTY)))
    found = restart_schedule(alone, controllers=[BrokerId(3)])
    assert (found.batches, found.is_optimal) == (((3,),), True)
    assert schedule_table(found).to_pydict() == {"broker_id": [3], "batch": [1], "weight": [1]}


def test_a_topic_of_min_insync_replicas_0_keeps_one_replica_as_kafka_takes_no_less_than_1() -> None:
    for shown in (0, 1, None):
        view = attrs.evolve(racked([[0, 1, 2]], "abc"), topics=(TopicView("t", min_insync_replicas=shown),))
        limits = restart_limits(view)
        assert (limits.members.tolist(), limits.budget.tolist()) == ([[0, 1, 2]], [2])
        assert [len(batch) for batch in restart_schedule(view).batches] == [2, 1]


@pytest.mark.parametrize(
    ("isr", "notes"),
    [
        ([[0, 1]], ("1 partition does not show min.insync.replicas; Kafka's default, 1, is taken",)),
        (
            None,
            (
                "no ISR is shown: every live replica is taken to be in sync",
                "1 partition does not show min.insync.replicas; Kafka's default, 1, is taken",
            ),
        ),
    ],
)
def test_the_notes_say_once_what_is_taken_for_min_insync_replicas(
    isr: list[list[int]] | None, notes: tuple[str, ...]
) -> None:
    shown = {} if isr is None else {"isr": isr}
    view = attrs.evolve(racked([[0, 1]], "ab", **shown), topics=(TopicView("t"),))
    assert restart_limits(view).notes == notes


def test_a_partition_whose_brokers_are_all_fenced_forbids_nothing() -> None:
    """Broker 1 is live, 2 and 3 are fenced: only the partition that broker 1 holds can be made worse by a restart."""
    table = PartitionTable(
        topic_index=[0, 0], partition_ids=[0, 1], replicas=[[2, 3], [1, 2]], isr=[[2, -1], [1, -1]], leader=[-1, 1]
    )
    view = ClusterView.build(
        name="n",
        source="s",
        format="f",
        brokers=[BrokerView(id=BrokerId(number), fenced=number > 1) for number in (1, 2, 3)],
        partitions=table,
        topics=[TopicView("t", min_insync_replicas=1)],
    )
    found = stuck_partitions(view, successions(view), budget=np.array([0, 0], dtype=np.int32))
    assert found.forbidding.tolist() == [1]
    assert found.replica_count_by_broker == ((2, 1),)


@pytest.mark.parametrize("largest", [3, 1 << 20])
def test_distinct_rows_are_the_same_as_numbers_and_as_rows(largest: int) -> None:
    drawn = np.random.default_rng(5).integers(0, 3, (400, 5)).astype(np.int64)
    drawn[:, 2] *= largest
    rows, times = distinct_rows(drawn)
    expected, counts = np.unique(drawn, axis=0, return_counts=True)
    assert (rows.tolist(), times.tolist()) == (expected.tolist(), counts.tolist())
