"""Notes on a plan: which partitions wait, by name."""

from __future__ import annotations

import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.planning.goal import Goal, PlanRefusedError
from placement.planning.notes import notes_of
from placement.planning.plan import make_plan

BLOCKED = "cannot complete before a replica is back in sync or a broker is unfenced: "


def led_by_nobody(count: int) -> ClusterView:
    """Return `count` partitions on broker 1, which is fenced, and as many on broker 2, which leads them."""
    rows = [[1]] * count + [[2]] * count
    return ClusterView.build(
        name="n",
        source="s",
        format="f",
        brokers=[BrokerView(id=BrokerId(each), fenced=each == 1) for each in (1, 2, 3)],
        topics=[TopicView("gone"), TopicView("led")],
        partitions=PartitionTable(
            topic_index=[0] * count + [1] * count,
            partition_ids=[*range(count), *range(count)],
            replicas=rows,
            leader=[-1] * count + [2] * count,
            isr=rows,
        ),
    )


@pytest.mark.parametrize(
    ("count", "named"),
    [
        (1, "1 partition (gone-0)"),
        (5, "5 partitions (gone-0, gone-1, gone-2, gone-3, gone-4)"),
        (7, "7 partitions (gone-0, gone-1, gone-2, gone-3, gone-4 and 2 more)"),
    ],
)
def test_a_factor_that_partitions_cannot_come_to_is_refused(count: int, named: str) -> None:
    with pytest.raises(PlanRefusedError) as refused:
        make_plan(led_by_nobody(count), Goal(kind="factor", factor=2))
    assert str(refused.value) == (
        f"{named} would not come to 2 replicas: gone-0 has no leader to copy from; bring one back, or exclude the topic"
    )


def test_partitions_that_older_releases_keep_waiting_are_named() -> None:
    """The second replica of orders-1 stays, out of sync: before 4.3 the row waits for it."""
    view = ClusterView.build(
        name="n",
        source="s",
        format="f",
        brokers=[BrokerView(id=BrokerId(each)) for each in (1, 2, 3)],
        topics=[TopicView("orders")],
        partitions=PartitionTable(
            topic_index=[0, 0],
            partition_ids=[0, 1],
            replicas=[[2, 3], [1, 2]],
            leader=[2, 1],
            isr=[[2, 3], [1, -1]],
        ),
    )
    notes = notes_of(make_plan(view, Goal(remove=(1,))))
    assert [one for one in notes if "KAFKA-19975" in one or BLOCKED in one]
    assert all("orders-1" in one for one in notes if "KAFKA-19975" in one or BLOCKED in one)
