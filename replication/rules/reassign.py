"""Decide the start, completion and cancellation of a replica reassignment.

What it decides: the replicas, adding and removing replicas of each phase; the change itself is `partition_change`'s.

Goals, most important first:
1. No replica counts as in sync that has not caught up: a reassignment never adds to the ISR.
2. Replicas to be removed stay until the new ones can do without them.

Constraints: the leader is never removed before another replica of the target can lead.

How: a reassignment starts with the target's replicas followed by those to be removed. It is complete when, without the
removed replicas, the ISR is not empty and holds every added replica, and if more are removed than added every replica
of the target (3.8 to 4.2: every replica of the target always; before: the added ones always). Cancelling removes the
added replicas; if no other replica is in sync, the first one counts as in sync, which loses records and is refused
unless unclean leader election is allowed.

Example: a move from (1, 2, 3) to (1, 2, 4). Once 1, 2 and 4 are in the ISR, the replicas are (1, 2, 4).

>>> from replication.rules.switches import CURRENT
>>> one, two, three, four = (BrokerId(broker) for broker in (1, 2, 3, 4))
>>> partition = PartitionState(replicas=(one, two, three), isr=(one, two, three), leader=one)
>>> phase = started(partition, (one, two, four))
>>> phase.replicas, phase.adding, phase.removing
((1, 2, 4, 3), (4,), (3,))
>>> completed(phase, CURRENT) is None
True
>>> completed(attrs.evolve(phase, isr=(one, two, three, four)), CURRENT).replicas
(1, 2, 4)

Left out: directories; throttles; checks of the target against the registered brokers, which the controller makes.

Source: Kafka metadata PartitionReassignmentReplicas and PartitionReassignmentRevert, 4.3.1, and 4.2.1 and 3.7.0 for the
older conditions; KIP-455, KAFKA-15665, KAFKA-19975.
"""

from __future__ import annotations

import attrs

from broker.ids import BrokerId
from replication.rules.partition import PartitionState
from replication.rules.switches import Rules


@attrs.frozen(kw_only=True)
class Phase:
    """Hold the replicas of one reassignment phase; `loses` if the phase adds an out-of-sync replica to the ISR."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    loses: bool = False


def started(partition: PartitionState, target: tuple[BrokerId, ...]) -> Phase:
    """Return the first phase of a move to `target`; without added or removed replicas it is complete at once.

    If it replaces a move in progress, added and removed count from the replicas of that move, and where the new move
    adds none or removes none, Kafka keeps those of the former one.
    """
    assert len(set(target)) == len(target) > 0, target
    current = partition.replicas
    removing = tuple(sorted(set(current).difference(target)))
    adding = tuple(sorted(set(target).difference(current)))
    return Phase(
        replicas=(*target, *removing),
        isr=partition.isr,
        adding=adding or partition.adding,
        removing=removing or partition.removing,
    )


def completed(phase: Phase, rules: Rules) -> Phase | None:
    """Return the last phase if the ISR of `phase` allows it, else None; also None if no reassignment is in progress."""
    if not phase.adding and not phase.removing:
        return None
    isr = tuple(broker for broker in phase.isr if broker not in phase.removing)
    replicas = tuple(broker for broker in phase.replicas if broker not in phase.removing)
    if not isr:
        return None
    if not set(isr).issuperset(_needed_in_isr(phase, rules)):
        return None
    return Phase(replicas=replicas, isr=isr)


def cancelled(partition: PartitionState) -> Phase:
    """Return the phase that a reassignment in progress reverts to."""
    assert partition.is_reassigning, partition
    replicas = tuple(broker for broker in partition.replicas if broker not in partition.adding)
    isr = tuple(broker for broker in partition.isr if broker not in partition.adding)
    return Phase(replicas=replicas, isr=isr or replicas[:1], loses=not isr)


def _needed_in_isr(phase: Phase, rules: Rules) -> tuple[BrokerId, ...]:
    """Return the replicas that must be in the ISR before a reassignment in progress can end."""
    kept = tuple(broker for broker in phase.replicas if broker not in phase.removing)
    if not rules.reassignment_needs_all_targets:
        return phase.adding
    if not rules.reassignment_ignores_kept:
        return kept
    # Fewer replicas than before: to wait for added ones alone could end with a smaller ISR than there was.
    # Those that are added may be of a former reassignment, and in the target no more.
    return (*phase.adding, *kept) if len(phase.adding) < len(phase.removing) else phase.adding
