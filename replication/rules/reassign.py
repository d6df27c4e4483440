"""Moving a partition to other replicas: how a reassignment starts, when it is complete, how it is cancelled.

It decides the replicas, adding and removing sets of each phase; the change itself is `partition_change`'s.

Goals, most important first
1. At no time is a replica counted as in sync that has not caught up: reassignment never adds to the ISR.
2. Old replicas stay until the new ones can do without them.

Constraints: the leader is never taken out before another replica of the target can lead.

How. Start: the replicas become the target followed by those to be removed. Complete: when, with the removed ones taken
away, the ISR is not empty and holds every replica of the target (before 3.8: every added one). Cancel: the
added ones go; should none of the others be in sync, the first of them is taken for in sync, which loses
records and is refused unless unclean election is allowed.

Worked example: (1, 2, 3) to (1, 2, 4): replicas (1, 2, 4, 3), adding (4,), removing (3,). Once 1, 2 and 4 are in the
ISR the replicas are (1, 2, 4) and the leader epoch rises, as 3 must learn that it is out.

Left out: directories; throttles; checks of the target against the registered brokers, which the controller makes.

Source: Kafka metadata PartitionReassignmentReplicas and PartitionReassignmentRevert, commit 1eb7644 (2024-10), and
3.7.0 for the older condition; KIP-455, KAFKA-15665.
"""

from __future__ import annotations

import attrs

from broker.ids import BrokerId
from replication.rules.partition import PartitionState
from replication.rules.switches import Rules


@attrs.frozen(kw_only=True)
class Phase:
    """The sets of one phase. `loses` says that the ISR was made up, which loses what was committed."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    loses: bool = False


def started(partition: PartitionState, target: tuple[BrokerId, ...]) -> Phase:
    """Return the first phase of a move to `target`; a target without new or missing replicas is complete at once."""
    assert len(set(target)) == len(target) > 0, target
    current = partition.replicas
    removing = tuple(sorted(set(current).difference(target)))
    adding = tuple(sorted(set(target).difference(current)))
    return Phase(replicas=(*target, *removing), isr=partition.isr, adding=adding, removing=removing)


def completed(phase: Phase, rules: Rules) -> Phase | None:
    """Return the last phase if the ISR of `phase` allows it, else None; None too if nothing is under way."""
    if not phase.adding and not phase.removing:
        return None
    isr = tuple(broker for broker in phase.isr if broker not in phase.removing)
    replicas = tuple(broker for broker in phase.replicas if broker not in phase.removing)
    if phase.removing and (not isr or not replicas):
        return None
    needed = replicas if rules.reassignment_needs_all_targets else phase.adding
    if not set(isr).issuperset(needed):
        return None
    return Phase(replicas=replicas, isr=isr)


def cancelled(partition: PartitionState) -> Phase:
    """Return the phase that a reassignment under way goes back to."""
    assert partition.is_reassigning, partition
    replicas = tuple(broker for broker in partition.replicas if broker not in partition.adding)
    isr = tuple(broker for broker in partition.isr if broker not in partition.adding)
    return Phase(replicas=replicas, isr=isr or replicas[:1], loses=not isr)
