"""Run named fault scenarios and compare each result with the known outcome.

- clients: Clients of a scenario: one that sends single writes and requests on order, and a consumer.
- operations: Define the operations of a scenario: requests, held messages, crashes, disks, controllers.
- extension: Performs a scenario's operations in a run, and notes the logs and responses that the scenario compares.
- result: Results of scenarios, and scenarios without a cluster: a script over one log or one search.
- scenario: A fault scenario as data: a cluster, faults and operations, and the expected states and responses.
- group_scenario: A scenario of consumer groups in the cluster: members, faults, and expected states.
- catalogue/: The scenarios by theme.
- cli: The commands `scenario list` and `scenario run NAME`.

Example:

>>> from replication.scenarios import SCENARIOS
>>> scenario = next(each for each in SCENARIOS if each.name == "S01-before")
>>> scenario.title
'Follower truncates to its own high watermark and a committed record is lost'
>>> scenario.play().is_expected
True
"""

from __future__ import annotations

from replication.scenarios.catalogue import SCENARIOS, NamedScenario
from replication.scenarios.result import ExpectedResponses, ScenarioResult
from replication.scenarios.scenario import ExpectedState, Scenario

__all__ = ("SCENARIOS", "ExpectedResponses", "ExpectedState", "NamedScenario", "Scenario", "ScenarioResult")
