"""Record each state of each partition, and each ISR shrink, over time.

Example: state_at(0, 7_000) is the last state that partition 0 had up to 7 s.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import attrs

from broker.ids import NO_LEADER, BrokerId
from broker.units import TimeMs
from replication.roles.messages import (
    AlterPartition,
    AlterPartitionReassignments,
    BrokerHeartbeat,
    BrokerRegistration,
    ConfigRecord,
    Message,
    MetadataRecord,
    NodeId,
    PartitionRecord,
    PartitionRemoved,
    SessionsDue,
)
from replication.roles.outbox import Outbox
from replication.rules.partition import PartitionState
from replication.simulation.cluster import Cluster


@attrs.frozen
class StateNote:
    """Hold a partition's state from `at_ms` on."""

    at_ms: TimeMs
    partition: int
    state: PartitionState


class ShrinkCause(enum.Enum):
    """Name what the controller was handling when a replica left the ISR."""

    LAG = "its leader found that it lags"
    SESSION = "its broker's session had ended"
    SHUTDOWN = "its broker was stopping"
    RESTART = "its broker registered anew"
    ORDER = "an operator moved the partition"
    OTHER = "something else"


_SHRINK_CAUSES: Final[dict[type, ShrinkCause]] = {
    AlterPartition: ShrinkCause.LAG,
    SessionsDue: ShrinkCause.SESSION,
    BrokerHeartbeat: ShrinkCause.SHUTDOWN,
    BrokerRegistration: ShrinkCause.RESTART,
    AlterPartitionReassignments: ShrinkCause.ORDER,
}


@attrs.frozen
class IsrShrink:
    """State that a replica left the ISR."""

    at_ms: TimeMs
    partition: int
    broker: BrokerId
    by: ShrinkCause


class Recording:
    """Note partition states, and write each record of the metadata log to the trace; `watch` is a controller watch."""

    def __init__(self) -> None:
        self.states: list[StateNote] = []
        self.isr_shrinks: list[IsrShrink] = []
        self._states: dict[int, PartitionState] = {}
        self._read = 0

    def watch(self, cluster: Cluster, _node: NodeId, message: Message, _out: Outbox) -> None:
        """Note the records that the controller wrote."""
        records = cluster.controller.log
        while self._read < len(records):
            record = records[self._read]
            self._read += 1
            cluster.trace.line(cluster.now_ms, record_text(record))
            if isinstance(record, PartitionRecord):
                self._note_state(record, cluster.now_ms, _SHRINK_CAUSES.get(type(message), ShrinkCause.OTHER))

    def _note_state(self, record: PartitionRecord, now_ms: TimeMs, by: ShrinkCause) -> None:
        partition, state = record.partition, record.state
        before = self._states.get(partition)
        self._states[partition] = state
        self.states.append(StateNote(now_ms, partition, state))
        if before is not None and before.isr != state.isr:
            left = (broker for broker in before.isr if broker not in state.isr)
            self.isr_shrinks += (IsrShrink(now_ms, partition, broker, by) for broker in left)

    def last_shrink_of(self, partition: int, broker: BrokerId) -> IsrShrink | None:
        """Return the last removal of a replica from the ISR, None if there was none."""
        found = (each for each in reversed(self.isr_shrinks) if (each.partition, each.broker) == (partition, broker))
        return next(found, None)

    def state_at(self, partition: int, at_ms: int) -> PartitionState | None:
        """Return the state that a partition had at `at_ms`, None before it was created."""
        found = [note.state for note in self.states if note.partition == partition and note.at_ms <= at_ms]
        return found[-1] if found else None


def record_text(record: MetadataRecord) -> str:
    """Return a metadata record as one line."""
    if isinstance(record, PartitionRecord):
        state = record.state
        leader = "none" if state.leader == NO_LEADER else str(state.leader)
        moving = f", adding {_listed(state.adding)}, removing {_listed(state.removing)}" * state.is_reassigning
        return (
            f"partition {record.partition}: leader {leader} (epoch {state.leader_epoch}), ISR {_listed(state.isr)}, "
            f"OSR {_listed(state.out_of_sync)}, ELR {_listed(state.elr)}{moving}{', recovering' * state.recovering}"
        )
    if isinstance(record, PartitionRemoved):
        return f"partition {record.partition}: its topic is deleted"
    if isinstance(record, ConfigRecord):
        return f"partition {record.partition}: min ISR {record.min_isr}, unclean elections {record.unclean_election}"
    status = record.status
    standing = "fenced" if status.fenced else "stopping" if status.shutting_down else "unfenced"
    return f"broker {record.broker} is {standing} (epoch {status.epoch})"


def _listed(brokers: Sequence[BrokerId]) -> str:
    return ",".join(map(str, brokers)) or "none"
