"""Any cluster, printed in a format that can carry it, is read back equal."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster import BrokerView, ClusterView, Int32Array, PartitionTable, TopicView
from broker.ids import BrokerId
from placement.formats.reassign import write_reassignment
from placement.spec import Assignment
from tests.placement.formats.samples import describe_text, kcat_text, parse, rows

NAMES = st.lists(st.text("abzAZ09._-", min_size=3, max_size=20), min_size=1, max_size=5, unique=True)


def padded(lists: list[list[int]]) -> Int32Array:
    matrix = np.full((len(lists), max(map(len, lists))), -1, dtype=np.int32)
    for row, ids in enumerate(lists):
        matrix[row, : len(ids)] = ids
    return matrix


@st.composite
def clusters(draw: st.DrawFn) -> ClusterView:
    """Clusters of up to five topics; replicas, ISR, ELR and leaders that Kafka could print."""
    names = draw(NAMES)
    brokers = draw(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=8, unique=True))
    columns: dict[str, list[list[int]]] = {"replicas": [], "isr": [], "elr": []}
    topic_index, partition_ids, leaders, topics = [], [], [], []
    for number, name in enumerate(names):
        count = draw(st.integers(1, 4))
        for partition in range(count):
            replicas = draw(st.lists(st.sampled_from(brokers), min_size=1, unique=True))
            isr = draw(st.lists(st.sampled_from(replicas), unique=True))
            columns["replicas"].append(replicas)
            columns["isr"].append(isr)
            columns["elr"].append([broker for broker in replicas if broker not in isr][:1])
            leaders.append(draw(st.sampled_from([-1, *isr])))
            topic_index.append(number)
            partition_ids.append(partition)
        minimum = draw(st.integers(1, 3))
        configs = (
            ("min.insync.replicas", str(minimum)),
            ("cleanup.policy", "compact,delete"),
            ("x.json", '{"a":1,"b":[]}'),
        )
        topics.append(
            TopicView(name, count, len(columns["replicas"][-count]), minimum, "Ab12cdEFghIJklMNopQRst", configs)
        )
    return ClusterView.build(
        name="dump",
        source="dump",
        format="example",
        brokers=[BrokerView(id=BrokerId(broker), host=f"b{broker}:9092") for broker in brokers],
        topics=tuple(topics),
        partitions=PartitionTable(
            topic_index=topic_index,
            partition_ids=partition_ids,
            leader=leaders,
            **{name: padded(lists) for name, lists in columns.items()},
        ),
    )


def known(view: ClusterView, *names: str) -> list[tuple[object, ...]]:
    return [
        (topic, partition, leader, [lists[name] for name in names]) for topic, partition, leader, lists in rows(view)
    ]


@given(clusters())
def test_a_describe_is_read_back(view: ClusterView) -> None:
    dump = parse(describe_text(view))
    assert dump.rejects == ()
    assert dump.clusters[0].topics == view.topics
    assert known(dump.clusters[0], "replicas", "isr", "elr") == known(view, "replicas", "isr", "elr")


@given(clusters())
def test_kcats_metadata_is_read_back(view: ClusterView) -> None:
    dump = parse(kcat_text(view))
    assert dump.rejects == ()
    assert dump.clusters[0].brokers == view.brokers
    assert known(dump.clusters[0], "replicas", "isr") == known(view, "replicas", "isr")


@given(clusters())
def test_a_reassignment_is_read_back(view: ClusterView) -> None:
    table = view.partitions
    names = tuple(topic.name for topic in view.topics)
    dump = parse(write_reassignment(Assignment(names, table.topic_index, table.partition_ids, table.replicas)))
    assert dump.rejects == ()
    got = [(topic, partition, lists["replicas"]) for topic, partition, _, lists in rows(dump.clusters[0])]
    want = [(topic, partition, lists["replicas"]) for topic, partition, _, lists in rows(view)]
    assert got == sorted(want)
