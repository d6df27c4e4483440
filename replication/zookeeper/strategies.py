"""Elect leaders as the ZooKeeper-era controller does: four strategies (PartitionLeaderElectionAlgorithms).

The elected replica is in sync, except for an offline partition whose topic allows an unclean election. An election
without a result writes nothing. Ties are decided by the order of the assignment.

Source: Kafka core controller Election and PartitionLeaderElectionAlgorithms, KafkaController.
moveReassignedPartitionLeaderIfRequired, 2.8 and 4.3.1.
"""

from __future__ import annotations

import enum
from typing import Final

import attrs

from broker.ids import BrokerId, LeaderEpoch
from replication.rules.election import NOBODY, Ballot, Choice, Elected, Election
from replication.rules.partition import PartitionState
from replication.rules.partition_change import Target, change, target_of
from replication.rules.reassign import Phase, completed, started
from replication.rules.settings import PartitionSettings
from replication.rules.switches import Rules


class Strategy(enum.Enum):
    """Name the occasions of an election, as Kafka's PartitionLeaderElectionStrategy does."""

    OFFLINE = enum.auto()
    """The partition is new or has lost its leader."""

    REASSIGN = enum.auto()
    """The replicas that a partition moves to are in sync."""

    PREFERRED = enum.auto()
    """An operator wants the first replica to lead."""

    CONTROLLED_SHUTDOWN = enum.auto()
    """The leader's broker is in controlled shutdown."""


def first_in_sync(ballot: Ballot, election: Election, _rules: Rules) -> Elected:
    """Elect the first acceptable replica of the ISR; in an UNCLEAN election, else the first acceptable replica."""
    for broker in ballot.replicas:
        if broker in ballot.acceptable and broker in ballot.isr:
            return _in_sync(ballot, broker)
    if election is Election.UNCLEAN:
        for broker in ballot.replicas:
            if broker in ballot.acceptable:
                return Elected(broker, Choice.UNCLEAN)
    return NOBODY


def leader_if_it_stays(ballot: Ballot, election: Election, rules: Rules) -> Elected:
    """Elect the current leader if it is an acceptable replica, else as `first_in_sync`."""
    if ballot.leader in ballot.replicas and ballot.leader in ballot.acceptable:
        return Elected(ballot.leader, Choice.STAYS)
    return first_in_sync(ballot, election, rules)


def preferred_only(ballot: Ballot, _election: Election, _rules: Rules) -> Elected:
    """Elect the first replica of the assignment if it is acceptable and in sync."""
    first = ballot.replicas[0]
    return _in_sync(ballot, first) if first in ballot.acceptable and first in ballot.isr else NOBODY


_POLICIES: Final = {
    Strategy.OFFLINE: first_in_sync,
    Strategy.REASSIGN: leader_if_it_stays,
    Strategy.PREFERRED: preferred_only,
    Strategy.CONTROLLED_SHUTDOWN: first_in_sync,
}
_SHRINKING: Final = (Strategy.OFFLINE, Strategy.CONTROLLED_SHUTDOWN)


def elected(
    partition: PartitionState, strategy: Strategy, live: frozenset[BrokerId], settings: PartitionSettings
) -> PartitionState | None:
    """Return the partition after an election; None if it failed. `live` are the brokers that may lead."""
    isr = partition.isr
    if strategy in _SHRINKING:
        isr = tuple(broker for broker in isr if broker in live) or isr
    target = target_of(partition, isr, settings)
    if strategy is not Strategy.OFFLINE:
        target = attrs.evolve(target, election=Election.ONLINE)
    after = change(partition, target, live, settings, _POLICIES[strategy])
    return after if after is not None and after.has_leader else None


def elected_uncleanly(
    partition: PartitionState, live: frozenset[BrokerId], settings: PartitionSettings
) -> PartitionState | None:
    """Return the partition after an operator's unclean election; None if no broker is live."""
    return elected(partition, Strategy.OFFLINE, live, attrs.evolve(settings, unclean_election=True))


def without(partition: PartitionState, broker: BrokerId, settings: PartitionSettings) -> PartitionState | None:
    """Return the partition after a replica went offline; None if it is not in the ISR, or nothing changes.

    The last member stays in the ISR. If the replica was the leader, the partition is leaderless; this function elects
    no other.
    """
    if broker not in partition.isr:
        return None
    isr = tuple(member for member in partition.isr if member != broker) or partition.isr
    stays = NOBODY if partition.leader == broker else Elected(partition.leader, Choice.STAYS)
    return change(partition, target_of(partition, isr, settings), (), settings, lambda *_: stays)


def with_all_targets(settings: PartitionSettings) -> PartitionSettings:
    """Return the settings under which a reassignment is complete only when its whole target is in sync."""
    rules = attrs.evolve(settings.rules, reassignment_needs_all_targets=True, reassignment_ignores_kept=False)
    return attrs.evolve(settings, rules=rules)


def moving_to(partition: PartitionState, target: tuple[BrokerId, ...]) -> Phase:
    """Return the first phase of a reassignment to `target`; it replaces a reassignment in progress.

    Who is added counts from where the first move began (ReplicaAssignment.reassignTo): to ask for the same again
    changes nothing. Not as in Kafka, who was added for the former target only goes with those to be removed.
    """
    phase = started(partition, target)
    origin = set(partition.replicas).difference(partition.adding)
    removing = tuple(sorted(set(partition.replicas).difference(target)))
    return attrs.evolve(phase, adding=tuple(sorted(set(target).difference(origin))), removing=removing)


def reassigned(
    partition: PartitionState, phase: Phase, live: frozenset[BrokerId], settings: PartitionSettings
) -> PartitionState | None:
    """Return the partition in a phase of its reassignment, or after it if all targets are in sync.

    None if nothing changes, or no replica could lead afterwards. Replicas apply LeaderAndIsr only with a new leader
    epoch, so each phase begins one.
    """
    is_over = completed(phase, settings.rules) is not None
    # Until it is over nobody is elected: whoever leads stays, and is looked after when it is gone.
    may_lead = live if is_over else live | {partition.leader}
    target = Target(phase=phase, recovering=partition.recovering)
    after = change(partition, target, may_lead, settings, leader_if_it_stays)
    if after is None or (is_over and not after.has_leader):
        return None
    if after.leader_epoch > partition.leader_epoch:
        return after
    return attrs.evolve(after, leader_epoch=LeaderEpoch(after.leader_epoch + 1))


def first_state(replicas: tuple[BrokerId, ...], live: frozenset[BrokerId]) -> PartitionState | None:
    """Return a new partition's state: its live replicas in sync, the first one leading; None without live replicas."""
    isr = tuple(broker for broker in replicas if broker in live)
    return PartitionState(replicas=replicas, isr=isr, leader=isr[0]) if isr else None


def _in_sync(ballot: Ballot, broker: BrokerId) -> Elected:
    return Elected(broker, Choice.STAYS if broker == ballot.leader else Choice.IN_SYNC)
