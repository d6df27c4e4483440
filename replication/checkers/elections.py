"""The setting or rule that allows each election of a leader from outside ISR and ELR.

No rule is called; the last leader is the checker's own note. Without ELR, as in ZooKeeper mode and before
4.0, there is no last known leader. An election that has a ground and passes over a member of ISR or ELR that is alive
breaks I28 too; in ZooKeeper mode the controller's view of who is alive is its own, and this is not checked.

Source: Kafka metadata PartitionChangeBuilder.electAnyLeader and ReplicationControlManager.electLeader, 4.3.1; KIP-460,
KIP-966; unclean.leader.election.enable of TopicConfig.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import attrs

from broker.ids import NO_LEADER, BrokerId
from replication.rules.partition import BrokerStatus, PartitionState
from replication.rules.settings import PartitionSettings

_NOBODY: Final = NO_LEADER


class Ground(enum.Enum):
    """Name what allows the election of a leader from outside ISR and ELR."""

    LAST_KNOWN = "KIP-966: the last known leader of an empty ISR and ELR"
    SETTING = "unclean.leader.election.enable=true"
    ORDER = "an ElectLeaders request of type UNCLEAN"
    CANCELLED = "a cancelled move of a partition with nobody in sync, as unclean.leader.election.enable=true lets it be"
    NONE = "no setting and no rule"


@attrs.frozen(kw_only=True)
class Cause:
    """Hold why the controller wrote a record: what it was handling.

    `proposed` is the ISR that a leader's request asks for, empty without one. `registers` is the broker that registered
    anew, after an unclean stop if `is_unclean`. `ordered` is the partition for which an operator asked for an UNCLEAN
    election, `cancelled` the partition whose move an operator cancelled, `moves_to` the replicas of an ordered move.
    """

    proposed: tuple[BrokerId, ...] = ()
    registers: BrokerId = _NOBODY
    is_unclean: bool = False
    ordered: int = -1
    cancelled: int = -1
    moves_to: tuple[BrokerId, ...] = ()
    by_zookeeper: bool = False


@attrs.frozen
class UncleanElection:
    """Describe the election of a leader that was in neither ISR nor ELR."""

    leader: BrokerId
    leader_epoch: int
    ground: Ground


def is_unclean(before: PartitionState, after: PartitionState, cause: Cause) -> bool:
    """Return whether a change elects a leader that was in neither ISR nor ELR, and that no leader has just vouched for.

    As a reassignment ends, the leader's last request adds a replica to the ISR that leads from the same record on.
    """
    members = (NO_LEADER, *before.isr, *before.elr, *cause.proposed)
    return after.leader != before.leader and after.leader not in members


def next_eligible(
    before: PartitionState, after: PartitionState, cause: Cause, settings: PartitionSettings
) -> frozenset[BrokerId]:
    """Return who should be in the ELR after a change, if those in that of `before` should have been.

    Whoever was in the ISR or ELR stays eligible while the ISR is too small, until its broker restarts uncleanly.
    """
    rules = settings.rules
    was_from_elr = after.leader not in (NO_LEADER, before.leader, *before.isr) and after.leader in before.elr
    needed = min(settings.min_isr, len(before.replicas)) if rules.effective_min_isr else settings.min_isr
    if not rules.elr or (len(after.isr) >= needed and not was_from_elr):
        return frozenset()
    kept = without_restarted(before, cause) if cause.is_unclean else before
    eligible = {*kept.isr, *kept.elr}.difference(after.isr)
    return frozenset(eligible.intersection(after.replicas) if rules.elr_holds_replicas_only else eligible)


def ground_of(
    before: PartitionState, after: PartitionState, last_leader: BrokerId, settings: PartitionSettings, *, is_asked: bool
) -> Ground:
    """Return the reason that permits an unclean election; `before` excludes members after an unclean shutdown.

    `last_leader` is the broker that led last, `is_asked` says that an operator asked for an UNCLEAN election.
    """
    leader = after.leader
    is_last = before.last_known == (leader,) and last_leader == leader and leader in before.replicas
    if settings.rules.elr and is_last and not before.isr and not before.elr:
        return Ground.LAST_KNOWN
    if settings.unclean_election:
        return Ground.SETTING
    return Ground.ORDER if is_asked else Ground.NONE


def without_restarted(state: PartitionState, cause: Cause) -> PartitionState:
    """Return a state without the broker that has just registered: it leaves the ISR, and the ELR if it is unclean."""
    if cause.registers == _NOBODY:
        return state
    isr = tuple(broker for broker in state.isr if broker != cause.registers)
    elr = tuple(broker for broker in state.elr if broker != cause.registers or not cause.is_unclean)
    return attrs.evolve(state, isr=isr, elr=elr)


def passed_over(
    partition: int, before: PartitionState, after: PartitionState, brokers: Mapping[BrokerId, BrokerStatus]
) -> tuple[BrokerId, ...]:
    """Return the members of ISR and ELR that could have led in the place of the elected broker."""
    return tuple(
        broker
        for broker in (*before.isr, *before.elr)
        if broker in after.replicas
        and broker in brokers
        and brokers[broker].is_active
        and partition not in brokers[broker].offline
    )
