"""Decide everything that follows from a new ISR or new replicas of a partition: Kafka's PartitionChangeBuilder.

What it decides: the partition's next state: is a reassignment complete, who is in the ELR, who leads, which epochs
rise.

Goals, most important first:
1. One change is one step: nobody ever sees a leader outside the ISR or an ISR of removed replicas.
2. The leader epoch rises exactly when replicas have to find their place in the leader's log again.

Constraints: the partition epoch rises by one with each change; the leader epoch with each new leader (no leader
counts as one), and for the same leader if a replica was removed. A change that changes nothing returns None. Without
ELR the last member of the ISR stays in it though its broker is dead: no other replica may lead.

How: in this order: complete the reassignment; compute the ELR; elect; raise the leader epoch for removed replicas;
write ELR and ISR; raise the leader epoch for a smaller ISR (before 3.6); remember the last known leader; write the
rest.

Example: min.insync.replicas is 2, the ISR is (1, 2), 1 leads, and the target ISR is (2,).

>>> one, two = BrokerId(1), BrokerId(2)
>>> partition = PartitionState(replicas=(one, two), isr=(one, two), leader=one)
>>> settings = PartitionSettings(min_isr=2)
>>> after = change(partition, target_of(partition, (two,), settings), {two}, settings)
>>> after.leader, after.isr, after.elr, after.leader_epoch, after.partition_epoch
(2, (2,), (1,), 1, 1)

Left out: directories and the record's wire format.

Source: Kafka metadata PartitionChangeBuilder.build (triggerLeaderEpochBumpForReplicaReassignmentIfNeeded,
triggerLeaderEpochBumpForIsrShrinkIfNeeded, completeReassignmentIfNeeded) and PartitionRegistration.merge, 4.3.1;
KIP-455, KIP-704, KIP-966, KAFKA-15021.
"""

from __future__ import annotations

from collections.abc import Container

import attrs

from broker.ids import BrokerId, LeaderEpoch
from replication.rules.election import Ballot, Elected, Election, ElectionPolicy, check_elected, elect
from replication.rules.elr import next_elr, next_last_known
from replication.rules.partition import PartitionEpoch, PartitionState
from replication.rules.reassign import Phase, completed
from replication.rules.settings import PartitionSettings, needed_in_sync


@attrs.frozen(kw_only=True)
class Target:
    """Hold the state that a partition is to change to; `unclean` are replicas known to have stopped uncleanly."""

    phase: Phase
    election: Election = Election.ONLINE
    recovering: bool = False
    unclean: tuple[BrokerId, ...] = ()


def target_of(partition: PartitionState, isr: tuple[BrokerId, ...], settings: PartitionSettings) -> Target:
    """Return the target that differs from a partition in its ISR only, with the election that `settings` allow."""
    phase = Phase(replicas=partition.replicas, isr=isr, adding=partition.adding, removing=partition.removing)
    election = Election.UNCLEAN if settings.unclean_election else Election.ONLINE
    return Target(phase=phase, election=election, recovering=partition.recovering)


def change(
    partition: PartitionState,
    target: Target,
    acceptable: Container[BrokerId],
    settings: PartitionSettings,
    policy: ElectionPolicy = elect,
) -> PartitionState | None:
    """Return the partition's next state; None if nothing changes.

    `acceptable` holds the brokers that may lead: unfenced, not shutting down, the replica's directory online.
    """
    rules = settings.rules
    phase = completed(target.phase, rules) or target.phase
    elr = partition.elr
    if rules.elr:
        replica_count = settings.topic_replica_count or len(partition.replicas)
        elr = next_elr(partition, phase.isr, target.unclean, needed_in_sync(settings.min_isr, replica_count, rules))
        if rules.elr_holds_replicas_only:
            elr = tuple(broker for broker in elr if broker in phase.replicas)
    ballot = Ballot(
        replicas=phase.replicas,
        isr=phase.isr,
        elr=elr,
        leader=partition.leader,
        last_known=partition.last_known,
        acceptable=acceptable,
    )
    elected = policy(ballot, target.election, rules)
    if policy is not elect:
        check_elected(elected, ballot)
    return _recorded(partition, attrs.evolve(target, phase=phase), elr, elected, settings)


def _recorded(
    partition: PartitionState, target: Target, elr: tuple[BrokerId, ...], elected: Elected, settings: PartitionSettings
) -> PartitionState | None:
    rules, phase, leader = settings.rules, target.phase, elected.leader
    isr, recovering = phase.isr, target.recovering
    is_new_leader = leader != partition.leader
    if is_new_leader and leader in elr:
        # Elected from the ELR: the ISR was empty, and is the leader alone until followers catch up with it.
        isr, elr = (leader,), tuple(broker for broker in elr if broker != leader)
    if is_new_leader and elected.is_unclean:
        # Nobody is known to have the log of an unclean leader, so neither ISR nor ELR of the old log count (KIP-704).
        isr, elr = (leader,), ()
        recovering = rules.leader_recovery_state or recovering
    if not rules.elr:
        elr = ()
        # Nobody but the last member may lead cleanly, so it is never forgotten.
        isr = isr or partition.isr
    # A new leader epoch makes followers truncate, and tells a removed replica that it is none any more. A smaller ISR
    # needs neither: until 3.6 it raised the epoch all the same (KAFKA-15021).
    raises_epoch = (
        is_new_leader
        or not set(phase.replicas).issuperset(partition.replicas)
        or (not rules.isr_shrink_keeps_leader_epoch and not set(isr).issuperset(partition.isr))
    )
    following = PartitionState(
        replicas=phase.replicas,
        isr=isr,
        leader=leader,
        leader_epoch=LeaderEpoch(partition.leader_epoch + raises_epoch),
        partition_epoch=partition.partition_epoch,
        elr=elr,
        last_known=next_last_known(partition, leader if raises_epoch else None) if rules.elr else partition.last_known,
        adding=phase.adding,
        removing=phase.removing,
        recovering=recovering,
    )
    if following == partition:
        return None
    return attrs.evolve(following, partition_epoch=PartitionEpoch(partition.partition_epoch + 1))
