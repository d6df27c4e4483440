"""What a run looked like over time: each state of each partition, each high watermark of a leader, each fault.

It decides nothing; scenarios and charts read it.

Constraints: times rise; a high watermark is noted when the broker that the controller takes for the leader moves it.

Example: state_at(0, 7_000) is the last state that partition 0 had up to 7 s.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from broker.ids import BrokerId, Offset
from broker.units import TimeMs
from replication.partition import PartitionState
from replication.roles.messages import CONTROLLER, Message, NodeId, PartitionRecord
from replication.roles.outbox import Outbox
from replication.simulation.cluster import Cluster


@attrs.frozen
class StateNote:
    """A partition's state from a time on."""

    at_ms: TimeMs
    partition: int
    state: PartitionState


@attrs.frozen
class HighNote:
    """A leader's high watermark from a time on."""

    at_ms: TimeMs
    partition: int
    high_watermark: Offset


class Recording:
    """Notes states and high watermarks as events go by; `watch` hangs in a cluster's watches."""

    def __init__(self) -> None:
        self.states: list[StateNote] = []
        self.highs: list[HighNote] = []
        self._read = 0
        self._last: dict[int, Offset] = {}

    def watch(self, cluster: Cluster, node: NodeId, _message: Message, _out: Outbox) -> None:
        """Note what an event changed."""
        if node == CONTROLLER:
            for record in self._new_records(cluster):
                self.states.append(StateNote(cluster.now_ms, record.partition, record.state))
        elif node < CONTROLLER:
            broker = BrokerId(node)
            for partition, log in cluster.nodes[broker].logs.items():
                high = log.log.high_watermark
                if self._last.get(partition) != high:
                    state = cluster.controller.image.partitions.get(partition)
                    if state is not None and state.leader == broker:
                        self._last[partition] = high
                        self.highs.append(HighNote(cluster.now_ms, partition, high))

    def state_at(self, partition: int, at_ms: int) -> PartitionState | None:
        """Return the state that a partition had at a time, None before it was made."""
        found = [note.state for note in self.states if note.partition == partition and note.at_ms <= at_ms]
        return found[-1] if found else None

    def _new_records(self, cluster: Cluster) -> Iterator[PartitionRecord]:
        log = cluster.controller.log
        while self._read < len(log):
            record = log[self._read]
            self._read += 1
            if isinstance(record, PartitionRecord):
                yield record
