"""What a run looked like over time: each state of each partition, each high watermark of a leader, who left the ISR.

It decides nothing; scenarios, charts and views read it.

Constraints: times rise; a high watermark is noted when the broker that the controller takes for the leader moves it.

Example: state_at(0, 7_000) is the last state that partition 0 had up to 7 s.
"""

from __future__ import annotations

import enum
from typing import Final

import attrs

from broker.ids import BrokerId, Offset
from broker.units import TimeMs
from replication.partition import PartitionState
from replication.roles.messages import (
    CONTROLLER,
    PARTITION_MESSAGES,
    AskIsr,
    AskLeader,
    Beat,
    Consume,
    FetchDue,
    Fetched,
    Message,
    NodeId,
    PartitionRecord,
    Reassign,
    Register,
    SessionsDue,
    WriteExpired,
)
from replication.roles.outbox import Outbox
from replication.roles.replica_log import ReplicaLog
from replication.simulation.cluster import Cluster
from replication.simulation.telling import record_text


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


class LeftBy(enum.Enum):
    """What the controller was dealing with when a replica left the ISR."""

    LAG = "its leader found that it lags"
    SESSION = "its broker's session had ended"
    SHUTDOWN = "its broker was stopping"
    RESTART = "its broker registered anew"
    ORDER = "an operator moved the partition"
    OTHER = "something else"


_LEFT_BY: Final[dict[type, LeftBy]] = {
    AskIsr: LeftBy.LAG,
    SessionsDue: LeftBy.SESSION,
    Beat: LeftBy.SHUTDOWN,
    Register: LeftBy.RESTART,
    Reassign: LeftBy.ORDER,
}


_RAISES_NOTHING: Final = frozenset({Fetched, FetchDue, WriteExpired, Consume, AskLeader})
"""Messages at which no leader raises its high watermark."""


@attrs.frozen
class Leaving:
    """A replica left the ISR."""

    at_ms: TimeMs
    partition: int
    broker: BrokerId
    by: LeftBy


class Recording:
    """Notes states and high watermarks as events go by, and tells each record of the metadata log.

    `watch` hangs in a cluster's watches.
    """

    def __init__(self) -> None:
        self.states: list[StateNote] = []
        self.highs: list[HighNote] = []
        self.leavings: list[Leaving] = []
        self._states: dict[int, PartitionState] = {}
        self._read = 0
        self._last: dict[int, Offset] = {}

    def watch(self, cluster: Cluster, node: NodeId, message: Message, _out: Outbox) -> None:
        """Note what an event changed."""
        if node == CONTROLLER:
            records = cluster.controller.log
            while self._read < len(records):
                record = records[self._read]
                self._read += 1
                cluster.trace.line(cluster.now_ms, record_text(record))
                if isinstance(record, PartitionRecord):
                    self._note_state(record, cluster.now_ms, _LEFT_BY.get(type(message), LeftBy.OTHER))
        elif node < CONTROLLER:
            kind = type(message)
            if kind in _RAISES_NOTHING:
                return
            broker = BrokerId(node)
            logs = cluster.nodes[broker].logs
            if kind in PARTITION_MESSAGES:
                partition: int = message.partition  # type: ignore[union-attr] # That is what the set says.
                if partition in logs:
                    self._note_high(cluster, broker, partition, logs[partition])
            else:
                for partition, log in logs.items():
                    self._note_high(cluster, broker, partition, log)

    def _note_state(self, record: PartitionRecord, now_ms: TimeMs, by: LeftBy) -> None:
        partition, state = record.partition, record.state
        before = self._states.get(partition)
        self._states[partition] = state
        self.states.append(StateNote(now_ms, partition, state))
        if before is not None and before.isr != state.isr:
            left = (broker for broker in before.isr if broker not in state.isr)
            self.leavings += (Leaving(now_ms, partition, broker, by) for broker in left)

    def _note_high(self, cluster: Cluster, broker: BrokerId, partition: int, log: ReplicaLog) -> None:
        high = log.log.high_watermark
        if self._last.get(partition) != high:
            state = cluster.controller.image.partitions.get(partition)
            if state is not None and state.leader == broker:
                self._last[partition] = high
                self.highs.append(HighNote(cluster.now_ms, partition, high))

    def leaving_of(self, partition: int, broker: BrokerId) -> Leaving | None:
        """Return how a replica left the ISR last, None if it never did."""
        found = (each for each in reversed(self.leavings) if (each.partition, each.broker) == (partition, broker))
        return next(found, None)

    def state_at(self, partition: int, at_ms: int) -> PartitionState | None:
        """Return the state that a partition had at a time, None before it was made."""
        found = [note.state for note in self.states if note.partition == partition and note.at_ms <= at_ms]
        return found[-1] if found else None
