"""Decide which checkpoints MirrorMaker emits and which group offsets it sets on the target.

Constraints: a checkpoint goes forward on the target, or follows a group that went back on the source. A group's offsets
on the target are set only while the group is idle there, and never back.

Source: Kafka connect-mirror MirrorCheckpointTask.checkpointsForGroup, checkpointIsMoreRecent, syncGroupOffset and
CheckpointStore, 4.3.1, compared with 3.9.1 and 4.1.0; KIP-382, KIP-545, KAFKA-15905.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.ids import Offset, TopicPartition
from replication.mirror.policy import DefaultPolicy
from replication.mirror.records import Checkpoint
from replication.mirror.sync_store import SyncStore


def target_partition(policy: DefaultPolicy, source: str, target: str, partition: TopicPartition) -> TopicPartition:
    """Return the target partition of a source partition; a topic copied from the target gets its old name."""
    if policy.topic_source(partition.topic) == target:
        return TopicPartition(policy.original_topic(partition.topic), partition.partition)
    return TopicPartition(policy.remote_topic(source, partition.topic), partition.partition)


def is_more_recent(checkpoint: Checkpoint, last: Checkpoint | None) -> bool:
    """Return whether a checkpoint is emitted, given the last one of its group and partition."""
    if last is None or checkpoint.upstream < last.upstream:
        return True
    return checkpoint.downstream > last.downstream


class CheckpointStore:
    """Hold the last checkpoint of each group and partition."""

    def __init__(self) -> None:
        self._last: dict[str, dict[TopicPartition, Checkpoint]] = {}

    def add(self, checkpoint: Checkpoint) -> None:
        """Add an emitted checkpoint."""
        self._last.setdefault(checkpoint.group, {})[checkpoint.target_partition] = checkpoint

    def last(self, group: str, partition: TopicPartition) -> Checkpoint | None:
        """Return the last checkpoint of a group for a partition of the target."""
        return self._last.get(group, {}).get(partition)

    def offsets(self, group: str) -> dict[TopicPartition, Offset]:
        """Return a group's offsets on the target, by partition of the target, sorted."""
        return {each: last.downstream for each, last in sorted(self._last.get(group, {}).items())}


def offsets_to_set(
    wanted: Mapping[TopicPartition, Offset], present: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Offset]:
    """Return which `wanted` offsets of an idle group to set on the target, where it is at `present`."""
    return {
        partition: offset
        for partition, offset in wanted.items()
        if partition not in present or present[partition] < offset
    }


def new_checkpoints(
    group: str,
    committed: Mapping[TopicPartition, Offset],
    syncs: SyncStore,
    store: CheckpointStore,
    renamed: Mapping[TopicPartition, TopicPartition],
) -> tuple[Checkpoint, ...]:
    """Return the checkpoints to emit for a group at `committed`; `renamed` maps to the target's partitions."""
    found = []
    for partition, upstream in sorted(committed.items()):
        downstream = syncs.translate(partition, upstream)
        if partition not in renamed or downstream is None or downstream < 0:
            continue
        checkpoint = Checkpoint(group, renamed[partition], upstream, downstream)
        if is_more_recent(checkpoint, store.last(group, renamed[partition])):
            found.append(checkpoint)
    return tuple(found)
