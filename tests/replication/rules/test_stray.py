"""Which logs on a disk belong to nothing any more."""

from __future__ import annotations

import pytest

from broker.ids import BrokerId
from replication.rules.partition import PartitionState
from replication.rules.stray import StoredReplica, is_stray
from replication.rules.switches import CURRENT, without

ONE, TWO = BrokerId(1), BrokerId(2)
TOPICS = {1: "a", 3: "b"}
PARTITIONS = {
    1: PartitionState(replicas=(ONE,), isr=(ONE,), leader=ONE),
    3: PartitionState(replicas=(TWO,), isr=(TWO,), leader=TWO),
}


@pytest.mark.parametrize(
    ("stored", "by_id", "by_name"),
    [
        (StoredReplica("a", 1), False, False),
        (StoredReplica("a", 0), True, False),
        (StoredReplica("b", 3), True, True),
        (StoredReplica("c", 9), True, True),
    ],
    ids=["its own", "made anew", "moved away", "deleted"],
)
def test_a_log_is_a_stray_by_the_id_of_its_topic(stored: StoredReplica, by_id: bool, by_name: bool) -> None:
    assert is_stray(stored, ONE, TOPICS, PARTITIONS, CURRENT) is by_id
    assert is_stray(stored, ONE, TOPICS, PARTITIONS, without(CURRENT, "topic_id_check")) is by_name
