"""The scenarios, by theme.

It decides nothing; it is data. Brokers are 0, 1, 2, replicas of partition 0 in this order, min.insync.replicas is 2 and
acks=all unless a scenario says otherwise. Times are in ms; the first 3 s belong to the start.

Source: each scenario names its own.
"""

from __future__ import annotations

from typing import Final

from replication.scenarios.catalogue.controllers import CONTROLLERS
from replication.scenarios.catalogue.durability import DURABILITY
from replication.scenarios.catalogue.elections import HISTORY_OF_ELECTIONS
from replication.scenarios.catalogue.failover import FAILOVER
from replication.scenarios.catalogue.groups import OF_GROUPS
from replication.scenarios.catalogue.in_sync import HISTORY_OF_THE_ISR
from replication.scenarios.catalogue.late_news import HISTORY_OF_LATE_NEWS
from replication.scenarios.catalogue.moving import MOVING
from replication.scenarios.catalogue.one_disk import ONE_DISK
from replication.scenarios.catalogue.retention import RETENTION
from replication.scenarios.catalogue.storage import STORAGE
from replication.scenarios.catalogue.truncation import HISTORY_OF_TRUNCATION
from replication.scenarios.catalogue.zookeeper import OLDER_MODE
from replication.scenarios.verdict import NamedScenario

_THEMES: Final[tuple[tuple[NamedScenario, ...], ...]] = (
    HISTORY_OF_TRUNCATION,
    HISTORY_OF_LATE_NEWS,
    HISTORY_OF_THE_ISR,
    HISTORY_OF_ELECTIONS,
    FAILOVER,
    DURABILITY,
    MOVING,
    ONE_DISK,
    OF_GROUPS,
    STORAGE,
    CONTROLLERS,
    OLDER_MODE,
    RETENTION,
)

SCENARIOS: Final[tuple[NamedScenario, ...]] = tuple(
    sorted((scenario for theme in _THEMES for scenario in theme), key=lambda scenario: int(scenario.name[1:3]))
)
"""Every scenario, by number."""

__all__ = ("SCENARIOS",)
