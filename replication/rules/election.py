"""Who leads next: preferred, clean and unclean election.

It decides the leader of a partition from the replicas, those in sync, those eligible, and those alive.

Goals, most important first
1. A clean election loses nothing: the leader comes from the ISR, or, when that is empty, from the ELR.
2. A leader that may stay, stays (unless the preferred one is asked for).
3. Availability before consistency only where the operator said so (unclean election).

Constraints: whoever is elected is acceptable, that is unfenced, not stopping, its directory online. Assignment order
decides ties. The log of an unclean leader is not looked at: the first acceptable replica leads.

How, each step until one gives a leader
- PREFERRED: the first replica if valid; the current leader if valid; the first other valid replica; last known leader.
- ONLINE: the current leader if valid; the first valid replica; the last known leader.
- UNCLEAN: as ONLINE, then the first acceptable replica.
Valid is acceptable and in the ISR, or acceptable and in the ELR while the ISR is empty. The last known leader counts
only if ISR and ELR are empty and exactly one is known; its election is unclean.

Worked example: replicas (1, 2, 3), ISR (2, 3), 1 and 3 alive. ONLINE elects 3; PREFERRED elects 3; with an ISR of (2,)
both elect nobody, and UNCLEAN elects 1.

Left out: the elections of KIP-966's second part that compare logs (unclean recovery); no release has them.

Source: Kafka metadata PartitionChangeBuilder.electLeader and the methods below it, commit 1eb7644 (2024-10);
KIP-460 (election types), KIP-966; KAFKA-19522 for the last known leader's liveness.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Container
from typing import Final, TypeAlias

import attrs

from broker.ids import NO_LEADER, BrokerId
from replication.rules.switches import Rules


class Election(enum.Enum):
    """What kind of election is held; names as Kafka's PartitionChangeBuilder.Election has them."""

    PREFERRED = enum.auto()
    """Give leadership to the first replica of the assignment if it is in sync."""

    ONLINE = enum.auto()
    """Keep the partition online with a leader that has everything."""

    UNCLEAN = enum.auto()
    """Keep the partition online, with a leader that lacks records if there is no other."""


class Choice(enum.Enum):
    """On what ground a leader was elected."""

    STAYS = enum.auto()
    """It leads already and may go on."""

    IN_SYNC = enum.auto()
    """It is in the ISR."""

    ELIGIBLE = enum.auto()
    """The ISR is empty and it is in the ELR."""

    LAST_KNOWN = enum.auto()
    """ISR and ELR are empty and it led last; it may lack records."""

    UNCLEAN = enum.auto()
    """It is merely alive; it may lack records."""

    NOBODY = enum.auto()
    """There is no leader."""


@attrs.frozen(kw_only=True)
class Ballot:
    """What an election decides on. `isr` and `elr` are as they will be; `leader` and `last_known` as they are."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    elr: tuple[BrokerId, ...] = ()
    leader: BrokerId = NO_LEADER
    last_known: tuple[BrokerId, ...] = ()
    acceptable: Container[BrokerId]

    def is_valid(self, broker: BrokerId) -> bool:
        """Return whether a broker can be elected without losing anything."""
        if broker in self.isr or (not self.isr and broker in self.elr):
            return broker in self.acceptable
        return False


@attrs.frozen
class Elected:
    """The outcome; `leader` is -1 for nobody."""

    leader: BrokerId
    choice: Choice

    @property
    def is_unclean(self) -> bool:
        """Whether records may have been lost by it."""
        return self.choice in _UNCLEAN


_UNCLEAN: Final = (Choice.LAST_KNOWN, Choice.UNCLEAN)
NOBODY: Final = Elected(NO_LEADER, Choice.NOBODY)

ElectionPolicy: TypeAlias = Callable[[Ballot, Election, Rules], Elected]
"""How a leader is found; `elect` is Kafka's. One of your own can be given wherever partitions are changed."""


def elect(ballot: Ballot, election: Election, rules: Rules) -> Elected:
    """Return the leader that Kafka's controller elects. Cost: linear in the replicas."""
    first = ballot.replicas[0]
    if election is Election.PREFERRED and first != ballot.leader and ballot.is_valid(first):
        return _clean(ballot, first)
    if ballot.leader != NO_LEADER and ballot.is_valid(ballot.leader):
        return Elected(ballot.leader, Choice.STAYS)
    for broker in ballot.replicas:
        if ballot.is_valid(broker):
            return _clean(ballot, broker)
    if _may_elect_last_known(ballot, rules):
        return Elected(ballot.last_known[0], Choice.LAST_KNOWN)
    if election is Election.UNCLEAN:
        for broker in ballot.replicas:
            if broker in ballot.acceptable:
                return Elected(broker, Choice.UNCLEAN)
    return NOBODY


def _clean(ballot: Ballot, broker: BrokerId) -> Elected:
    return Elected(broker, Choice.IN_SYNC if broker in ballot.isr else Choice.ELIGIBLE)


def _may_elect_last_known(ballot: Ballot, rules: Rules) -> bool:
    if not rules.elr or ballot.isr or ballot.elr or len(ballot.last_known) != 1:
        return False
    return not rules.last_known_leader_alive or ballot.last_known[0] in ballot.acceptable
