"""Every table of the look-ahead equals the outage of its set, and outages grow with what is lost."""

from __future__ import annotations

from itertools import combinations

import attrs
import pytest
from hypothesis import given

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.liveness import Liveness
from placement.outages import look_ahead as module
from placement.outages.look_ahead import Sweep, look_ahead, sweep_table, worst
from placement.outages.lost import Outage, affected_table, leaders_table, outage
from placement.outages.returning import returns_table
from tests.placement.outages.views import FEW, Small, clusters


def lost_of(view: ClusterView, sweep: Sweep, place: int) -> list[BrokerId]:
    lost = []
    if sweep.rack is not None:
        name = view.racks[int(sweep.rack[place])]
        lost = [broker.id for broker in view.brokers if broker.rack == name]
    rows = [column for column in (sweep.broker, sweep.other_broker) if column is not None]
    return lost + [view.brokers[int(column[place])].id for column in rows]


def figures_of(view: ClusterView, found: Outage) -> dict[str, int | None]:
    taken = found.takeover
    left = [broker for broker in view.brokers if broker.is_active and broker.id not in found.lost]
    return attrs.asdict(found.counts) | {
        "lost_leader_count": taken.lost_leader_count,
        "failover_count": taken.failover_count,
        "leader_count_max": taken.leader_count_max,
        "live_broker_count": len(left),
    }


@FEW
@given(clusters())
def test_each_row_of_each_table_is_the_outage_of_its_set(small: Small) -> None:
    view = small.view()
    found = look_ahead(view)
    assert attrs.asdict(found.now) == attrs.asdict(outage(view, ()).counts)
    for sweep in found.sweeps:
        for place, row in enumerate(sweep_table(view, sweep).to_pylist()):
            direct = outage(view, lost_of(view, sweep, place))
            figures = figures_of(view, direct)
            assert {name: int(column[place]) for name, column in sweep.columns.items() if column is not None} == figures
            assert row["failover_share"] == direct.takeover.failover_share
            assert row["leader_max_over_mean"] == direct.takeover.leader_max_over_mean
            if sweep.failover_broker is not None:
                assert row["failover_broker_id"] == direct.takeover.failover_broker


@FEW
@given(clusters())
def test_every_set_of_a_scope_has_one_row(small: Small) -> None:
    view = small.view()
    found = look_ahead(view)
    racked = {rack: [b.id for b in view.brokers if b.rack == rack] for rack in view.racks}
    wanted = {
        "brokers": [frozenset([one.id]) for one in view.brokers],
        "pairs": [frozenset(pair) for pair in combinations([one.id for one in view.brokers], 2)],
        "racks": [frozenset(of) for of in racked.values()],
        "racks_and_brokers": [
            frozenset([*of, one.id]) for of in racked.values() for one in view.brokers if one.id not in of
        ],
    }
    for sweep in found.sweeps:
        listed = [frozenset(lost_of(view, sweep, place)) for place in range(sweep.count)]
        assert sorted(map(sorted, listed)) == sorted(map(sorted, wanted[sweep.scope]))


@FEW
@given(clusters())
def test_losing_more_is_never_better(small: Small) -> None:
    view = small.view()
    ids = [broker.id for broker in view.brokers]
    found = {
        frozenset(lost): outage(view, lost).counts for size in range(len(ids) + 1) for lost in combinations(ids, size)
    }
    names = [name for name in attrs.asdict(found[frozenset()]) if name != "at_min_isr_count"]
    for lost, counts in found.items():
        for more in ids:
            larger = attrs.asdict(found[lost | {more}])
            for name in names:
                assert larger[name] >= attrs.asdict(counts)[name], (name, lost, more)


def striped(**given: object) -> ClusterView:
    """Three brokers, three partitions: the next broker is always the second replica."""
    table = PartitionTable(topic_index=[0, 0, 0], partition_ids=[0, 1, 2], replicas=[[1, 2], [2, 3], [1, 2]], **given)
    topics = [TopicView("t", min_insync_replicas=2)]
    return ClusterView.build(name="n", source="s", format="f", partitions=table, topics=topics)


def test_all_leaders_of_a_lost_broker_may_go_to_one() -> None:
    found = outage(striped(), [BrokerId(1)]).takeover
    assert (found.failover_broker, found.failover_share, found.leader_count_max) == (2, 1.0, 3)
    assert found.leader_max_over_mean == 2.0


def test_what_the_view_does_not_say_is_none() -> None:
    view = attrs.evolve(striped(), topics=(TopicView("t"),))
    found = outage(view, [BrokerId(1)])
    assert found.counts.under_min_isr_count is None
    assert found.counts.at_risk_bytes is None
    table = sweep_table(view, look_ahead(view).brokers)
    assert table["under_min_isr_count"].null_count == 3
    assert table["at_risk_bytes"].null_count == 3
    assert found.notes == (
        "no ISR is shown: every live replica is taken to be in sync",
        "1 of 1 topics do not show min.insync.replicas; their partitions are not judged by it (--min-isr gives it)",
    )


def test_a_size_that_is_not_known_makes_the_bytes_unknown() -> None:
    assert outage(striped(size_bytes=[1, -1, 2]), [BrokerId(1)]).counts.at_risk_bytes is None
    assert outage(striped(size_bytes=[1, 5, 2]), [BrokerId(1), BrokerId(2)]).counts.at_risk_bytes == 3


def test_an_observer_is_not_taken_to_be_in_sync() -> None:
    found = outage(striped(observers=[[2], [-1], [-1]]), [BrokerId(1)])
    assert found.counts.leaderless_count == 1
    assert found.leader.tolist() == [-1, 2, 2]


def test_an_elr_says_that_each_lost_member_may_lead_though_min_isr_is_not_known() -> None:
    table = PartitionTable(
        topic_index=[0], partition_ids=[0], replicas=[[1, 2, 3]], isr=[[1, 2]], elr=[[3]], leader=[1]
    )
    view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=[TopicView("t")])
    found = outage(view, [BrokerId(1), BrokerId(2), BrokerId(3)]).coming_back
    assert found.brokers_with_elr.tolist() == [[1, 2, 3, -1]]
    assert found.needed_count_with_elr.tolist() == [1]
    assert found.needed_count.tolist() == [2]
    assert returns_table(view, found)["brokers"].to_pylist() == [[1, 2]]


def test_the_tables_name_partitions_and_brokers() -> None:
    view = striped(leader=[1, 2, 1])
    found = outage(view, [BrokerId(1), BrokerId(2)])
    assert affected_table(view, found).to_pylist() == [
        {
            "topic": "t",
            "partition": partition,
            "leader_before": before,
            "leader_after": after,
            "isr_count_before": 2,
            "isr_count_after": left,
        }
        for partition, before, after, left in [(0, 1, None, 0), (1, 2, 3, 1), (2, 1, None, 0)]
    ]
    assert leaders_table(view, found).to_pydict() == {
        "broker_id": [1, 2, 3],
        "lost": [True, True, False],
        "leader_count_before": [2, 1, 0],
        "leader_count_after": [0, 0, 1],
    }
    assert found.coming_back.must_return(with_elr=True) == ()
    assert found.coming_back.order_matters_count(with_elr=False) == 2
    alone = outage(
        attrs.evolve(view, partitions=attrs.evolve(view.partitions, isr=[[1, -1], [2, 3], [1, 2]])), [BrokerId(1)]
    )
    assert alone.coming_back.must_return(with_elr=False) == (1,)


@pytest.mark.parametrize(
    ("isr", "elr", "unclean", "no_replica"),
    [([1], [-1], "false", 0), ([-1], [2], "false", 0), ([-1], [-1], "false", 0), ([-1], [2], "true", 1)],
)
def test_a_partition_that_the_dump_shows_leaderless_is_leaderless_now(
    isr: list[int], elr: list[int], unclean: str, no_replica: int
) -> None:
    """Both brokers are alive; yet the controller would have elected one of the ISR that is."""
    table = PartitionTable(
        topic_index=[0, 1],
        partition_ids=[0, 0],
        replicas=[[1, 2], [1, 2]],
        isr=[isr, [1]],
        elr=[elr, [-1]],
        leader=[-1, 1],
    )
    topics = [
        TopicView("dark", min_insync_replicas=1, configs=(("unclean.leader.election.enable", unclean),)),
        TopicView("led", min_insync_replicas=1),
    ]
    brokers = [BrokerView(id=BrokerId(each), stated=Liveness.ALIVE) for each in (1, 2)]
    view = ClusterView.build(name="n", source="s", format="f", brokers=brokers, partitions=table, topics=topics)
    now = look_ahead(view).now
    assert (now.leaderless_count, now.at_risk_count, now.under_min_isr_count) == (1, 1, 1)
    assert now.no_replica_count == no_replica
    found = outage(view, ())
    assert (found.leader.tolist(), found.isr_count.tolist()) == ([-1, 1], [0, 1])
    assert found.coming_back.rows.tolist() == [0]


def test_an_unknown_broker_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        outage(striped(), [BrokerId(7)])
    assert str(caught.value) == "broker 7 is not one of cluster n; there are 1, 2, 3"


def test_beyond_the_limit_pairs_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAIR_BROKERS_MAX", 2)
    found = look_ahead(striped())
    assert found.pairs is None
    assert found.notes[-1] == "pairs of brokers are left out: 3 brokers are more than 2"
    assert found.brokers.count == 3


def test_an_empty_cluster_and_one_broker_have_answers() -> None:
    empty = ClusterView(name="n", source="s", format="f", brokers=(BrokerView(id=BrokerId(4)),))
    found = look_ahead(empty)
    assert [sweep.count for sweep in found.sweeps] == [1, 0, 0, 0]
    nobody = look_ahead(attrs.evolve(empty, brokers=()))
    assert [sweep.count for sweep in nobody.sweeps] == [0, 0, 0, 0]


def worst_by_sorting(view: ClusterView, pairs: Sweep, limit: int) -> list[int]:
    columns, alive = pairs.columns, [each == Liveness.ALIVE for each in view.liveness]
    both = [low for low in range(len(alive)) for _ in range(low + 1, len(alive))]
    other = [high for low in range(len(alive)) for high in range(low + 1, len(alive))]
    places = [place for place in range(len(both)) if alive[both[place]] and alive[other[place]]]
    keys = ("at_risk_count", "leaderless_count", "under_min_isr_count", "at_risk_bytes", "failover_count")
    ranked = [columns[name] for name in keys if columns[name] is not None]
    order = sorted(places, key=lambda place: (*(-int(column[place]) for column in ranked), place))
    return order[:limit]


@FEW
@given(clusters())
def test_the_worst_are_those_that_sorting_all_gives(small: Small) -> None:
    view = small.view()
    pairs = look_ahead(view).pairs
    assert pairs is not None
    assert worst(pairs, 4).tolist() == worst_by_sorting(view, pairs, 4)
    assert worst(pairs, 100).tolist() == worst_by_sorting(view, pairs, 100)
