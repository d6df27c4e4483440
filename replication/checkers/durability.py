"""Which acknowledged records are gone, and by which event.
 It decides, at the end of a run, for each acknowledged write whether it can still be read, whether any broker still
has it, and what took it: an unclean election if one cut it off, else nothing that is allowed.

Constraints: acks=1 promises only the leader's log; what is lost of those is told apart and is no fault.

Worked example: value 17, acks=all, partition 0, offset 9, lost at 4200 ms by the unclean election of broker 2.

Left out: acks=0, which promises nothing.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from replication.checkers.clients import WriteView
from replication.checkers.ghost import Ghost
from replication.produce import ACKS_ALL, Fate


@attrs.frozen
class LostRecord:
    """An acknowledged record that cannot be read any more. `cause` is "" if nothing that happened explains it."""

    value: int
    partition: int
    offset: int
    acks: int
    cause: str
    is_anywhere: bool


@attrs.frozen
class DurabilityReport:
    """What was acknowledged, and what of it is lost."""

    acked_count: int
    acked_by_one_count: int
    lost: tuple[LostRecord, ...]

    @property
    def lost_for_no_reason(self) -> tuple[LostRecord, ...]:
        """Records acknowledged with acks=all that are gone without an event that may take them."""
        return tuple(record for record in self.lost if record.acks == ACKS_ALL and not record.cause)


def account(writes: Sequence[WriteView], ghosts: Mapping[int, Ghost]) -> DurabilityReport:
    """Return what became of every acknowledged write. Cost: linear in writes and logs."""
    kept = {partition: {entry.value for entry in ghost.committed} for partition, ghost in ghosts.items()}
    anywhere = {
        partition: {entry.value for shadow in ghost.shadows.values() for entry in shadow.entries}
        for partition, ghost in ghosts.items()
    }
    causes = {
        value: f"{loss.cause} at {loss.at_ms} ms"
        for ghost in ghosts.values()
        for loss in ghost.losses
        for value in loss.values
    }
    acked = [write for write in writes if write.fate is Fate.ACKED]
    lost = tuple(
        LostRecord(
            write.value,
            write.partition,
            write.offset,
            write.acks,
            causes.get(write.value, ""),
            write.value in anywhere.get(write.partition, ()),
        )
        for write in acked
        if write.value not in kept.get(write.partition, ())
    )
    by_one = sum(write.acks != ACKS_ALL for write in acked)
    return DurabilityReport(len(acked) - by_one, by_one, lost)
