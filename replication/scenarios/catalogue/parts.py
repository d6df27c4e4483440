"""What the stories share: short names for acts and faults, and the settings that many of them need.

It decides nothing; it is data.

Example: `moved_to(5_100, 1, 0)` makes broker 1 the preferred leader of partition 0, and leader.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.ids import BrokerId
from broker.units import DurationMs, TimeMs
from replication.election import Election
from replication.roles.messages import Elect, Reassign
from replication.rules import CURRENT, without
from replication.scenarios.acts import Act, Ordered
from replication.scenarios.scenario import DEFAULT_SETTINGS, DEFAULT_TERMS
from replication.simulation import Fault, FaultKind

MANY: Final = 10_000

PATIENT: Final = attrs.evolve(DEFAULT_SETTINGS, answer_ms_max=DurationMs(30_000))
"""Settings under which nobody asks again for 30 s: what is held back is not overtaken by a second question."""

NO_ELR: Final = attrs.evolve(DEFAULT_TERMS, rules=without(CURRENT, "elr"))
UNCLEAN: Final = attrs.evolve(DEFAULT_TERMS, unclean_election=True, rules=without(CURRENT, "elr"))
ALONE: Final = attrs.evolve(DEFAULT_TERMS, min_isr=1)
"""One in-sync replica is enough."""

QUICK_LAG: Final = DurationMs(1_000)
"""A replica.lag.time.max.ms for stories that wait for a follower to be dropped."""


def fault(at_ms: int, kind: FaultKind, target: int = 0, for_ms: int = 0, detail: int = 0) -> Fault:
    """Return a fault of a plan."""
    return Fault(TimeMs(at_ms), kind, target, DurationMs(for_ms), detail)


def moved_to(at_ms: int, *replicas: int) -> tuple[Act, ...]:
    """Return the orders that put the replicas of partition 0 in an order and, 10 ms later, let the first lead."""
    target = tuple(BrokerId(replica) for replica in replicas)
    return (Ordered(at_ms, Reassign(0, target)), Ordered(at_ms + 10, Elect(0, Election.PREFERRED)))
