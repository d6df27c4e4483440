"""Decide whether a change of a partition is an unclean leader election.

What it decides: what the controller decided when it wrote the record, from the partition before and after it.

- The controller marks a partition as recovering exactly when it elects a leader uncleanly (KIP-704), and sets the ISR
  to this leader alone. A partition that is recovering already is not marked again; then the election is unclean if the
  leader was neither in the ISR nor eligible before.
- Releases before metadata.version 3.2-IV0 do not mark it. There an election is unclean if the ISR becomes the leader
  alone, which was neither in the ISR nor eligible before, and no reassignment ended by adding this leader.

Constraints: a reassignment that ends adds the new leader to the ISR and elects it in one record. That election is
clean, although the leader was not in the ISR before.

Example: replicas 1 with 2 being added; a record with replicas 2, ISR 2 and leader 2 is a clean election.

Source: org.apache.kafka.controller.PartitionChangeBuilder and
org.apache.kafka.metadata.PartitionRegistration.electionWasUnclean, 4.3.1; KIP-704 and KIP-966.
"""

from __future__ import annotations

from typing import Final

from broker.ids import NO_LEADER
from log.metadata.image import PartitionImage

RECOVERY_FEATURE_LEVEL: Final = 4
"""The level of metadata.version from which on the controller marks unclean elections: 3.2-IV0."""


def is_unclean(before: PartitionImage, after: PartitionImage, *, marks_recovery: bool) -> bool:
    """Return whether the change from `before` to `after` elected a leader uncleanly.

    `marks_recovery` is whether the cluster's metadata.version is `RECOVERY_FEATURE_LEVEL` or above.
    """
    if after.leader == NO_LEADER or before.leader_epoch == after.leader_epoch:
        return False
    if after.recovering and not before.recovering:
        return True
    if after.leader in {*before.isr, *before.elr} or after.isr != (after.leader,):
        return False
    if marks_recovery:
        return after.recovering
    return not _was_added(before, after)


def _was_added(before: PartitionImage, after: PartitionImage) -> bool:
    """Return whether a reassignment ended that added the leader; it ends only once all it adds are in sync."""
    leader = after.leader
    return leader in before.adding and leader not in after.adding and leader in after.replicas
