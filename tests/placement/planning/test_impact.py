"""The impact of a plan equals a count done again partition by partition, and says what holds it up."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.releases import Release
from placement.balance.measures import side_by_side
from placement.planning.completion import completion
from placement.planning.findings import Finding, findings
from placement.planning.impact import Impact, impact
from placement.planning.impact_tables import batches_table, brokers_table, moves_table
from placement.planning.reassignment import LogDirTarget, Reassignment
from placement.planning.throttle import Links
from tests.placement.planning.cases import lists, padded, random_plan, random_view

SEEDS = [*range(10), *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(10, 80))]


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_of_brokers_are_those_of_a_count_from_scratch(seed: int) -> None:
    view = random_view(random.Random(seed))
    plan = random_plan(random.Random(seed), view)
    found = impact([plan])
    table, brokers = view.partitions, found.brokers
    assert table.leader is not None
    before, after, gained, gone, into, out = ({int(each): 0 for each in view.broker_ids} for _ in range(6))
    target_of = dict(zip(plan.rows.tolist(), lists(plan.replicas), strict=True))
    for row, now in enumerate(lists(table.replicas)):
        target = target_of.get(row, now)
        for broker in now:
            before[broker] += 1
            gone[broker] += broker not in target
        for broker in target:
            after[broker] += 1
            if broker not in now:
                assert table.replica_size_bytes is not None
                leader = int(table.leader[row])
                size = int(table.replica_size_bytes[row][table.replicas[row] == leader][0])
                gained[broker] += 1
                into[broker] += size
                out[leader] += size
    assert brokers.replicas_before.tolist() == list(before.values())
    assert brokers.replicas_after.tolist() == list(after.values())
    assert brokers.replicas_in.tolist() == list(gained.values())
    assert brokers.replicas_gone.tolist() == list(gone.values())
    assert brokers.bytes_in is not None
    assert brokers.bytes_out is not None
    assert brokers.bytes_in.tolist() == list(into.values())
    assert brokers.bytes_out.tolist() == list(out.values())
    assert sum(into.values()) == sum(out.values()) == found.moved_bytes
    elected = _elected(found)
    assert brokers.leaders_after is not None
    assert brokers.leaders_after.tolist() == [elected.count(int(each)) for each in view.broker_ids]


def _elected(found: Impact) -> list[int]:
    """Return the leader of every partition after the plan and a preferred election of the partitions in it."""
    view, plan = found.before, found.batches[0].plan
    assert view.partitions.leader is not None
    assert view.partitions.isr is not None
    leader, alive = view.partitions.leader.tolist(), set(view.broker_ids[view.alive].tolist())
    for place, row in enumerate(plan.rows.tolist()):
        target, now = lists(plan.replicas)[place], lists(plan.current)[place]
        isr = set(lists(view.partitions.isr)[row]) | ((set(target) - set(now)) & alive)
        stays = leader[row] if leader[row] in target else next((each for each in target if each in isr), -1)
        leader[row] = target[0] if target[0] in isr else stays
    return [int(each) for each in leader]


@pytest.mark.parametrize("seed", SEEDS)
def test_batches_one_after_the_other_end_where_the_whole_plan_ends(seed: int) -> None:
    chance = random.Random(seed)
    view = random_view(chance)
    plan = random_plan(chance, view)
    half = plan.count // 2
    whole = impact([plan])
    parts = impact([plan.take(range(half)), plan.take(range(half, plan.count))])
    assert lists(parts.after.partitions.replicas) == lists(whole.after.partitions.replicas)
    assert parts.moved_bytes == whole.moved_bytes
    assert parts.brokers.replicas_gone.tolist() == whole.brokers.replicas_gone.tolist()
    assert parts.brokers.leaders_after is not None
    assert whole.brokers.leaders_after is not None
    assert parts.brokers.leaders_after.tolist() == whole.brokers.leaders_after.tolist()
    assert parts.brokers.disks is not None
    assert whole.brokers.disks is not None
    assert (parts.brokers.disks.peak <= whole.brokers.disks.peak).all()


def test_a_new_order_alone_moves_no_byte() -> None:
    view = cluster([[1, 2, 3]])
    found = impact([Reassignment(view=view, rows=[0], replicas=[[3, 2, 1]])])
    assert (found.moved_bytes, found.moved_replicas) == (0, 0)
    batch = found.batches[0]
    assert (batch.order_only_count, batch.leaders_moved, batch.elections) == (1, 0, 1)


def cluster(
    replicas: list[list[int]],
    *,
    isr: list[list[int]] | None = None,
    leader: list[int] | None = None,
    least: int = 2,
    fenced: int = -1,
    adding: list[list[int]] | None = None,
    cordoned: int = -1,
    stopping: int = -1,
) -> ClusterView:
    return ClusterView.build(
        name="prod",
        source="inline",
        format="test",
        brokers=[
            BrokerView(
                id=BrokerId(each),
                rack="abc"[each % 3],
                fenced=each == fenced,
                cordoned=each == cordoned,
                in_controlled_shutdown=each == stopping,
            )
            for each in range(1, 7)
        ],
        topics=(TopicView("t", min_insync_replicas=least),),
        partitions=PartitionTable(
            topic_index=[0] * len(replicas),
            partition_ids=range(len(replicas)),
            replicas=padded(replicas),
            leader=[row[0] for row in replicas] if leader is None else leader,
            isr=padded(replicas if isr is None else isr),
            adding=None if adding is None else padded(adding),
            size_bytes=[100] * len(replicas),
        ),
    )


def said(view: ClusterView, targets: list[list[int]], release: str = "4.4") -> dict[str, Finding]:
    plan = Reassignment(view=view, rows=range(len(targets)), replicas=padded(targets))
    found = impact([plan], release=Release(release))
    return {each.name: each for each in findings(found, disk_bytes=np.array([150, 150, 150, 150, -1, -1]))}


def test_a_kept_replica_out_of_sync_is_bad_news_up_to_4_2_and_told_for_4_3() -> None:
    view = cluster([[1, 2, 3]], isr=[[1, 2]])
    assert "blocked-before-4.3" not in said(view, [[1, 4, 3]], "4.2")
    old = said(view, [[1, 4, 3]], "4.2")["blocked"]
    assert old.is_bad
    assert old.sentence == (
        "Will not complete on 4.2 before kept replicas that are out of sync are back: 1 partition, t-0 (broker 3); "
        "from 4.3 on they wait only if they lose more replicas than they gain; if it is gone for good: plan --goal "
        "drain --remove 3."
    )
    new = said(view, [[1, 4, 3]])
    assert "blocked" not in new
    assert not new["blocked-before-4.3"].is_bad
    assert (
        "t-0 (broker 3); they lose more replicas than they gain, and then every target must be in sync; if"
        in said(view, [[1, 3]])["blocked"].sentence
    )
    lagging = cluster([[1, 2, 3], [3, 1, 2]], isr=[[1, 2], [3, 1, 2]])
    assert said(lagging, [[1, 3]])["blocked"].sentence.endswith("every target must be in sync.")


@pytest.mark.parametrize(
    ("view", "target", "name", "is_bad"),
    [
        (cluster([[1, 2]]), [1, 2], "nothing-to-do", False),
        (cluster([[1, 2]], adding=[[2]]), [1, 3], "reassignment-running", True),
        (cluster([[1, 2]], fenced=2), [1, 2], "broker-not-live", True),
        (cluster([[1, 2]], fenced=4), [1, 4], "never-joins", True),
        (cluster([[1, 2]], leader=[-1]), [1, 4], "stuck", True),
        (cluster([[1, 2]], stopping=4), [1, 4], "never-joins", True),
        (cluster([[1, 2]], cordoned=4), [1, 4], "broker-cordoned", True),
        (cluster([[1, 2]], cordoned=1), [1, 4], "cordoned-kept", True),
        (cluster([[1, 2, 3]]), [1], "factor-below-min-isr", True),
        (cluster([[1, 2, 3]]), [1, 2], "factor-lowered", False),
        (cluster([[1, 2]]), [1, 2, 3], "factor-raised", False),
        (cluster([[1]], least=1), [2], "single-replica-moves", False),
        (cluster([[1, 2, 3]]), [1, 2, 4], "racks-broken", True),
        (cluster([[1, 2, 4]]), [1, 2, 3], "racks-mended", False),
        (cluster([[1, 2, 3]], isr=[[1, 2]]), [3, 2, 4], "blocked-before-4.3", False),
    ],
)
def test_what_is_to_be_said_is_said(view: ClusterView, target: list[int], name: str, *, is_bad: bool) -> None:
    found = said(view, [target])
    assert found[name].is_bad is is_bad
    assert found[name].count == (0 if name == "nothing-to-do" else 1)


def test_cordoned_targets_are_taken_by_4_3_and_refused_since_4_4() -> None:
    view = cluster([[1, 2], [1, 2]], cordoned=4)
    new = said(view, [[1, 4], [2, 1]])
    assert new["broker-cordoned"].sentence == (
        "New replicas go to cordoned broker 4: 1 partition. The controller refuses them (KAFKA-20832)."
    )
    assert said(view, [[1, 4], [2, 1]], "4.3")["broker-cordoned"].sentence == (
        "New replicas go to cordoned broker 4: 1 partition. The controller takes them, and refuses them since 4.4 "
        "(KAFKA-20832)."
    )
    assert not said(cluster([[1, 2]], cordoned=1), [[1, 4]], "4.3")["cordoned-kept"].is_bad
    assert "cordoned-kept" not in new
    assert not {"broker-cordoned", "cordoned-kept"} & set(said(view, [[1, 4], [2, 1]], "4.2"))
    assert "cordoned-kept" not in said(cluster([[1, 2]], cordoned=1), [[1, 2]])  # Nothing is asked of Kafka.


def test_a_log_directory_of_a_cordoned_broker_is_refused_by_the_broker() -> None:
    plan = Reassignment(
        view=cluster([[1, 2]], cordoned=2),
        rows=[0],
        replicas=[[1, 2]],
        log_dirs=(LogDirTarget(place=0, broker_id=BrokerId(2), path="/d1"),),
    )
    found = {each.name: each for each in findings(impact([plan]))}
    assert found["log-dir-cordoned"].is_bad
    assert found["log-dir-cordoned"].sentence == (
        "Named log directories are cordoned: 1 entry, such as /d1 of broker 2; the broker refuses them "
        "(InvalidReplicaAssignmentException)."
    )


def test_a_partition_that_keeps_too_few_in_sync_is_under_min_isr_once_complete() -> None:
    view = cluster([[1, 2, 3]], isr=[[1, 2]])
    found = impact([Reassignment(view=view, rows=[0], replicas=[[1, 3]])], release=Release("3.7"))
    assert attrs.astuple(found.under_min_isr) == (0, 1, 1)
    assert [each.name for each in findings(found) if each.is_bad] == ["broker-not-live", "under-min-isr"]


def test_the_disk_of_a_broker_is_fullest_before_anything_is_freed() -> None:
    view = cluster([[1, 2], [2, 3], [3, 1]])
    found = said(view, [[1, 4], [2, 4], [4, 1]])["disk-over-capacity"]
    assert found.sentence.startswith("At the peak broker 1 holds 200 B of 150 B, broker 2 holds 200 B of 150 B")


@pytest.mark.parametrize(
    ("throttle", "ingress", "seconds"),
    [(10, 0, 10.0), (10, 6, 12.5), (10, 8, 50.0 / 3), (10, 30, float("inf")), (None, 0, None)],
)
def test_time_is_size_over_what_the_throttle_leaves(throttle: int | None, ingress: int, seconds: float | None) -> None:
    view = cluster([[1, 2], [2, 1]], leader=[1, 2])
    plan = Reassignment(view=view, rows=[0], replicas=[[1, 3]])
    rates = np.array([ingress, 0, 0, 0, 0, 0])
    found = impact([plan], links=Links(throttle=throttle, ingress=rates))
    # Broker 1 holds 200 bytes, of which t-0 is half: half of what it takes in is t-0's, sent to brokers 2 and 3.
    if seconds is None:
        assert found.seconds is None
    else:
        left_out, left_in = 10 - 2 * ingress / 2, 10 - ingress / 2
        expected = max(100 / left_out, 100 / left_in) if min(left_out, left_in) > 0 else float("inf")
        assert found.seconds == pytest.approx(expected)
    assert ("never-ends" in {each.name for each in findings(found)}) == (seconds == float("inf"))


def test_the_network_limits_the_rate_where_its_capacity_is_known() -> None:
    plan = Reassignment(view=cluster([[1, 2]]), rows=[0], replicas=[[1, 3]])
    network = np.array([-1, -1, 4, -1, -1, -1])
    assert impact([plan], links=Links(throttle=10, network_in=network)).seconds == 25.0
    assert impact([plan], links=Links(network_in=network)).seconds == 25.0
    assert impact([plan], links=Links()).seconds is None


def test_a_partition_without_a_leader_keeps_none() -> None:
    view = cluster([[1, 2]], leader=[-1], isr=[[1]])
    done = completion(Reassignment(view=view, rows=[0], replicas=[[2, 1]]))
    assert (done.leader.tolist(), done.preferred.tolist(), done.is_stuck.tolist()) == ([-1], [-1], [False])


def test_tables_have_a_row_for_each_batch_broker_partition_and_measure() -> None:
    view = cluster([[1, 2], [2, 3]])
    plan = Reassignment(view=view, rows=[0, 1], replicas=[[4, 2], [3, 2]])
    found = impact([plan.take([0]), plan.take([1])], links=Links(throttle=10))
    assert batches_table(found).column("moved_bytes").to_pylist() == [100, 0]
    rows = brokers_table(found).to_pylist()
    assert [row["broker_id"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["replica_count_in"] for row in rows] == [0, 0, 0, 1, 0, 0]
    assert [row["seconds_out"] for row in rows] == [10.0, 0, 0, 0, 0, 0]
    assert moves_table(found).select(["batch", "partition", "adding", "removing", "leader_done"]).to_pylist() == [
        {"batch": 1, "partition": 0, "adding": [4], "removing": [1], "leader_done": 4},
        {"batch": 2, "partition": 1, "adding": [], "removing": [], "leader_done": 2},
    ]
    names = {(row["scope"], row["quantity"]) for row in side_by_side(found.before, found.after)}
    assert {("broker", "replicas"), ("broker", "bytes"), ("rack", "leaders")} <= names


def test_no_plan_is_refused() -> None:
    with pytest.raises(UsageError, match="an impact needs a plan"):
        impact([])


def test_a_dead_broker_that_is_drained_is_no_broker_to_fill_afterwards() -> None:
    """Broker 4 is in no ISR; once it holds nothing, the partitions no longer show that it is dead."""
    replicas = np.array([[1, 2], [2, 3], [3, 1], [1, 4]], dtype=np.int32)
    view = ClusterView.build(
        name="c",
        source="c",
        format="c",
        partitions=PartitionTable(
            topic_index=np.zeros(4, dtype=np.int32),
            partition_ids=np.arange(4, dtype=np.int32),
            replicas=replicas,
            leader=replicas[:, 0],
            isr=np.array([[1, 2], [2, 3], [3, 1], [1, -1]], dtype=np.int32),
        ),
        brokers=tuple(BrokerView(id=BrokerId(number)) for number in (1, 2, 3, 4)),
        topics=(TopicView("t"),),
    )
    found = impact([Reassignment(view=view, rows=[3], replicas=[[1, 2]])])
    assert found.before.alive.tolist() == found.after.alive.tolist() == [True, True, True, False]
    moves = {
        row["quantity"]: (row["before"], row["after"])
        for row in side_by_side(found.before, found.after)
        if (row["scope"], row["measure"]) == ("broker", "moves")
    }
    assert moves["replicas"] == (0, 0)
