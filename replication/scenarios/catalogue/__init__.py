"""Collect the scenarios by theme.

Constraints: unless a scenario says otherwise, brokers are 0, 1 and 2, the replicas of partition 0 in this order;
min.insync.replicas is 2 and acks is all. Times are in ms; the brokers start during the first 3 s.

To add one: put a `Scenario` in the tuple of its theme, with the next free number, its outcome and the KIP, KAFKA issue
or incident that it is about. tests/replication/scenarios/test_scenarios.py plays all of `SCENARIOS`; an old bug gets a
second one, NAME-before, under rules `without` its fix.

Source: each scenario names its own.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from replication.scenarios.catalogue.durability import DURABILITY, RETENTION
from replication.scenarios.catalogue.elections import ELECTIONS, FAILOVER
from replication.scenarios.catalogue.groups import GROUP_COORDINATORS
from replication.scenarios.catalogue.isr_changes import ISR_CHANGES
from replication.scenarios.catalogue.reassignment import CONTROLLERS, REASSIGNMENT
from replication.scenarios.catalogue.stale_messages import STALE_MESSAGES
from replication.scenarios.catalogue.storage import STORAGE
from replication.scenarios.catalogue.truncation import TRUNCATION
from replication.scenarios.group_scenario import GroupScenario
from replication.scenarios.result import ComponentScenario
from replication.scenarios.scenario import Scenario

NamedScenario: TypeAlias = Scenario | GroupScenario | ComponentScenario

_THEMES: Final[tuple[tuple[NamedScenario, ...], ...]] = (
    TRUNCATION,
    STALE_MESSAGES,
    ISR_CHANGES,
    ELECTIONS,
    FAILOVER,
    DURABILITY,
    REASSIGNMENT,
    GROUP_COORDINATORS,
    STORAGE,
    CONTROLLERS,
    RETENTION,
)


def scenario_number(name: str) -> int:
    """Return the number in a scenario's name: 3 for "S03b-before"."""
    found = re.match(r"S(\d+)", name)
    assert found is not None, name
    return int(found[1])


SCENARIOS: Final[tuple[NamedScenario, ...]] = tuple(
    sorted((scenario for theme in _THEMES for scenario in theme), key=lambda scenario: scenario_number(scenario.name))
)
"""All scenarios, by number."""

__all__ = ("SCENARIOS", "NamedScenario", "scenario_number")
