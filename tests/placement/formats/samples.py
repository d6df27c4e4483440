"""Texts and values that several tests of the formats share: renderers, real files, comparison."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from broker.cluster import MATRIX_COLUMNS, ClusterView, Int32Array
from placement.formats.parsed import ParsedDump
from placement.formats.read import read_dump

REAL_DATA = Path(__file__).parents[2] / "real_data"
PRINTED = Path(__file__).parent / "printed"

PartitionValues = tuple[str, int, int | None, dict[str, tuple[int, ...]]]

HEADER = (
    "Topic: orders\tTopicId: Ab12cdEFghIJklMNopQRst\tPartitionCount: 2\tReplicationFactor: 3"
    "\tConfigs: min.insync.replicas=2,cleanup.policy=compact,delete\n"
)
ROW_0 = "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,3\tElr: 2\tLastKnownElr: \n"
ROW_1 = "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3,1\tIsr: \tElr: N/A\tLastKnownElr: N/A\n"


def parse(
    text: str | bytes,
    *,
    name: str | None = None,
    format: str | None = None,  # noqa: A002 - read_dump's word.
) -> ParsedDump:
    """Return what `text` describes, read as one chunk from the source "dump"."""
    data = text.encode() if isinstance(text, str) else text
    return read_dump([data], source="dump", name=name, format=format)


def rows(view: ClusterView) -> list[PartitionValues]:
    """Return each partition as plain values: topic, partition, leader, then every known list by name."""
    table = view.partitions
    out: list[PartitionValues] = []
    for row in range(table.count):
        lists = {
            name: tuple(broker for broker in getattr(table, name)[row].tolist() if broker >= 0)
            for name in MATRIX_COLUMNS
            if getattr(table, name) is not None
        }
        leader = None if table.leader is None else int(table.leader[row])
        out.append((view.topics[table.topic_index[row]].name, int(table.partition_ids[row]), leader, lists))
    return out


def describe_text(view: ClusterView) -> str:
    """Return `view` as kafka-topics --describe of Kafka 4 prints it."""
    table = view.partitions
    lines = []
    for number, topic in enumerate(view.topics):
        configs = ",".join(f"{name}={value}" for name, value in topic.configs)
        lines.append(
            f"Topic: {topic.name}\tTopicId: {topic.topic_id}\tPartitionCount: {topic.partition_count}"
            f"\tReplicationFactor: {topic.replication_factor}\tConfigs: {configs}"
        )
        for row in np.flatnonzero(table.topic_index == number).tolist():
            assert table.leader is not None
            assert table.isr is not None
            assert table.elr is not None
            leader = int(table.leader[row])
            lines.append(
                f"\tTopic: {topic.name}\tPartition: {table.partition_ids[row]}"
                f"\tLeader: {'none' if leader < 0 else leader}"
                f"\tReplicas: {_ids(table.replicas[row])}\tIsr: {_ids(table.isr[row])}"
                f"\tElr: {_ids(table.elr[row])}\tLastKnownElr: "
            )
    return "\n".join(lines) + "\n"


def kcat_text(view: ClusterView) -> str:
    """Return `view` as kcat -L -J prints it."""
    topics = []
    for number, topic in enumerate(view.topics):
        partitions = [
            {
                "partition": partition,
                "leader": leader,
                "replicas": [{"id": broker} for broker in lists["replicas"]],
                "isrs": [{"id": broker} for broker in lists["isr"]],
            }
            for name, partition, leader, lists in rows(view)
            if name == view.topics[number].name
        ]
        topics.append({"topic": topic.name, "partitions": partitions})
    brokers = [{"id": broker.id, "name": broker.host} for broker in view.brokers]
    return json.dumps({"controllerid": 1, "query": {"topic": "*"}, "brokers": brokers, "topics": topics})


def _ids(row: Int32Array) -> str:
    return ",".join(str(broker) for broker in row.tolist() if broker >= 0)
