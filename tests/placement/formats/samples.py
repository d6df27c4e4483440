"""Texts and values that several tests of the formats share: renderers, real files, comparison."""

from __future__ import annotations

from pathlib import Path

from broker.cluster import MATRIX_COLUMNS, ClusterView
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
