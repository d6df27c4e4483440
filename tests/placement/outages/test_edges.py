"""Outages where factors, settings and lists differ from what most clusters show."""

from __future__ import annotations

import numpy as np
import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.outages.copysets import copysets
from placement.outages.fatal import fatal_sets
from placement.outages.lost import outage
from placement.outages.returning import controller_min_isr
from placement.planning.impact import under_min_isr


def view_of(rows: list[list[int]], *, topic: TopicView | None = None, **columns: object) -> ClusterView:
    width = max(map(len, rows))
    replicas = np.array([row + [-1] * (width - len(row)) for row in rows])
    given = {"leader": replicas[:, 0], "isr": replicas} | columns
    ids = sorted({each for row in rows for each in row})
    return ClusterView.build(
        name="c",
        source="inline",
        format="test",
        brokers=[BrokerView(id=BrokerId(each)) for each in ids],
        topics=(topic or TopicView("t", min_insync_replicas=1),),
        partitions=PartitionTable(
            topic_index=[0] * len(rows), partition_ids=range(len(rows)), replicas=replicas, **given
        ),
    )


def test_brokers_ask_for_no_more_in_sync_replicas_than_the_partition_has() -> None:
    view = view_of([[1, 2, 3], [1, 2]], topic=TopicView("t", min_insync_replicas=3))
    assert outage(view, []).counts.under_min_isr_count == 0
    flags = under_min_isr(view)
    assert flags is not None
    assert flags.tolist() == [False, False]


def test_the_controller_counts_the_replicas_of_partition_0() -> None:
    assert controller_min_isr(view_of([[1, 2, 3], [1, 2]], topic=TopicView("t", min_insync_replicas=3))).tolist() == [
        3,
        3,
    ]


@pytest.mark.parametrize(("told", "leaderless"), [("true", 0), ("TRUE", 0), ("false", 1)])
def test_an_unclean_election_is_allowed_however_it_is_written(told: str, leaderless: int) -> None:
    topic = TopicView("t", min_insync_replicas=1, configs=(("unclean.leader.election.enable", told),))
    view = view_of([[1, 2], [2]], topic=topic, isr=[[1, -1], [2, -1]])
    assert outage(view, [BrokerId(1)]).counts.leaderless_count == leaderless


def test_a_replica_in_an_offline_directory_does_not_lead() -> None:
    view = view_of([[1, 2]], offline=[[2]])
    assert outage(view, [BrokerId(1)]).counts.leaderless_count == 1


def test_the_fewest_copysets_are_rounded_up_at_each_broker_and_in_all() -> None:
    (found,) = copysets(view_of([[1, 2, 3], [1, 2, 4], [1, 3, 4], [2, 3, 4]]))
    assert (found.copyset_count, found.scatter_width_max) == (4, 3)
    assert found.copyset_count_min == 3  # Each broker is in two sets or more: 8 places, 3 a set.
    assert found.copyset_count_least_scatter == 2


def test_three_brokers_with_three_fatal_pairs_are_one_fatal_set() -> None:
    found = fatal_sets(view_of([[1, 2], [2, 3], [1, 3], [4, 5, 6]]))
    # {1, 2, 3}, each of its pairs with one of the other three, and {4, 5, 6}.
    assert [(each.size, each.fatal_count) for each in found.sizes] == [(1, 0), (2, 3), (3, 1 + 9 + 1)]
