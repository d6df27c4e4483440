"""Run named fault scenarios and compare each result with the known outcome.

- scenario: Define a fault scenario as data: a cluster, faults and operations, and the expected states and responses.
- operations: Define the operations of a scenario: single writes and reads, admin requests, held messages and crashes.
- catalogue/: Collect the scenarios by theme.
- result: Define what every kind of scenario has in common: its description and its result.
- extension: Perform a scenario's operations in a run, and note the logs and responses that the scenario compares.
- component_scenario: Define a scenario without a cluster: a script drives one log, or one search over a quorum.
- group_scenario: Define a scenario of consumer groups in the cluster: members, faults, and expected states.
- client: Send one write or one request at a time when the scenario says so.
- consumer: Consume a partition from its start; validate the position whenever the leader changes, if asked to.
- disk_faults: Define the disk faults of a scenario: a directory that fails, a bit that flips, a flush after each write.
- zombie_controller: Keep a replaced controller alive, with leaders that still send it AlterPartition.
- cli: Define the commands `scenario list` and `scenario run NAME`.

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
