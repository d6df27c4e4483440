"""Decide which checkpoints MirrorMaker emits and which group offsets it sets on the target.

Constraints: a checkpoint goes forward on the target, or follows a group that went back on the source. A group's offsets
on the target are set only while the group is idle there, and never back.

Source: Kafka connect-mirror MirrorCheckpointTask.checkpointsForGroup, checkpointIsMoreRecent, syncGroupOffset and
CheckpointStore, 4.3.1, compared with 3.9.1 and 4.1.0; KIP-382, KIP-545, KAFKA-15905.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from broker.ids import Offset, TopicPartition
from replication.mirror.records import Checkpoint
from replication.mirror.syncs import SyncStore


class CheckpointStore:
    """Hold the last checkpoint of each group and partition of the target."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, TopicPartition], Checkpoint] = {}

    def add(self, checkpoint: Checkpoint) -> bool:
        """Add a checkpoint if it is emitted, given the last one of its group and partition; return whether it is."""
        place = checkpoint.group, checkpoint.target_partition
        last = self._last.get(place)
        is_due = last is None or checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream
        if is_due:
            self._last[place] = checkpoint
        return is_due

    def emit(
        self,
        group: str,
        committed: Mapping[TopicPartition, Offset],
        syncs: SyncStore,
        renamed: Mapping[TopicPartition, TopicPartition],
    ) -> Iterator[Checkpoint]:
        """Yield and add the checkpoints of a group at `committed`; `renamed` maps to the target's partitions.

        They count as emitted before they are written, as in Kafka: they are written later, or the process dies.
        """
        for partition, upstream in sorted(committed.items()):
            downstream = syncs.translate(partition, upstream)
            if partition in renamed and downstream is not None and downstream >= 0:
                checkpoint = Checkpoint(group, renamed[partition], upstream, downstream)
                if self.add(checkpoint):
                    yield checkpoint

    def offsets_to_set(self, group: str, present: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """Return the offsets to set for an idle group, which is at `present` on the target."""
        last = {place: one.downstream for (of, place), one in self._last.items() if of == group}
        return {place: offset for place, offset in last.items() if present.get(place, Offset(-1)) < offset}
