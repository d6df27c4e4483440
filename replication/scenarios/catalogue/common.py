"""Define what the scenarios share: settings, clusters and short functions for operations and faults.

Example: `reassign_and_elect(5_100, 1, 0)` makes broker 1 the preferred leader of partition 0, then elects it.
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
from replication.scenarios.operations import AskController, HoldMessages, Operation, SendRecord
from replication.scenarios.scenario import DEFAULT_PARTITION_SETTINGS, DEFAULT_ROLE_SETTINGS, Scenario
from replication.simulation import Fault, FaultKind

MANY: Final = 10_000

PATIENT: Final = attrs.evolve(DEFAULT_ROLE_SETTINGS, answer_ms_max=DurationMs(30_000))
"""Requests are repeated after 30 s only, so that a retry does not overtake a held message."""

NO_ELR: Final = attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, "elr"))
UNCLEAN: Final = attrs.evolve(DEFAULT_PARTITION_SETTINGS, unclean_election=True, rules=without(CURRENT, "elr"))
ALONE: Final = attrs.evolve(DEFAULT_PARTITION_SETTINGS, min_isr=1)
"""One in-sync replica is enough."""

QUICK_LAG: Final = DurationMs(1_000)
"""A replica.lag.time.max.ms for scenarios that wait until a follower leaves the ISR."""

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
"""Two brokers with a replica each; nothing happens but the operations of the scenario."""

TRIO: Final = attrs.evolve(PAIR, brokers=3, replication_factor=3, settings=DEFAULT_PARTITION_SETTINGS)

COMMON_EPOCH: Final = attrs.evolve(CURRENT, truncation=Truncation.BY_COMMON_EPOCH)

LOSS: Final = frozenset({"I4", "I5", "I6", "I7", "I9", "I16"})
"""The invariants that break when a member of the ISR truncates committed records and is elected."""

QUIET_TRIO: Final = Scenario(
    name="",
    title="",
    how="",
    source="",
    role_settings=PATIENT,
    producers=0,
    consumers=0,
)
"""Three brokers with a replica each, for a minute; nothing happens but the operations of the scenario."""


def settings_without(*names: str, lag_ms_max: DurationMs = DEFAULT_PARTITION_SETTINGS.lag_ms_max) -> PartitionSettings:
    """Return the default partition settings with some rules switched off."""
    return attrs.evolve(DEFAULT_PARTITION_SETTINGS, rules=without(CURRENT, *names), lag_ms_max=lag_ms_max)


def fault(at_ms: int, kind: FaultKind, target: int = 0, for_ms: int = 0, detail: int = 0) -> Fault:
    """Return a fault of a plan."""
    return Fault(TimeMs(at_ms), kind, target, DurationMs(for_ms), detail)


def reassign(at_ms: int, *replicas: int) -> AskController:
    """Return the request that moves partition 0 to `replicas`, in this order."""
    return AskController(at_ms, AlterPartitionReassignments(0, tuple(map(BrokerId, replicas))))


def reassign_and_elect(at_ms: int, *replicas: int) -> tuple[Operation, ...]:
    """Return the requests that reorder the replicas of partition 0 and, 10 ms later, elect the first one."""
    return (reassign(at_ms, *replicas), AskController(at_ms + 10, ElectLeaders(0, Election.PREFERRED)))


THREE_FAILOVERS: Final[tuple[Operation, ...]] = (
    SendRecord(5_000, 0),
    HoldMessages(5_590, 8_000, "Fetch", sender=0),
    HoldMessages(5_590, 8_000, "OffsetsForLeaderEpoch", sender=0),
    HoldMessages(5_590, 6_100, "MetadataFetchResponse", receiver=2),
    *reassign_and_elect(5_600, 1, 0),
    SendRecord(5_650, 1),
    HoldMessages(5_690, 5_900, "MetadataFetchResponse", receiver=1),
    *reassign_and_elect(5_700, 0, 1),
    SendRecord(5_750, 0),
    *reassign_and_elect(5_800, 1, 0),
    SendRecord(5_950, 1),
    *reassign_and_elect(6_000, 0, 1),
)
"""Brokers 0 and 1 lead in turn for five epochs; each writes records that the other does not copy."""
