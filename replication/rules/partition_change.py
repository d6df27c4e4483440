"""One change of a partition by the controller: everything that follows from a new ISR or new replicas.

It decides the partition's next state: is a reassignment complete, who is eligible, who leads, which epochs rise.

Goals, most important first
1. One change is one step: nobody ever sees a leader outside the ISR or an ISR of removed replicas.
2. A leader epoch rises exactly when replicas have to find their place in the leader's log anew.

Constraints: the partition epoch rises by one with each change; the leader epoch with each new leader (none
counts), and for the old leader again if a replica was dropped. A change that changes nothing is none.
Without ELR the last member of the ISR stays in it though it is dead: nobody else may lead.

How, in this order: complete the reassignment; work out the ELR; elect; raise the leader epoch for dropped replicas;
note ELR and ISR; raise the leader epoch for a smaller ISR (before 3.6); remember the last leader; note the rest.

Worked example: min ISR 2, ELR on, ISR (1, 2), leader 1. Target ISR (2,): leader 2, ISR (2,), ELR (1,), leader epoch
and partition epoch +1.

Left out: directories and the record's wire format.

Source: Kafka metadata PartitionChangeBuilder.build and PartitionRegistration.merge, commit 1eb7644 (2024-10);
KIP-455, KIP-704, KIP-966, KAFKA-15021.
"""

from __future__ import annotations

from collections.abc import Container

import attrs

from broker.ids import BrokerId, LeaderEpoch
from replication.rules.election import Ballot, Elected, Election, ElectionPolicy, elect
from replication.rules.elr import next_elr, next_last_known
from replication.rules.min_isr import effective_min_isr
from replication.rules.partition import PartitionEpoch, PartitionState
from replication.rules.reassign import Phase, completed
from replication.rules.settings import PartitionSettings


@attrs.frozen(kw_only=True)
class Target:
    """What a partition is to become. `unclean` are replicas known to have stopped uncleanly.

    `topic_replica_count` is the number of replicas of the topic's partition 0, by which Kafka's controller bounds
    min.insync.replicas; None for this partition's own.
    """

    phase: Phase
    election: Election = Election.ONLINE
    recovering: bool = False
    unclean: tuple[BrokerId, ...] = ()
    topic_replica_count: int | None = None


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

    `acceptable` holds the brokers that may lead: unfenced, not stopping, the replica's directory online.
    """
    rules = settings.rules
    phase = completed(target.phase, rules) or target.phase
    elr = partition.elr
    if rules.elr:
        replica_count = target.topic_replica_count or len(partition.replicas)
        elr = next_elr(partition, phase.isr, target.unclean, effective_min_isr(settings.min_isr, replica_count, rules))
    ballot = Ballot(
        replicas=phase.replicas,
        isr=phase.isr,
        elr=elr,
        leader=partition.leader,
        last_known=partition.last_known,
        acceptable=acceptable,
    )
    elected = policy(ballot, target.election, rules)
    return _recorded(partition, attrs.evolve(target, phase=phase), elr, elected, settings)


def _recorded(
    partition: PartitionState, target: Target, elr: tuple[BrokerId, ...], elected: Elected, settings: PartitionSettings
) -> PartitionState | None:
    rules, phase, leader = settings.rules, target.phase, elected.leader
    isr, recovering = phase.isr, target.recovering
    is_new_leader = leader != partition.leader
    if is_new_leader and leader in elr:
        isr, elr = (leader,), tuple(broker for broker in elr if broker != leader)
    if is_new_leader and elected.is_unclean:
        isr, elr = (leader,), ()
        recovering = rules.leader_recovery_state or recovering
    if not rules.elr:
        elr = ()
        # Nobody but the last member may lead cleanly, so it is never forgotten.
        isr = isr or partition.isr
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
