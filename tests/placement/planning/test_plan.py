"""Plans reach what their goal says with the fewest moves, keep every rule, and prove it."""

from __future__ import annotations

import functools

import attrs
import numpy as np
import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.errors import UsageError
from broker.ids import BrokerId
from placement.balance.constraints import RACK_SPREAD
from placement.balance.measures import measures
from placement.planning.certificate import TopicProof
from placement.planning.check import faults
from placement.planning.goal import Goal, MissingInputError, PlanRefusedError, with_added
from placement.planning.plan import Plan, make_plan
from placement.spec import Assignment
from tests.oracles.plans import Enumerated, random_goal, random_view

SEEDS = range(400)
CHUNKS = [range(16), *(pytest.param(range(start, start + 64), marks=pytest.mark.deep) for start in range(16, 400, 64))]
"""Few seeds in the fast tier, all others in the deep one."""
some_seeds = pytest.mark.parametrize("seeds", CHUNKS, ids=repr)


def view_of(rows: list[list[int]], racks: dict[int, str | None], **columns: object) -> ClusterView:
    width = max(map(len, rows), default=0)
    return ClusterView.build(
        name="c",
        source="test",
        format="test",
        brokers=[BrokerView(id=BrokerId(number), rack=rack) for number, rack in racks.items()],
        topics=(TopicView("t"),),
        partitions=PartitionTable(
            topic_index=[0] * len(rows),
            partition_ids=range(len(rows)),
            replicas=[row + [-1] * (width - len(row)) for row in rows],
            **columns,
        ),
    )


@functools.cache
def planned(seed: int) -> Plan | None:
    view = random_view(seed)
    try:
        return make_plan(view, random_goal(view, seed))
    except (MissingInputError, PlanRefusedError):
        return None


def after(plan: Plan) -> ClusterView:
    """The cluster once the plan is done, led by preferred leaders."""
    rows = np.append(plan.view.broker_ids, -1)[plan.target]
    table = attrs.evolve(plan.view.partitions, replicas=rows, leader=None)
    return attrs.evolve(plan.view, partitions=table)


@some_seeds
def test_plans_cost_what_brute_force_finds_and_keep_every_rule(seeds: range) -> None:
    """Tests 2, 4, 12, 14, 22 and 26 of the list: racks, fenced and unracked brokers, factors, all goals."""
    for seed in seeds:
        plan = planned(seed)
        if plan is None:
            continue
        assert plan.faults() == (), seed
        assert plan.tally.is_least, seed
        assert (plan.tally.moved, plan.tally.lost) == Enumerated(plan.view, plan.goal).least(), seed
        assert plan.tally.leader_changes >= plan.tally.leader_changes_least
        check_rows(plan)
        check_goal(plan)
        back = plan.reassignment.rollback(after(plan)).table().replicas
        assert np.array_equal(back[:, : plan.view.partitions.replicas.shape[1]], plan.view.partitions.replicas)
        if not any(one.fenced for one in plan.view.brokers):
            kind = plan.goal.kind if plan.goal.is_narrow else "racks" if plan.view.racks else "balance"
            goal = attrs.evolve(plan.goal, add=(), new_only_receives=False, kind=kind)
            assert make_plan(after(plan), goal).tally.moved == 0, seed


def check_rows(plan: Plan) -> None:
    """No broker holds a partition twice, and replicas that stay keep their order behind the leader."""
    for row in after(plan).partitions.replicas.tolist():
        held = [number for number in row if number >= 0]
        assert len(set(held)) == len(held)
    for before, row in zip(plan.reassignment.current.tolist(), plan.reassignment.replicas.tolist(), strict=True):
        kept = [broker for broker in row[1:] if broker in before and broker >= 0]
        assert kept == sorted(kept, key=before.index), (before, row)


def check_goal(plan: Plan) -> None:
    """Removed brokers are empty, only new ones receive if so asked, topics and factors are as asked."""
    goal, moved = plan.goal, plan.reassignment
    assert not np.isin(np.append(plan.view.broker_ids, -1)[plan.target], goal.remove).any()
    if goal.factor is None and not goal.exclude_topics:
        assert plan.tally.moved >= np.isin(plan.view.partitions.replicas, goal.remove).sum()
    if goal.new_only_receives:
        assert set(moved.replicas[moved.added].tolist()) <= {number for number, _ in goal.add}
    changed = plan.view.partitions.topic_index[moved.rows]
    assert not {plan.view.topics[t].name for t in changed.tolist()} & set(goal.exclude_topics)
    if goal.factor is not None:
        sizes = np.count_nonzero(moved.replicas >= 0, axis=1)
        stays = max((len(row) for row in plan.view.partitions.replicas.tolist()), default=0)
        assert ((sizes == goal.factor) | (sizes <= stays)).all()


@some_seeds
def test_cordoned_brokers_receive_nothing_and_moves_are_those_of_brute_force(seeds: range) -> None:
    """Cordoned brokers (KIP-1066), whole racks of them too, and brokers in controlled shutdown, under all goals."""
    seen = received = 0
    for seed in seeds:
        view = random_view(seed, cordoned=0.4)
        goal = random_goal(view, seed)
        known = with_added(view, goal)
        try:
            plan = make_plan(view, goal)
        except (MissingInputError, PlanRefusedError) as refusal:
            if "nowhere" in str(refusal):
                assert Enumerated(known, goal).least() is None, seed
            continue
        assert plan.faults() == (), seed
        least = Enumerated(plan.view, plan.goal).least()
        assert least is not None
        if goal.is_even:
            assert (plan.tally.moved, plan.tally.lost) == least, seed
        else:  # The plan may use floor and ceiling of a block, of which a cordoned broker cannot reach both.
            assert (plan.tally.moved, plan.tally.lost) <= least, seed
        new = set(plan.reassignment.replicas[plan.reassignment.added].tolist())
        cordoned = {one.id for one in plan.view.brokers if one.cordoned}
        assert not new & cordoned, seed
        seen += bool(cordoned)
        received += bool(new)
    assert seen > len(seeds) // 5
    assert received > len(seeds) // 32 or len(seeds) < 32


def test_a_rack_of_cordoned_brokers_bars_only_those_that_are_not_there() -> None:
    """Partition 0 is on rack c, which is cordoned, and may stay; 1 is not, and need not be; nothing else moves."""
    view = view_of([[1, 2, 3], [1, 2, 4]], {1: "a", 2: "b", 3: "c", 4: "b"})
    cordon = tuple(attrs.evolve(one, cordoned=one.id == 3) for one in view.brokers)
    plan = make_plan(attrs.evolve(view, brokers=cordon), Goal(kind="racks"))
    assert plan.tally.moved == 0
    assert make_plan(view, Goal(kind="racks")).reassignment.replicas.tolist() != []


def test_a_refusal_names_the_cordoned_brokers_that_stand_in_the_way() -> None:
    view = view_of([[1, 2]], {1: None, 2: None, 3: None, 4: None})
    cordon = tuple(attrs.evolve(one, cordoned=one.id > 2) for one in view.brokers)
    with pytest.raises(PlanRefusedError) as refused:
        make_plan(attrs.evolve(view, brokers=cordon), Goal(kind="drain", remove=(BrokerId(2),)))
    assert str(refused.value) == (
        "t-0 needs 2 live brokers, and 1 remains; 1 more (uncordon brokers 3, 4), or a smaller factor (--factor 1)"
    )
    with pytest.raises(PlanRefusedError) as refused:
        make_plan(attrs.evolve(view, brokers=cordon), Goal(kind="add", add=((BrokerId(3), None),)))
    assert str(refused.value) == (
        "broker 3 is to be added, but all its log directories are cordoned; uncordon one first"
    )


def test_a_plan_that_gives_a_cordoned_broker_a_replica_is_seen() -> None:
    view = view_of([[1, 2], [1, 2], [2, 3]], {1: None, 2: None, 3: None})
    plan = make_plan(view, Goal())
    assert (plan.reassignment.replicas == 3).any()
    cordon = attrs.evolve(plan.view, brokers=tuple(attrs.evolve(b, cordoned=b.id == 3) for b in plan.view.brokers))
    found = faults(cordon, plan.goal, plan.target, plan.certificate)
    assert any(one.startswith("a cordoned broker receives a replica: 1 partition") for one in found), found


@some_seeds
def test_what_is_refused_for_want_of_a_place_has_none(seeds: range) -> None:
    refused = 0
    for seed in seeds:
        view = random_view(seed)
        goal = random_goal(view, seed)
        try:
            make_plan(view, goal)
        except (MissingInputError, PlanRefusedError) as refusal:
            if "live brokers" in str(refusal) or "nowhere" in str(refusal):
                refused += 1
                assert Enumerated(with_added(view, goal), goal).least() is None, seed
    assert refused >= len(seeds) // 32


@pytest.mark.parametrize("racked", [False, True])
def test_brokers_that_join_an_even_cluster_are_the_only_ones_to_receive(racked: bool) -> None:
    """Test 9: without --new-only-receives, without racks and on three that grow alike."""
    for count in (6, 20):
        rows = [[n % 6, (n + 1) % 6, (n + 2) % 6] for n in range(count)]
        racks: dict[int, str | None] = {number: "abc"[number % 3] if racked else None for number in range(6)}
        view = view_of(rows, racks)
        even = make_plan(view, Goal())
        assert even.tally.moved <= 3
        new = tuple((BrokerId(number), "abc"[number % 3] if racked else None) for number in (6, 7, 8))
        plan = make_plan(after(even), Goal(kind="add", add=new))
        assert plan.faults() == ()
        received = plan.reassignment.replicas[plan.reassignment.added].tolist()
        assert set(received) <= {6, 7, 8}
        assert len(received) >= 3 * (3 * count // 9)


@some_seeds
def test_to_remove_a_broker_again_moves_what_it_came_to_hold(seeds: range) -> None:
    """Test 10, on random clusters: at least that, and the broker is empty afterwards."""
    seen = 0
    for seed in seeds:
        view = random_view(seed)
        new = BrokerId(1 + max(int(one.id) for one in view.brokers))
        try:
            added = make_plan(view, Goal(kind="add", add=((new, None if not view.racks else view.racks[0]),)))
            back = make_plan(after(added), Goal(kind="drain", remove=(new,)))
        except (MissingInputError, PlanRefusedError):
            continue
        held = int((after(added).partitions.replicas == new).sum())
        assert back.tally.moved >= held
        assert not (after(back).partitions.replicas == new).any()
        seen += held > 0
    assert seen > len(seeds) // 4


@pytest.mark.deep
def test_after_a_plan_every_partition_stands_on_as_many_racks_as_it_can() -> None:
    """Test 11: by the product's audit of racks, on clusters without exceptions: all racked, nobody fenced, all led."""
    seen = broken = 0
    for seed in range(1_000):
        plan = planned(seed)
        if plan is None or plan.goal.exclude_topics or plan.goal.is_narrow:  # Drains and factors mend nothing else.
            continue
        brokers = [one for one in plan.view.brokers if one.id not in plan.goal.remove]
        leader = plan.view.partitions.leader
        if any(one.fenced or one.rack is None for one in plan.view.brokers) or (leader is not None and min(leader) < 0):
            continue
        table, names = plan.view.partitions, tuple(topic.name for topic in plan.view.topics)
        before = Assignment(names, table.topic_index, table.partition_ids, table.replicas)
        broken += RACK_SPREAD.violations(before, plan.view.brokers).count
        assert (
            RACK_SPREAD.violations(attrs.evolve(before, replicas=after(plan).partitions.replicas), brokers).count == 0
        )
        seen += 1
    assert seen > 100
    assert broken > 50


@some_seeds
def test_without_racks_the_moves_are_those_that_the_measures_foretell(seeds: range) -> None:
    """Test 13: `Distribution.moves` counts what leaves overfull brokers."""
    for seed in seeds:
        view = random_view(seed)
        if any(one.fenced for one in view.brokers):
            continue
        bare = attrs.evolve(view, brokers=tuple(attrs.evolve(one, rack=None) for one in view.brokers))
        found = next(m for m in measures(bare) if (m.scope, m.quantity) == ("broker", "replicas")).distribution
        assert found.moves_exact
        assert make_plan(bare, Goal()).tally.moved == found.moves


@pytest.mark.parametrize(
    ("rows", "racks", "moved"),
    [
        ([[1, 2, 3], [2, 1, 3], [3, 1, 2], [1, 2, 3]], {1: "r1", 2: "r2", 3: "r3", 4: "r1"}, 2),
        (
            [[1, 2, 3, 4], [2, 1, 3, 4], [3, 1, 2, 4], [4, 1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4]],
            {1: "r1", 2: "r2", 3: "r3", 4: "r4", 5: "r4"},
            3,
        ),
        (
            [[1, 3, 5], [2, 4, 5], [3, 1, 5], [4, 2, 5], [5, 1, 3], [5, 1, 3]],
            {1: "r1", 2: "r1", 3: "r2", 4: "r2", 5: "r3", 6: "r1"},
            3,
        ),
    ],
)
def test_published_cases_of_kafka_balancer(rows: list[list[int]], racks: dict[int, str | None], moved: int) -> None:
    """addBroker_rack_1, _2 and _4 (flipkart-incubator/kafka-balancer, Apache-2.0): their own answers stay uneven."""
    plan = make_plan(view_of(rows, racks), Goal())
    assert (plan.tally.moved, plan.faults()) == (moved, ())


@some_seeds
def test_equal_factors_always_reach_floor_and_ceiling_of_leaders(seeds: range) -> None:
    """Test 18: random clusters, leaders uneven by chance."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        brokers, count = int(rng.integers(3, 9)), int(rng.integers(1, 40))
        rows = [rng.permutation(brokers)[:3].tolist() for _ in range(count)]
        plan = make_plan(view_of(rows, dict.fromkeys(range(brokers))), Goal())
        leaders = np.bincount(plan.target[:, 0], minlength=brokers)
        assert leaders.max() - leaders.min() <= 1, seed


def test_mixed_factors_may_not_reach_it_and_the_certificate_says_so() -> None:
    """Test 19: broker 1 holds three partitions of factor 1, which nobody else can lead."""
    view = view_of([[1], [1], [1], [2, 3], [3, 2]], dict.fromkeys([1, 2, 3]))
    plan = make_plan(view, Goal(only_leaders=True))
    assert plan.tally.changed == 0
    assert plan.certificate.leaders.high.tolist() == [3, 1, 1]
    assert plan.faults() == ()


def test_a_plan_of_leaders_moves_no_replica() -> None:
    view = view_of([[1, 2, 3]] * 6, dict.fromkeys([1, 2, 3]), size_bytes=[7] * 6)
    plan = make_plan(view, Goal(only_leaders=True))
    assert (plan.tally.moved, plan.tally.leader_changes, plan.reassignment.count) == (0, 4, 4)
    assert not plan.reassignment.added.any()
    assert sorted(np.sort(plan.reassignment.replicas, axis=1).tolist()) == [[1, 2, 3]] * 4


def test_a_plan_of_leaders_leaves_racks_as_they_are_and_moves_nothing() -> None:
    view = view_of([[1, 2]] * 4, {1: "a", 2: "a", 3: "b"})
    plan = make_plan(view, Goal(only_leaders=True))
    assert (plan.tally.leader_changes, plan.faults()) == (2, ())
    moved = plan.target.copy()
    moved[0] = [0, 2]
    found = faults(view, plan.goal, moved, plan.certificate)
    assert "a replica moves though only leaders may: 1 partition, such as t-0" in found


def test_a_fenced_preferred_leader_stays_first_while_the_leader_stays() -> None:
    view = view_of([[1, 2, 3]], dict.fromkeys([1, 2, 3, 4]), leader=[2])
    down = attrs.evolve(view, brokers=tuple(attrs.evolve(one, fenced=one.id == 1) for one in view.brokers))
    plan = make_plan(down, Goal(remove=(BrokerId(3),)))
    assert plan.reassignment.replicas.tolist() == [[1, 2, 4]]
    assert (plan.tally.leader_changes, plan.faults()) == (0, ())


def test_each_topic_is_spread_by_itself_too() -> None:
    rows = [[0, 1], [0, 1], [0, 1], [2, 3], [2, 3], [2, 3], [2, 3], [0, 1]]
    view = view_of(rows, dict.fromkeys(range(4)))
    table = attrs.evolve(view.partitions, topic_index=[0] * 4 + [1] * 4, partition_ids=[*range(4), *range(4)])
    view = attrs.evolve(view, topics=(TopicView("t"), TopicView("u")), partitions=table)
    assert make_plan(view, Goal()).tally.moved == 0
    plan = make_plan(view, Goal(per_topic=True))
    assert (plan.tally.moved, plan.faults()) == (4, ())
    for rows_of in (slice(0, 4), slice(4, 8)):
        assert np.bincount(plan.target[rows_of].ravel(), minlength=4).tolist() == [2, 2, 2, 2]


@some_seeds
def test_plans_by_topic_are_at_their_bound_whatever_the_rules(seeds: range) -> None:
    seen = 0
    for seed in seeds:
        view = random_view(seed)
        try:
            plan = make_plan(view, attrs.evolve(random_goal(view, seed), per_topic=True))
        except (UsageError, MissingInputError, PlanRefusedError):
            continue
        assert plan.faults() == (), seed
        assert plan.tally.is_least, seed
        seen += 1
    assert seen > len(seeds) // 3


def test_a_replica_outside_its_bounds_by_topic_is_seen() -> None:
    """Two topics swap brokers: all loads stay, and as many replicas move."""
    view = view_of([[0], [1], [0], [1]], dict.fromkeys(range(2)))
    table = attrs.evolve(view.partitions, topic_index=[0, 0, 1, 1], partition_ids=[0, 1, 0, 1])
    view = attrs.evolve(view, topics=(TopicView("t"), TopicView("u")), partitions=table)
    plan = make_plan(view, Goal(per_topic=True))
    assert (plan.tally.moved, plan.faults()) == (0, ())
    swapped = np.array([[0], [0], [1], [1]], dtype=np.int32)
    found = faults(view, plan.goal, swapped, plan.certificate)
    assert "broker 0 holds 2 replicas of t, outside its bounds by topic" in found


def test_bounds_by_topic_that_could_be_more_even_are_seen() -> None:
    """A certificate says that topic t must stay with 3, 3, 1 and 1 replicas, as it is: nothing moves, as prices say."""
    rows = [[0, 1], [0, 1], [0, 1], [2, 3], [2, 3], [2, 3], [2, 3], [0, 1]]
    view = view_of(rows, dict.fromkeys(range(4)))
    table = attrs.evolve(view.partitions, topic_index=[0] * 4 + [1] * 4, partition_ids=[*range(4), *range(4)])
    view = attrs.evolve(view, topics=(TopicView("t"), TopicView("u")), partitions=table)
    plan = make_plan(view, Goal(per_topic=True))
    proof = plan.certificate.replicas
    assert proof is not None
    stays = np.array([[3, 3, 1, 1], [1, 1, 3, 3]], dtype=np.int64)
    topics = TopicProof(low=stays, high=stays, price=np.zeros_like(stays))
    proof = attrs.evolve(proof, topics=topics, price=np.zeros_like(proof.price))
    other = make_plan(view, Goal())
    found = faults(view, plan.goal, other.target, attrs.evolve(other.certificate, replicas=proof))
    assert found == ("the bounds of 2 topics are not the most even, such as t",)
