"""The same input gives the same plans, batches, files and findings in processes with different hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.deep

PROGRAM = """
import random
from placement.formats.plan_files import reassignment_json
from placement.planning.findings import findings
from placement.planning.impact import impact
from placement.planning.schedule import Limits, schedule
from tests.placement.planning.cases import random_plan, random_view
from tests.placement.planning.test_plan import planned

for seed in range(60):
    plan = planned(seed)
    print(None if plan is None else (plan.reassignment.rows.tolist(), plan.reassignment.replicas.tolist()))
for seed in range(20):
    chance = random.Random(seed)
    plan = random_plan(chance, random_view(chance))
    found = schedule(plan, Limits(batch_count=3))
    print(found.seconds, *(reassignment_json(part) for part in found.parts()), findings(impact(found.parts())))
"""


def test_processes_with_different_hash_seeds_agree() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert printed[0].count(b"version") >= 20
