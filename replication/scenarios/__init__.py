"""Run named fault scenarios and compare what happens with the known outcome of each.

Example:

>>> from replication.scenarios import SCENARIOS
>>> scenario = next(each for each in SCENARIOS if each.name == "S01-before")
>>> scenario.title
'Follower truncates to its own high watermark and a committed record is lost'
>>> scenario.play().is_expected
True
"""

from __future__ import annotations

from replication.scenarios.catalogue import SCENARIOS
from replication.scenarios.result import NamedScenario, ScenarioResult
from replication.scenarios.scenario import ExpectedResponses, ExpectedState, Scenario

__all__ = ("SCENARIOS", "ExpectedResponses", "ExpectedState", "NamedScenario", "Scenario", "ScenarioResult")
