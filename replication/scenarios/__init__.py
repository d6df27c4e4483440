"""Named fault stories: what happens, and what must come of it."""

from __future__ import annotations

from replication.scenarios.catalogue import SCENARIOS
from replication.scenarios.scenario import Look, Scenario, differences

__all__ = ("SCENARIOS", "Look", "Scenario", "differences")
