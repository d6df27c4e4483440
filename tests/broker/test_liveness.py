"""What one moment of a cluster shows of its brokers: each kind of evidence, alone and against the others."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.liveness import Liveness

ALIVE, STATED_DOWN, FENCED, STOPPING, UNREGISTERED, OFFLINE, ISR_UNLED, IN_NO_ISR = Liveness
REPLICAS = [[1, 2], [2, 3], [3, 1]]
FULL = [[1, 2], [2, 3], [3, 1]]
WITHOUT_3 = [[1, 2], [2, -1], [1, -1]]
CASES: dict[str, tuple[dict[str, Any], dict[int, Liveness]]] = {
    "no ISR is shown": ({}, {}),
    "all are in sync": ({"isr": FULL, "leader": [1, 2, 3]}, {}),
    "3 is in no ISR": ({"isr": WITHOUT_3, "leader": [1, 2, 1]}, {3: IN_NO_ISR}),
    "leaders are not shown": ({"isr": WITHOUT_3}, {3: IN_NO_ISR}),
    "a row does not show its leader": ({"isr": WITHOUT_3, "leader": [1, -2, 1]}, {3: IN_NO_ISR}),
    "3 is in one ISR": ({"isr": [[1, 2], [2, 3], [1, -1]], "leader": [1, 2, 1]}, {}),
    "3 is in the ISR of a partition without a leader": (
        {"isr": [[1, 2], [2, -1], [3, -1]], "leader": [1, 2, -1]},
        {3: ISR_UNLED},
    ),
    "3 is not in sync with a partition that nobody leads": (
        {"isr": [[1, 2], [2, -1], [1, -1]], "leader": [1, -1, -1]},
        {},
    ),
    "3 would be elected if it were alive": (
        {"isr": [[1, 2], [2, -1], [-1, -1]], "elr": [[-1], [-1], [3]], "leader": [1, 2, -1]},
        {3: IN_NO_ISR},
    ),
    "3 leads, whatever the ISR says": ({"isr": WITHOUT_3, "leader": [1, 3, 1]}, {}),
    "a led partition shows an empty ISR": ({"isr": [[1, 2], [2, -1], [-1, -1]], "leader": [1, 2, 1]}, {}),
    "3 is only being added": (
        {"isr": WITHOUT_3, "leader": [1, 2, 1], "adding": [[-1], [3], [3]]},
        {},
    ),
    "3 only observes": ({"isr": WITHOUT_3, "leader": [1, 2, 1], "observers": [[-1], [3], [3]]}, {}),
    "3 observes one and lags in the other": (
        {"isr": WITHOUT_3, "leader": [1, 2, 1], "observers": [[-1], [3], [-1]]},
        {3: IN_NO_ISR},
    ),
    "every replica of 3 is offline": (
        {"isr": WITHOUT_3, "leader": [1, 2, 1], "offline": [[-1], [3], [3]]},
        {3: OFFLINE},
    ),
    "every replica of 3 is offline and no ISR is shown": ({"offline": [[-1], [3], [3]]}, {3: OFFLINE}),
    "one replica of 3 is offline": ({"isr": FULL, "leader": [1, 2, 3], "offline": [[-1], [3], [-1]]}, {}),
    "offline lists a broker that does not hold the partition": ({"offline": [[3], [-1], [3]]}, {}),
}


def view(brokers: tuple[BrokerView, ...] = (), **columns: Any) -> ClusterView:
    table = PartitionTable(topic_index=[0] * 3, partition_ids=range(3), replicas=REPLICAS, **columns)
    return ClusterView.build(
        name="n", source="s", format="f", brokers=brokers, partitions=table, topics=(TopicView("t"),)
    )


@pytest.mark.parametrize("name", CASES)
def test_evidence_decides(name: str) -> None:
    columns, down = CASES[name]
    found = view(**columns)
    assert found.liveness == tuple(down.get(number, ALIVE) for number in (1, 2, 3))
    assert found.alive.tolist() == [number not in down for number in (1, 2, 3)]
    assert found.seen_down == down


@pytest.mark.parametrize(
    ("state", "expected"),
    [({"fenced": True}, FENCED), ({"in_controlled_shutdown": True}, STOPPING), ({"cordoned": True}, ALIVE)],
)
def test_the_registration_comes_before_the_partitions(state: dict[str, bool], expected: Liveness) -> None:
    found = view((BrokerView(id=BrokerId(1), **state), BrokerView(id=BrokerId(9))), isr=FULL, leader=[1, 2, 3])
    assert found.liveness == (expected, ALIVE, ALIVE, ALIVE)
    assert found.down == ({} if expected is ALIVE else {1: expected})
    assert found.seen_down == {}


@pytest.mark.parametrize("stated", [ALIVE, STATED_DOWN, UNREGISTERED])
@pytest.mark.parametrize("fenced", [False, True])
def test_what_is_stated_comes_before_registration_and_partitions(stated: Liveness, fenced: bool) -> None:
    dead = {"isr": WITHOUT_3, "leader": [1, 2, 1], "offline": [[-1], [3], [3]]}
    for columns in (dead, {"isr": FULL, "leader": [1, 2, 3]}):
        found = view((BrokerView(id=BrokerId(3), fenced=fenced),), **columns).with_stated({BrokerId(3): stated})
        assert found.liveness == (ALIVE, ALIVE, stated)
        assert found.down == ({} if stated is ALIVE else {3: stated})


def test_a_broker_that_is_not_there_cannot_be_stated() -> None:
    with pytest.raises(UsageError, match=r"^broker 7 is not in cluster n; its brokers are 1, 2, 3$"):
        view().with_stated({BrokerId(7): ALIVE})


def test_a_broker_that_holds_nothing_is_alive_and_one_without_partitions_too() -> None:
    assert view((BrokerView(id=BrokerId(9)),), isr=WITHOUT_3, leader=[1, 2, 1]).liveness[-1] is ALIVE
    empty = ClusterView.build(
        name="n", source="s", format="f", brokers=[BrokerView(id=BrokerId(1))], partitions=PartitionTable.empty()
    )
    assert empty.liveness == (ALIVE,)
