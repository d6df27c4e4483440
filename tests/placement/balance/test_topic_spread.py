"""Each topic is held against the best spread of it that trying every placement finds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.balance.reachable import Classes, Groups
from placement.balance.topic_spread import Best, TopicClasses, topic_spread
from tests.oracles.reachable import Case, best_leaders, best_replicas, choices, least_leader_moves, least_moves


def view_of(case: Case, topics: list[int], **columns: Any) -> ClusterView:
    """A view of the partitions of `case`, each of the topic of that number; the least live replica leads."""
    width = max(map(len, case.partitions))
    led = [min((b for b in held if not case.fenced[b]), default=-1) for held in case.partitions]
    table = {
        "topic_index": topics,
        "partition_ids": range(len(topics)),
        "replicas": [sorted(held) + [-1] * (width - len(held)) for held in case.partitions],
        "leader": led,
    }
    return ClusterView(
        name="c",
        source="test",
        format="test",
        brokers=tuple(
            BrokerView(id=BrokerId(place), rack=rack, fenced=fenced, cordoned=place in case.cordoned)
            for place, (rack, fenced) in enumerate(zip(case.racks, case.fenced, strict=True))
        ),
        topics=tuple(TopicView(f"t{number}") for number in range(max(topics, default=-1) + 2)),
        partitions=PartitionTable(**(table | columns)),
    )


def of_racks(racks: str, rows: list[list[int]], fenced: tuple[int, ...] = ()) -> Case:
    return Case(tuple(racks), tuple(b in fenced for b in range(len(racks))), tuple(map(frozenset, rows)))


def figures(view: ClusterView, topic: int = 0) -> tuple[list[Any], list[Any]]:
    """Most on one broker, the same at best, moves and whether they are enough: of replicas, and of leaders."""
    found = topic_spread(view)
    names = ("max", "best_max", "moves", "moves_exact")
    replicas, led = (
        [getattr(found, f"{kind}_{name}")[topic].item() for name in names] for kind in ("replica", "leader")
    )
    return replicas, led


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, list[int]]:
    count = draw(st.integers(1, 5))
    racks = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=count, max_size=count))
    fenced = draw(st.lists(st.sampled_from([False, False, False, True]), min_size=count, max_size=count))
    held = st.frozensets(st.integers(0, count - 1), min_size=1, max_size=min(count, 4))
    partitions = draw(st.lists(held, min_size=1, max_size=6))
    topics = draw(st.lists(st.integers(0, 1), min_size=len(partitions), max_size=len(partitions)))
    return Case(tuple(racks), tuple(fenced), tuple(partitions)), topics


@settings(max_examples=30, deadline=None)
@given(drawn=cases())
def test_the_best_of_a_topic_is_that_of_every_placement(drawn: tuple[Case, list[int]]) -> None:
    case, topics = drawn
    view = view_of(case, topics)
    for topic in range(len(view.topics)):
        mine = [held for held, place in zip(case.partitions, topics, strict=True) if place == topic]
        check(attrs.evolve(case, partitions=tuple(mine)), *figures(view, topic))


def check(case: Case, replicas: list[Any], led: list[Any]) -> None:
    """Compare the figures of one topic with brute force."""
    shares = [sum(broker in held for held in case.partitions) for broker in case.live]
    first = Counter(min((b for b in held if not case.fenced[b]), default=-1) for held in case.partitions)
    leads = [first[broker] for broker in case.live]
    for found, held, best in ((replicas, shares, best_replicas(case)), (led, leads, best_leaders(case))):
        assert found[:2] == [max(held, default=0), max(best, default=0)]
        gained = sum(n * n for n in held) > sum(n * n for n in best)
        assert (found[2] > 0) == gained
        assert gained or found[3]
    # Where the rule is broken now, mending it may take more moves than the best spread does.
    kept = all(is_ruled(case, held) for held in case.partitions)
    if replicas[2]:
        least = least_moves(case, tuple(best_replicas(case)))
        assert replicas[2] == least if replicas[3] and kept else replicas[2] <= least
    if led[2]:
        least = least_leader_moves(case)
        assert led[2] == least if led[3] and kept else led[2] <= least


def is_ruled(case: Case, held: frozenset[int]) -> bool:
    return tuple(sorted(b for b in held if not case.fenced[b])) in set(choices(case, held))


def test_the_worked_example_holds() -> None:
    found = topic_spread(view_of(of_racks("abc", [[0], [0], [1]]), [0, 0, 0]))
    assert found.leader_max is not None
    assert found.leader_best_max is not None
    assert found.leader_moves is not None
    assert (found.leader_max[0], found.leader_best_max[0], found.leader_moves[0]) == (2, 1, 1)
    assert (found.broker_count.tolist(), found.partition_count.tolist()) == ([2, 0], [3, 0])


def test_a_move_that_may_need_another_is_a_lower_bound() -> None:
    inside = of_racks("aabb", [[0, 2], [0, 3], [0, 2], [1, 3], [0, 2], [0, 3]])
    assert figures(view_of(inside, [0] * 6))[0] == [5, 3, 2, True]
    between = of_racks("aabbcc", [[0, 2], [1, 3], [0, 3], [1, 2]])
    assert figures(view_of(between, [0] * 4))[0][3] is False


def test_a_cordoned_broker_takes_nothing_of_a_topic_but_gives() -> None:
    """Broker 2 holds one of six and keeps it; what it does not hold is not expected of it."""
    case = of_racks("abc", [[0], [0], [0], [0], [1], [2]])
    assert figures(view_of(attrs.evolve(case, cordoned=frozenset({2})), [0] * 6))[0] == [4, 3, 1, False]
    assert figures(view_of(case, [0] * 6))[0] == [4, 2, 2, True]


def test_without_leaders_there_are_no_leader_figures() -> None:
    found = topic_spread(view_of(of_racks("ab", [[0, 1]]), [0], leader=None))
    assert (found.leader_max, found.leader_best_max, found.leader_moves, found.leader_moves_exact) == (None,) * 4
    assert (found.size_bytes, found.replication_factor.tolist()) == (None, [2, 0])


def test_where_no_broker_is_live_nothing_moves() -> None:
    replicas, led = figures(view_of(of_racks("ab", [[0, 1]], fenced=(0, 1)), [0]))
    assert (replicas, led) == ([0, 0, 0, True], [0, 0, 0, True])


def test_whole_topics_have_the_classes_of_their_partitions() -> None:
    """Topics of one factor each, all led: their best spreads are those that each partition by itself gives."""
    groups = Groups.make(np.array([0, 0, 0, 1], dtype=np.int32), np.zeros(4, dtype=np.bool_))
    factors, counts = np.array([2, 1, 3]), np.array([5, 1, 9], dtype=np.int32)
    whole = TopicClasses.of_topics(Classes.of_factors(factors, counts, groups), counts)
    each = Classes.of_factors(np.repeat(factors, counts), np.ones(counts.sum(), dtype=np.int64), groups)
    parts = TopicClasses.of_rows(each, np.cumsum(counts), np.ones(counts.sum(), dtype=np.bool_))
    one, other = (Best.of(groups, topics, "replicas") for topics in (whole, parts))
    assert one.levels[one.key_of].tolist() == other.levels[other.key_of].tolist()
    assert one.kinds[one.key_of].tolist() == other.kinds[other.key_of].tolist()
