"""Format metadata records as lines of text.

Example: partition 0: leader 1 (epoch 4), ISR 1,2, ELR none, OSR 3, partition epoch 9.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.ids import NO_LEADER, BrokerId
from replication.roles.messages import MetadataRecord, PartitionRecord, PartitionRemoved


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
    status = record.status
    standing = "fenced" if status.fenced else "stopping" if status.shutting_down else "unfenced"
    return f"broker {record.broker} is {standing} (epoch {status.epoch})"


def _listed(brokers: Sequence[BrokerId]) -> str:
    return ",".join(map(str, brokers)) or "none"
