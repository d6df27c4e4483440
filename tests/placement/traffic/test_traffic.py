"""What crosses zones is a loop over partitions; the least is what trying every assignment finds."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.errors import UsageError
from broker.ids import BrokerId, PartitionId, TopicPartition
from placement.consumer.group import Member
from placement.consumer.registry import KAFKAS
from placement.traffic import Consumers, Crossing, GroupPlan, ZonedPartitions, cost_of, group_traffic, sample_groups
from placement.traffic.consumers import NOW
from placement.traffic.crossing import NOTHING, even_shares, produce, replication
from placement.traffic.group_traffic import least_fetched, least_of
from tests.placement.traffic.naive import ZONES, Plain, cluster, count, least_by_trying

SEEDS = range(60)


def figures(crossing: Crossing) -> tuple[float | None, ...]:
    return attrs.astuple(crossing)


def group_of(view: ClusterView, seed: int, *, zoned: bool = True, alike: bool = True) -> tuple[Member, ...]:
    rng = random.Random(seed + 1000)
    topics = [topic.name for topic in view.topics]
    named = tuple(rng.sample(topics, rng.randint(1, len(topics))))
    zones = (*ZONES, "elsewhere") if zoned else (*ZONES, "elsewhere", None)
    return tuple(
        Member(
            id=f"m{one}",
            topics=named if alike else tuple(rng.sample(topics, rng.randint(1, len(topics)))),
            rack=rng.choice(zones),
        )
        for one in range(rng.randint(1, 4))
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("racks", [True, False])
def test_fetches_of_every_assignor_are_a_loop_over_partitions(seed: int, racks: bool) -> None:
    view = cluster(seed, racks=racks)
    plain, partitions = Plain(view), ZonedPartitions.of(view)
    members = group_of(view, seed, zoned=False)
    consumers = Consumers.of("g", members, partitions)
    for assignor in KAFKAS:
        found = group_traffic(partitions, consumers, assignor)
        owners = consumers.assigned(assignor)
        for closest, crossing in ((False, found.leader), (True, found.closest)):
            expected = {
                ((one.topic, int(one.partition)), 0): plain.fetch(
                    (one.topic, int(one.partition)), members[owner].rack, closest=closest
                )
                for one, owner in (
                    (consumers.group.name_of(place), owner) for place, owner in enumerate(owners.tolist())
                )
                if owner >= 0
            }
            assert figures(crossing) == count(plain, expected)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("racks", [True, False])
def test_produce_and_replication_are_a_loop_over_partitions(seed: int, racks: bool) -> None:
    view = cluster(seed, racks=racks)
    plain, partitions = Plain(view), ZonedPartitions.of(view)
    replicated = {(key, place): what for key in plain.rows for place, what in enumerate(plain.replicated(key))}
    assert figures(replication(partitions)) == count(plain, replicated)
    shares = dict(zip(partitions.zones, (0.5, 0.3, 0.2), strict=False))
    found = produce(partitions, np.array(list(shares.values())))
    led = {key: plain.zone[row[2]] for key, row in plain.rows.items() if row[2] >= 0}
    remote = {key: 0.0 if zone is None else 1 - shares[zone] for key, zone in led.items()}
    assert found.count == len(led)
    assert found.unknown_count == sum(zone is None for zone in led.values())
    assert found.crossing_count == pytest.approx(sum(remote.values()))
    assert found.crossing_bytes == pytest.approx(sum(plain.rows[key][3] * share for key, share in remote.items()))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_is_what_trying_every_assignment_finds(seed: int) -> None:
    view = cluster(seed)
    plain, partitions = Plain(view), ZonedPartitions.of(view)
    rng = random.Random(seed)
    topics = [topic.name for topic in view.topics][:2]
    racks = [rng.choice((*ZONES, "elsewhere")) for _ in range(rng.randint(1, 3))]
    members = tuple(Member(id=f"m{place}", topics=tuple(topics), rack=rack) for place, rack in enumerate(racks))
    consumers = Consumers.of("g", members, partitions)
    keys = [(one.topic, int(one.partition)) for one in map(consumers.group.name_of, range(len(consumers.rows)))]
    if len(members) ** len(keys) > 5000:
        keys_max = 7
        members = tuple(attrs.evolve(member, topics=tuple(topics[:1])) for member in members)
        consumers = Consumers.of("g", members, partitions)
        keys = [(one.topic, int(one.partition)) for one in map(consumers.group.name_of, range(len(consumers.rows)))]
        assert len(keys) <= keys_max
    assert least_of(partitions, consumers) == least_by_trying(plain, members, keys)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_assignor_fetches_less_than_the_bounds(seed: int) -> None:
    view = cluster(seed)
    partitions = ZonedPartitions.of(view)
    members = group_of(view, seed)
    consumers = Consumers.of("g", members, partitions)
    _, least = least_of(partitions, consumers)
    assert least is not None
    for assignor in KAFKAS:
        found = group_traffic(partitions, consumers, assignor)
        assert found.closest.crossing_bytes is not None
        assert least <= found.closest.crossing_bytes


def test_what_is_held_now_is_counted_and_what_moves() -> None:
    view = cluster(3)
    partitions = ZonedPartitions.of(view)
    owned = tuple(TopicPartition("t0", PartitionId(number)) for number in range(len(partitions.rows_of("t0"))))
    members = (Member(id="a", topics=("t0",), rack="a", owned=owned), Member(id="b", topics=("t0",), rack="b"))
    consumers = Consumers.of("g", members, partitions)
    now, other = (group_traffic(partitions, consumers, name) for name in (NOW, "roundrobin"))
    assert (now.size_min, now.size_max, now.moved_count) == (0, len(owned), 0)
    assert other.moved_count == len(owned) // 2
    nobody = Consumers.of("g", (Member(id="a", topics=("t0",), rack="a"),), partitions)
    assert group_traffic(partitions, nobody, NOW).leader.count == 0


def test_what_is_held_may_not_be_known_and_then_nobody_counts_what_moves() -> None:
    partitions = ZonedPartitions.of(cluster(3))
    consumers = Consumers.of("g", (Member(id="a", topics=("t0",), rack="a"),), partitions, is_held_known=False)
    assert group_traffic(partitions, consumers, "range").moved_count is None
    with pytest.raises(UsageError) as caught:
        group_traffic(partitions, consumers, NOW)
    assert str(caught.value) == "what the members hold is not known: a member has no held"


def test_what_is_not_known_is_none_and_counted() -> None:
    view = cluster(5, sized=False)
    partitions = ZonedPartitions.of(view)
    members = (Member(id="a", topics=("t0",)), Member(id="b", topics=("t0",), rack="b"))
    consumers = Consumers.of("g", members, partitions)
    assert least_of(partitions, consumers) == (None, None)
    fetched = least_fetched(partitions, consumers)
    assert fetched.unknown_count == fetched.count
    assert fetched.crossing_count == 0
    found = group_traffic(partitions, consumers, "roundrobin").leader
    assert (found.crossing_bytes, cost_of(found.crossing_bytes)) == (None, None)
    assert found.unknown_count > 0


def test_a_gib_that_crosses_costs_the_price() -> None:
    assert cost_of(3 * 2**30) == pytest.approx(0.06)
    assert cost_of(2**30, 0.01) == pytest.approx(0.01)
    assert NOTHING.plus(NOTHING) == NOTHING


def test_partitions_that_are_not_all_listed_and_too_many_racks_are_refused() -> None:
    def view(ids: list[int], racks: int = 1) -> ClusterView:
        return ClusterView.build(
            name="c",
            source="made",
            format="made",
            brokers=tuple(BrokerView(id=BrokerId(one), rack=f"r{one:02d}") for one in range(racks)),
            topics=(TopicView("t"),),
            partitions=PartitionTable(topic_index=[0] * len(ids), partition_ids=ids, replicas=[[0]] * len(ids)),
        )

    with pytest.raises(UsageError, match="partition 1 of topic 't' of cluster 'c' is not listed"):
        ZonedPartitions.of(view([0, 2]))
    with pytest.raises(UsageError, match="cluster 'c' has 63 racks; traffic is known up to 62"):
        ZonedPartitions.of(view([0], racks=63))
    with pytest.raises(UsageError, match="bytes of 2 of 1 partitions"):
        ZonedPartitions.of(view([0]), np.array([1, 2]))
    assert even_shares(4).tolist() == [0.25] * 4
    assert ZonedPartitions.of(view([0], racks=62)).readable.tolist() == [1]


def test_sampled_groups_are_the_same_for_the_same_seed_and_number() -> None:
    partitions = ZonedPartitions.of(cluster(3))
    plan = GroupPlan(5, 4, 2)
    groups = dict(sample_groups(partitions, plan, seed=7))
    assert dict(sample_groups(partitions, GroupPlan(3, 4, 2), seed=7)).items() <= groups.items()
    assert groups != dict(sample_groups(partitions, plan, seed=8))
    for members in groups.values():
        assert len({member.topics for member in members}) == 1
        assert len(members[0].topics) == min(2, len(partitions.topics))
        assert {member.rack for member in members} == set(partitions.zones)
    with pytest.raises(UsageError, match="0 members on 2 topics"):
        GroupPlan(1, 0, 2)
