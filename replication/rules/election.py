"""Decide which replica leads next: preferred, clean and unclean leader election.

What it decides: the leader of a partition, from its replicas, ISR and ELR, and the brokers that may lead.

Goals, most important first:
1. A clean election loses no committed record: the leader comes from the ISR or, if that is empty, from the ELR.
2. A leader that may stay, stays (unless the preferred leader is asked for).
3. Availability before consistency only where the operator asked for it (unclean.leader.election.enable).

Constraints: whoever is elected is acceptable: unfenced, not shutting down, its directory online. The order of the
assignment breaks ties. The log of an unclean leader is not looked at: the first acceptable replica leads.

How: each kind of election takes the first step that gives a leader.
- PREFERRED: the first replica if valid; the current leader if valid; the first other valid replica; the last known
  leader.
- ONLINE: the current leader if valid; the first valid replica; the last known leader.
- UNCLEAN: as ONLINE, then the first acceptable replica.
A replica is valid if it is acceptable and in the ISR, or acceptable and in the ELR while the ISR is empty. The last
known leader counts only if ISR and ELR are empty and exactly one is known; electing it is unclean.

Example: of replicas (1, 2, 3) with ISR (2, 3), brokers 1 and 3 are alive.

>>> from replication.rules.switches import CURRENT
>>> one, two, three = BrokerId(1), BrokerId(2), BrokerId(3)
>>> ballot = Ballot(replicas=(one, two, three), isr=(two, three), acceptable={one, three})
>>> elect(ballot, Election.ONLINE, CURRENT).leader, elect(ballot, Election.PREFERRED, CURRENT).leader
(3, 3)
>>> elect(attrs.evolve(ballot, isr=(two,)), Election.ONLINE, CURRENT).leader
-1
>>> elect(attrs.evolve(ballot, isr=(two,)), Election.UNCLEAN, CURRENT).leader
1

Left out: the unclean recovery of KIP-966's second part, which compares logs; no release has it.

Source: Kafka metadata PartitionChangeBuilder.electLeader, electPreferredLeader and electAnyLeader (the ElectLeaders
request ends here), 4.3.1; KIP-460, KIP-966; KAFKA-19522 for the last known leader's liveness.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Container
from typing import Final, TypeAlias

import attrs

from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId
from replication.rules.switches import Rules


class Election(enum.Enum):
    """Name the kinds of election, as Kafka's PartitionChangeBuilder.Election does."""

    PREFERRED = enum.auto()
    """Elect the first replica of the assignment if it is in sync (ElectionType.PREFERRED)."""

    ONLINE = enum.auto()
    """Keep the partition online with a leader that has every committed record."""

    UNCLEAN = enum.auto()
    """Keep the partition online, with a leader that lacks records if there is no other (ElectionType.UNCLEAN)."""


class Choice(enum.Enum):
    """Name the ground on which a leader was elected."""

    STAYS = enum.auto()
    """The current leader is valid and stays."""

    IN_SYNC = enum.auto()
    """The leader is in the ISR."""

    ELIGIBLE = enum.auto()
    """The ISR is empty and the leader is in the ELR."""

    LAST_KNOWN = enum.auto()
    """ISR and ELR are empty and the leader led last; it may lack committed records."""

    UNCLEAN = enum.auto()
    """The leader is acceptable and nothing more; it may lack committed records."""

    NOBODY = enum.auto()
    """No replica was elected."""


@attrs.frozen(kw_only=True)
class Ballot:
    """Hold the input of an election: `isr` and `elr` as they will be, `leader` and `last_known` as they are now."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    elr: tuple[BrokerId, ...] = ()
    leader: BrokerId = NO_LEADER
    last_known: tuple[BrokerId, ...] = ()
    acceptable: Container[BrokerId]

    def is_valid(self, broker: BrokerId) -> bool:
        """Return whether electing a broker loses no committed record and the broker is acceptable."""
        if broker in self.isr or (not self.isr and broker in self.elr):
            return broker in self.acceptable
        return False


@attrs.frozen
class Elected:
    """Hold the result of an election; `leader` is -1 if no replica was elected."""

    leader: BrokerId
    choice: Choice

    @property
    def is_unclean(self) -> bool:
        """Return whether the elected leader may lack committed records."""
        return self.choice in _UNCLEAN


_UNCLEAN: Final = (Choice.LAST_KNOWN, Choice.UNCLEAN)
NOBODY: Final = Elected(NO_LEADER, Choice.NOBODY)

ElectionPolicy: TypeAlias = Callable[[Ballot, Election, Rules], Elected]
"""A function that elects a leader; `elect` is Kafka's. Callers may pass their own wherever partitions change."""


class PolicyError(UsageError):
    """An election policy of the caller answered something that is no election of one of the replicas."""


def check_elected(elected: object, ballot: Ballot) -> None:
    """Raise PolicyError unless a policy's answer elects one of the replicas, or nobody."""
    if not isinstance(elected, Elected) or type(elected.leader) is not int or not isinstance(elected.choice, Choice):
        raise PolicyError(f"the election policy answers {elected!r}; wanted is Elected(leader, choice)")
    if elected.leader != NO_LEADER and elected.leader not in ballot.replicas:
        replicas = ", ".join(map(str, ballot.replicas))
        raise PolicyError(f"the election policy elects broker {elected.leader}; the replicas are {replicas}")


def elect(ballot: Ballot, election: Election, rules: Rules) -> Elected:
    """Return the leader that Kafka's controller elects. Cost: linear in the replicas."""
    first = ballot.replicas[0]
    if election is Election.PREFERRED and first != ballot.leader and ballot.is_valid(first):
        return _clean(ballot, first)
    # Moving leadership without need interrupts clients, so the current leader comes before the order of the assignment.
    if ballot.leader != NO_LEADER and ballot.is_valid(ballot.leader):
        return Elected(ballot.leader, Choice.STAYS)
    for broker in ballot.replicas:
        if ballot.is_valid(broker):
            return _clean(ballot, broker)
    if _may_elect_last_known(ballot, rules):
        return Elected(ballot.last_known[0], Choice.LAST_KNOWN)
    if election is Election.UNCLEAN:
        # The logs are not compared: the first acceptable replica leads, and its log becomes the partition's.
        for broker in ballot.replicas:
            if broker in ballot.acceptable:
                return Elected(broker, Choice.UNCLEAN)
    return NOBODY


def _clean(ballot: Ballot, broker: BrokerId) -> Elected:
    return Elected(broker, Choice.IN_SYNC if broker in ballot.isr else Choice.ELIGIBLE)


def _may_elect_last_known(ballot: Ballot, rules: Rules) -> bool:
    # With two or more known nobody can say which of them led last, and which of them has the most records.
    if not rules.elr or ballot.isr or ballot.elr or len(ballot.last_known) != 1:
        return False
    if ballot.last_known[0] not in ballot.replicas:
        return False  # Kafka's builder fails where it is alive: the last known leader may be no replica any more.
    return not rules.last_known_leader_alive or ballot.last_known[0] in ballot.acceptable
