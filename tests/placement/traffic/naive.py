"""The same counts with a loop over partitions, and clusters to count on."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.consumer.group import Member

ZONES = ("a", "b", "c")


def cluster(seed: int, *, racks: bool = True, sized: bool = True, zones: Sequence[str] = ZONES) -> ClusterView:
    """A cluster with replicas anywhere, an ISR that lacks some, leaderless partitions, and a broker without a rack."""
    rng = random.Random(seed)
    brokers = [BrokerView(id=BrokerId(3 * one + 1), rack=rng.choice(zones)) for one in range(rng.randint(3, 8))]
    if racks is False:
        brokers.append(BrokerView(id=BrokerId(99)))
    ids = [int(broker.id) for broker in brokers]
    topics, numbers, replicas, isr, leader, sizes = [], [], [], [], [], []
    for topic in range(rng.randint(1, 4)):
        for number in range(rng.randint(1, 7)):
            row = rng.sample(ids, rng.randint(1, 3))
            synced = [one for one in row if rng.random() < 0.8]
            topics.append(topic)
            numbers.append(number)
            replicas.append(row + [-1] * (3 - len(row)))
            isr.append(synced + [-1] * (3 - len(synced)))
            leader.append(rng.choice(synced) if synced else -1)
            sizes.append([rng.randint(0, 5) * 1000] * 3)
    order = list(range(len(topics)))
    rng.shuffle(order)

    def mixed(column: list[Any]) -> list[Any]:
        return [column[place] for place in order]

    return ClusterView.build(
        name="c",
        source="made",
        format="made",
        brokers=tuple(brokers),
        topics=tuple(TopicView(f"t{one}") for one in range(max(topics) + 1)),
        partitions=PartitionTable(
            topic_index=mixed(topics),
            partition_ids=mixed(numbers),
            replicas=mixed(replicas),
            isr=mixed(isr),
            leader=mixed(leader),
            **({"size_bytes": mixed([row[0] for row in sizes])} if sized else {}),
        ),
    )


class Plain:
    """The partitions of a cluster as dicts, by topic and number."""

    def __init__(self, view: ClusterView) -> None:
        self.zone = {int(broker.id): broker.rack for broker in view.brokers}
        table = view.partitions
        assert table.leader is not None
        assert table.isr is not None
        self.rows = {}
        for place in range(table.count):
            key = (view.topics[int(table.topic_index[place])].name, int(table.partition_ids[place]))
            self.rows[key] = (
                [one for one in table.replicas[place].tolist() if one >= 0],
                [one for one in table.isr[place].tolist() if one >= 0],
                int(table.leader[place]),
                0 if table.size_bytes is None else int(table.size_bytes[place]),
            )

    def fetch(self, key: tuple[str, int], zone: str | None, *, closest: bool) -> str:
        """What a fetch from a zone is: none, unknown, inside or crosses."""
        replicas, isr, leader, _ = self.rows[key]
        if leader < 0:
            return "none"
        if zone is None or self.zone[leader] is None:
            return "unknown"
        near = {self.zone[leader]}
        if closest:
            near |= {self.zone[one] for one in isr if one in replicas}
        return "inside" if zone in near else "crosses"

    def replicated(self, key: tuple[str, int]) -> list[str]:
        replicas, _, leader, _ = self.rows[key]
        if leader < 0:
            return []
        found = []
        for one in replicas:
            if one != leader:
                ends = (self.zone[one], self.zone[leader])
                found.append("unknown" if None in ends else "inside" if ends[0] == ends[1] else "crosses")
        return found


def count(plain: Plain, found: Mapping[tuple[tuple[str, int], int], str]) -> tuple[float, float, float, float, float]:
    """Sums of (count, crossing, unknown, bytes, crossing bytes) of fetches by partition and reader."""
    kept = [(key, what) for (key, _), what in found.items() if what != "none"]
    crossing = [key for key, what in kept if what == "crosses"]
    return (
        len(kept),
        len(crossing),
        sum(what == "unknown" for _, what in kept),
        sum(plain.rows[key][3] for key, _ in kept),
        sum(plain.rows[key][3] for key in crossing),
    )


def least_by_trying(plain: Plain, members: Sequence[Member], keys: Sequence[tuple[str, int]]) -> tuple[int, int]:
    """The least partitions and bytes that cross, each by trying every assignment to members that subscribe."""
    best_count, best_bytes = None, None
    choices = [[place for place, member in enumerate(members) if key[0] in member.topics] for key in keys]
    for owners in itertools.product(*choices):
        crossing = [
            key
            for key, owner in zip(keys, owners, strict=True)
            if plain.fetch(key, members[owner].rack, closest=True) == "crosses"
        ]
        size = sum(plain.rows[key][3] for key in crossing)
        best_count = len(crossing) if best_count is None else min(best_count, len(crossing))
        best_bytes = size if best_bytes is None else min(best_bytes, size)
    assert best_count is not None
    assert best_bytes is not None
    return best_count, best_bytes
