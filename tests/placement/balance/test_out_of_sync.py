"""Which brokers are missing from ISRs, and which explain the under-replicated partitions."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.clusters import Clusters
from broker.ids import BrokerId
from placement.balance.audit import partition_states
from placement.balance.out_of_sync import EXPLAINED_MIN, OutOfSync, explained, out_of_sync

Lists = list[list[int]]


def matrix(lists: Lists) -> np.ndarray:
    width = max(map(len, lists), default=0)
    return np.array([row + [-1] * (width - len(row)) for row in lists], dtype=np.int32).reshape(len(lists), width)


def view(replicas: Lists, isr: Lists | None, *, racks: str = "", **columns: Lists) -> ClusterView:
    count = max((broker for row in replicas for broker in row), default=0)
    brokers = [BrokerView(id=BrokerId(1 + place), rack=racks[place] if racks else None) for place in range(count)]
    table = PartitionTable(
        topic_index=np.zeros(len(replicas)),
        partition_ids=np.arange(len(replicas)),
        replicas=matrix(replicas),
        isr=None if isr is None else matrix(isr),
        **{name: matrix(lists) for name, lists in columns.items()},
    )
    return ClusterView.build(
        name="c", source="s", format="f", brokers=brokers, topics=(TopicView("t"),), partitions=table
    )


def found(shown: ClusterView) -> OutOfSync:
    result = out_of_sync(shown, partition_states(shown).under_replicated)
    assert result is not None
    return result


def explaining(shown: ClusterView) -> tuple[tuple[int, ...], int]:
    result = explained(Clusters.of_view(shown), partition_states(shown).under_replicated)
    assert result is not None
    ((brokers, count),) = result
    return tuple(brokers), count


def test_a_rack_that_explains_is_named_whole_rather_than_the_heads_of_several() -> None:
    replicas = [[1, 3], [1, 4], [2, 3], [2, 4], [1, 3]]
    assert explaining(view(replicas, [[row[0]] for row in replicas], racks="aabb")) == ((3, 4), 5)


def test_replicas_on_their_way_and_observers_are_not_missing() -> None:
    shown = view([[1, 2, 3], [1, 2, 3]], [[1, 2], [1]], adding=[[3], []], observers=[[], [3]])
    result = found(shown)
    assert result.missing.tolist() == [[-1, -1, -1], [-1, 2, -1]]
    assert (explaining(shown)[0], result.counts.tolist()) == ((2,), [0, 1, 0])


def test_what_the_view_does_not_show_is_unknown() -> None:
    assert out_of_sync(view([[1, 2]], None), None) is None


PARTITIONS = st.lists(
    st.permutations(range(1, 6)).flatmap(
        lambda ids: st.integers(1, 4).flatmap(
            lambda width: st.tuples(
                st.just(list(ids[:width])), st.sets(st.sampled_from(ids[:width])).map(lambda chosen: sorted(chosen))
            )
        )
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=30)
@given(PARTITIONS)
def test_as_a_plain_loop_counts_it(partitions: list[tuple[list[int], list[int]]]) -> None:
    shown = view([row for row, _ in partitions], [isr for _, isr in partitions])
    result = found(shown)
    lacking = [set(row) - set(isr) for row, isr in partitions]
    counts = [sum(broker.id in lack for lack in lacking) for broker in shown.brokers]
    assert result.counts.tolist() == counts
    short = [lack for lack in lacking if lack]
    brokers, count = explaining(shown)
    assert count == sum(lack <= set(brokers) for lack in short)
    assert not short or count >= EXPLAINED_MIN * len(short)
    # Fewer of those that are missing most do not explain as many.
    ids = [broker.id for broker in shown.brokers]
    ordered = sorted((n for n in ids if counts[ids.index(n)]), key=lambda n: (-counts[ids.index(n)], n))
    assert brokers == tuple(ordered[: len(brokers)])
    shorter = set(brokers[:-1])
    assert not short or sum(lack <= shorter for lack in short) < EXPLAINED_MIN * len(short)
