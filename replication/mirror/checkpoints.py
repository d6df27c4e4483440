"""Decide which checkpoints MirrorMaker emits and which group offsets it sets on the target.

Constraints: a checkpoint goes forward on the target, or follows a group that went back on the source. A group's offsets
on the target are set only while the group is idle there, and never back.

Source: Kafka connect-mirror MirrorCheckpointTask.checkpointsForGroup, checkpointIsMoreRecent, syncGroupOffset and
CheckpointStore, 4.3.1, compared with 3.9.1 and 4.1.0; KIP-382, KIP-545, KAFKA-15905.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.ids import Offset, TopicPartition
from replication.mirror.records import Checkpoint
from replication.mirror.syncs import SyncStore


class CheckpointStore:
    """Hold the last checkpoint of each group and partition of the target."""

    def __init__(self) -> None:
        self._last: dict[str, dict[TopicPartition, Checkpoint]] = {}

    def add(self, checkpoint: Checkpoint) -> None:
        """Add an emitted checkpoint."""
        self._last.setdefault(checkpoint.group, {})[checkpoint.target_partition] = checkpoint

    def is_due(self, checkpoint: Checkpoint) -> bool:
        """Return whether a checkpoint is emitted, given the last one of its group and partition."""
        last = self._last.get(checkpoint.group, {}).get(checkpoint.target_partition)
        return last is None or checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream

    def offsets_to_set(self, group: str, present: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """Return the offsets to set for an idle group, which is at `present` on the target, sorted by partition."""
        last = sorted(self._last.get(group, {}).items())
        return {each: one.downstream for each, one in last if present.get(each, Offset(-1)) < one.downstream}


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
        if partition in renamed and downstream is not None and downstream >= 0:
            found.append(Checkpoint(group, renamed[partition], upstream, downstream))
    return tuple(checkpoint for checkpoint in found if store.is_due(checkpoint))
