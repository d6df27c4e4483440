"""What the scenarios share: short names for acts and faults, and the settings that many of them need.

It decides nothing; it is data.

Example: `moved_to(5_100, 1, 0)` makes broker 1 the preferred leader of partition 0, and leader.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.roles.messages import AlterPartitionReassignments, ElectLeaders
from replication.rules.election import Election
from replication.rules.settings import PartitionSettings
from replication.rules.switches import CURRENT, Truncation, without
from replication.scenarios.acts import Act, Held, Ordered, Written
from replication.scenarios.scenario import DEFAULT_SETTINGS, DEFAULT_TERMS, Scenario
from replication.simulation import Fault, FaultKind

MANY: Final = 10_000

PATIENT: Final = attrs.evolve(DEFAULT_SETTINGS, answer_ms_max=DurationMs(30_000))
"""Settings under which nobody asks again for 30 s: what is held back is not overtaken by a second question."""

NO_ELR: Final = attrs.evolve(DEFAULT_TERMS, rules=without(CURRENT, "elr"))
UNCLEAN: Final = attrs.evolve(DEFAULT_TERMS, unclean_election=True, rules=without(CURRENT, "elr"))
ALONE: Final = attrs.evolve(DEFAULT_TERMS, min_isr=1)
"""One in-sync replica is enough."""

QUICK_LAG: Final = DurationMs(1_000)
"""A replica.lag.time.max.ms for scenarios that wait for a follower to be dropped."""

PAIR: Final = Scenario(
    name="",
    title="",
    how="",
    source="",
    settings=ALONE,
    role_settings=PATIENT,
    brokers=2,
    replication_factor=2,
    producers=0,
    consumers=0,
    duration_ms=DurationMs(45_000),
)
"""Two brokers, a replica on each, and nothing happens but what a scenario says."""

TRIO: Final = attrs.evolve(PAIR, brokers=3, replication_factor=3, settings=DEFAULT_TERMS)

COMMON_EPOCH: Final = attrs.evolve(CURRENT, truncation=Truncation.BY_COMMON_EPOCH)

LOSS: Final = frozenset({"I4", "I5", "I6", "I7", "I9", "I16"})
"""What breaks when a member of the ISR cuts what is committed, and is elected."""

QUIET_TRIO: Final = Scenario(
    name="",
    title="",
    how="",
    source="",
    role_settings=PATIENT,
    producers=0,
    consumers=0,
)
"""Three brokers, a replica on each, for a minute in which nothing happens but what a scenario says."""


def terms_without(*names: str, lag_ms_max: DurationMs = DEFAULT_TERMS.lag_ms_max) -> PartitionSettings:
    """Return the usual settings without some rules."""
    return attrs.evolve(DEFAULT_TERMS, rules=without(CURRENT, *names), lag_ms_max=lag_ms_max)


def fault(at_ms: int, kind: FaultKind, target: int = 0, for_ms: int = 0, detail: int = 0) -> Fault:
    """Return a fault of a plan."""
    return Fault(TimeMs(at_ms), kind, target, DurationMs(for_ms), detail)


def moved_to(at_ms: int, *replicas: int) -> tuple[Act, ...]:
    """Return the orders that put the replicas of partition 0 in an order and, 10 ms later, let the first lead."""
    target = tuple(BrokerId(replica) for replica in replicas)
    return (
        Ordered(at_ms, AlterPartitionReassignments(0, target)),
        Ordered(at_ms + 10, ElectLeaders(0, Election.PREFERRED)),
    )


THREE_TURNS: Final[tuple[Act, ...]] = (
    Written(5_000, 0),
    Held(5_590, 8_000, "Fetch", sender=0),
    Held(5_590, 8_000, "OffsetsForLeaderEpoch", sender=0),
    Held(5_590, 6_100, "MetadataFetchResponse", receiver=2),
    *moved_to(5_600, 1, 0),
    Written(5_650, 1),
    Held(5_690, 5_900, "MetadataFetchResponse", receiver=1),
    *moved_to(5_700, 0, 1),
    Written(5_750, 0),
    *moved_to(5_800, 1, 0),
    Written(5_950, 1),
    *moved_to(6_000, 0, 1),
)
"""0 and 1 lead in turn, five epochs in all, and each writes what the other does not get."""
