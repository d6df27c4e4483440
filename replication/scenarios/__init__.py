"""Named fault scenarios: what happens, and what must come of it."""

from __future__ import annotations

from replication.scenarios.catalogue import SCENARIOS
from replication.scenarios.scenario import Answers, Look, Scenario
from replication.scenarios.verdict import NamedScenario, Verdict

__all__ = ("SCENARIOS", "Answers", "Look", "NamedScenario", "Scenario", "Verdict")
