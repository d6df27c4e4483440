"""A reassignment of a view: what it adds and removes, where the bytes come from, and the way back."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.releases import NEWEST, Release
from placement.planning.completion import (
    completed_view,
    completion,
    runs_either,
    runs_zookeeper,
    unblocked_by_newer_release,
)
from placement.planning.reassignment import LogDirTarget, Reassignment
from tests.placement.planning.cases import lists, padded, random_plan, random_view

SEEDS = [*range(10), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(10, 60))]


def view_of(
    replicas: list[list[int]], *, isr: list[list[int]] | None = None, leader: list[int] | None = None, fenced: int = -1
) -> ClusterView:
    return ClusterView.build(
        name="small",
        source="inline",
        format="test",
        brokers=[BrokerView(id=BrokerId(number), fenced=number == fenced) for number in range(1, 7)],
        topics=(TopicView("t"),),
        partitions=PartitionTable(
            topic_index=[0] * len(replicas),
            partition_ids=range(len(replicas)),
            replicas=padded(replicas),
            leader=leader or [row[0] for row in replicas],
            isr=None if isr is None else padded(isr),
        ),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_added_and_removed_is_what_a_set_difference_says(seed: int) -> None:
    plan = random_plan(random.Random(seed), random_view(random.Random(seed)))
    for place in range(plan.count):
        now, target = set(lists(plan.current)[place]), set(lists(plan.replicas)[place])
        assert set(plan.replicas[place][plan.added[place]].tolist()) == target - now
        assert set(plan.current[place][plan.removed[place]].tolist()) == now - target


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rollback_restores_every_row(seed: int) -> None:
    view = random_view(random.Random(seed))
    plan = random_plan(random.Random(seed), view)
    after = completed_view(plan)
    restored = completed_view(plan.rollback(after))
    assert lists(restored.partitions.replicas) == lists(view.partitions.replicas)
    assert lists(after.partitions.replicas[plan.rows]) == lists(plan.replicas)


@pytest.mark.parametrize("seed", SEEDS)
def test_kept_replicas_keep_their_size_and_new_ones_take_the_leaders(seed: int) -> None:
    view = random_view(random.Random(seed))
    plan = random_plan(random.Random(seed), view)
    before, after = view.partitions, completed_view(plan).partitions
    assert before.replica_size_bytes is not None
    assert after.replica_size_bytes is not None
    assert before.leader is not None
    for row in range(before.count):
        size_of = dict(zip(before.replicas[row].tolist(), before.replica_size_bytes[row].tolist(), strict=True))
        wanted = {
            broker: size_of.get(broker, size_of[int(before.leader[row])]) for broker in lists(after.replicas)[row]
        }
        found = dict(zip(after.replicas[row].tolist(), after.replica_size_bytes[row].tolist(), strict=True))
        assert {broker: found[broker] for broker in wanted} == wanted
        assert after.size_bytes is not None
        assert int(after.size_bytes[row]) == (max(wanted.values()) if row in plan.rows else max(size_of.values()))


def test_a_partition_without_a_leader_is_copied_from_its_first_replica() -> None:
    plan = Reassignment(view=view_of([[1, 2], [2, 1]], leader=[-1, 1]), rows=[0, 1], replicas=[[3, 2], [3, 1]])
    assert plan.source.tolist() == [1, 1]
    assert plan.copy_bytes.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("rows", "targets", "words"),
    [
        ([0, 1], [[1, 2]], "2 rows need as many targets; there are 1"),
        ([0, 0], [[1], [2]], "a reassignment names t-0 twice"),
        ([2], [[1]], "a reassignment names a row outside 0..1"),
        ([0], [[9, 1]], "the target of t-0 names broker 9, which the view does not list"),
        ([1], [[3, 3]], "the target of t-1 names a broker twice"),
        ([1], [[-1, 3]], "the target of t-1 has no replica at its beginning"),
        ([1], [[1, -1, 3]], "the padding of a target stands between its replicas"),
    ],
)
def test_an_impossible_target_is_refused(rows: list[int], targets: list[list[int]], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        Reassignment(view=view_of([[1, 2], [2, 1]]), rows=rows, replicas=targets)
    assert str(raised.value) == words


def test_a_part_of_a_plan_takes_log_directories_with_their_rows() -> None:
    view = view_of([[1, 2], [2, 1], [1, 3]])
    dirs = (LogDirTarget(place=1, broker_id=BrokerId(2), path="/d"),)
    plan = Reassignment(view=view, rows=[0, 1, 2], replicas=[[1, 2], [2, 1], [3, 1]], log_dirs=dirs)
    left = plan.take([1, 2])
    assert left.rows.tolist() == [1, 2]
    assert left.log_dirs == (LogDirTarget(place=0, broker_id=BrokerId(2), path="/d"),)


def test_an_empty_plan_is_a_plan() -> None:
    plan = Reassignment(view=view_of([[1, 2]]), rows=[], replicas=np.empty((0, 0)))
    assert plan.count == 0
    assert completed_view(plan).partitions.replicas.tolist() == [[1, 2]]
    assert completion(plan).leader.tolist() == []


BLOCKED = view_of([[1, 2, 3], [1, 2, 3]], isr=[[1, 2], [1, 2]])
SWAP_AND_SHRINK = Reassignment(view=BLOCKED, rows=[0, 1], replicas=[[1, 4, 3], [1, 3, -1]])


@pytest.mark.parametrize(
    ("release", "waiting"),
    [("3.7", [[], []]), ("3.8", [[3], [3]]), ("4.2", [[3], [3]]), ("4.3", [[], [3]])],
)
def test_a_kept_replica_out_of_sync_blocks_from_3_8_to_4_2_and_a_shrinking_one_still(
    release: str, waiting: list[list[int]]
) -> None:
    done = completion(SWAP_AND_SHRINK, Release(release))
    assert lists(np.where(done.waits_for, SWAP_AND_SHRINK.replicas, -1)) == waiting


@pytest.mark.parametrize(
    ("release", "runs_one", "runs_both"),
    [("2.7", True, False), ("2.8", True, True), ("3.2", True, True), ("3.3", False, True), ("3.9", False, True)],
)
def test_a_cluster_runs_with_zookeeper_as_its_release_usually_does_or_as_asked(
    release: str, runs_one: bool, runs_both: bool
) -> None:
    """KIP-833: KRaft is there from 2.8 on and ready from 3.3 on; 4.0 has no ZooKeeper."""
    assert (runs_zookeeper(Release(release)), runs_either(Release(release))) == (runs_one, runs_both)
    assert runs_zookeeper(Release(release), asked=True)


def test_zookeeper_cannot_be_asked_for_of_a_release_without() -> None:
    assert (runs_zookeeper(Release("4.0")), runs_either(Release("4.0"))) == (False, False)
    with pytest.raises(UsageError, match=r"^release 4\.0 runs without ZooKeeper; the last one with it is 3\.9$"):
        runs_zookeeper(Release("4.0"), asked=True)


def test_rows_that_the_newest_rule_frees_are_named() -> None:
    assert unblocked_by_newer_release(SWAP_AND_SHRINK).tolist() == [True, False]


def test_a_new_order_completes_at_once_and_the_leader_stays_until_the_preferred_election() -> None:
    plan = Reassignment(view=view_of([[1, 2, 3]], isr=[[1, 2]]), rows=[0], replicas=[[2, 3, 1]])
    done = completion(plan, Release("4.2"))
    assert not done.is_blocked.any()
    assert (done.leader.tolist(), done.preferred.tolist()) == ([1], [2])


def test_a_removed_leader_is_followed_by_the_first_target_in_sync() -> None:
    plan = Reassignment(view=view_of([[1, 2, 3]], isr=[[1, 2]]), rows=[0], replicas=[[3, 2, 4]])
    done = completion(plan)
    assert done.leader.tolist() == [2]
    assert done.preferred.tolist() == [2]
    assert lists(done.isr) == [[2, 4]]


def test_an_added_replica_on_a_fenced_broker_never_catches_up() -> None:
    plan = Reassignment(view=view_of([[1, 2]], isr=[[1, 2]], fenced=4), rows=[0], replicas=[[4, 2]])
    done = completion(plan)
    assert done.is_stuck.tolist() == [True]
    assert done.preferred.tolist() == [2]


def test_a_partition_that_keeps_no_replica_in_sync_is_stuck() -> None:
    plan = Reassignment(view=view_of([[1, 2, 3]], isr=[[1]]), rows=[0], replicas=[[2, 3]])
    assert completion(plan, NEWEST).is_stuck.tolist() == [True]


def test_unknown_leaders_stay_unknown_and_eligible_replicas_that_leave_go() -> None:
    view = view_of([[1, 2, 3]], isr=[[1]])
    table = attrs.evolve(view.partitions, leader=[-2], elr=[[2, 3]], adding=[[3]], removing=[[-1]])
    view = attrs.evolve(view, partitions=table)
    after = completed_view(Reassignment(view=view, rows=[0], replicas=[[1, 3, 4]])).partitions
    assert after.leader is not None
    assert after.elr is not None
    assert after.adding is not None
    assert (after.leader.tolist(), lists(after.elr), lists(after.adding)) == ([-2], [[3]], [[]])
