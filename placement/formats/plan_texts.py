"""Write the files of a plan that Kafka's own tools take: the plan, its batches, elections, the way back, the commands.

What it decides: which files there are, by name: plan.json, rollback.json, batch-NN.json, preferred-election-NN.json,
preferred-election-others.json and commands.txt.

Constraints: every partition of the plan is in one batch. An election follows each batch after which a partition is not
led by its preferred leader. One more, of others, brings to their preferred leader the partitions that the plan leaves
alone and counts as led by it.

Source: ours; the texts are those of plan_files.py.
"""

from __future__ import annotations

import numpy as np

from placement.formats.plan_files import (
    OTHERS,
    Step,
    commands,
    elected_besides,
    election_json,
    needs_election,
    reassignment_json,
)
from placement.reassignment.completion import completion
from placement.reassignment.plan import Plan
from placement.reassignment.reassignment import Reassignment
from placement.reassignment.schedule import Schedule


def plan_texts(plan: Plan, schedule: Schedule, *, throttle: int | None = None) -> dict[str, str]:
    """Return the files of a plan by name; `throttle` is bytes a second."""
    files = {"plan.json": reassignment_json(plan.reassignment), "rollback.json": reassignment_json(rollback(plan))}
    steps = []
    for number, part in enumerate(schedule.parts(), start=1):
        batch, election = f"batch-{number:02d}.json", f"preferred-election-{number:02d}.json"
        places = needs_election(part, completion(part))
        elect = election if places.size else None
        steps.append(Step(reassignment=batch, election=elect, copies=bool(part.added.any())))
        files[batch] = reassignment_json(part)
        if places.size:
            files[election] = election_json(part, places)
    others = elected_besides(plan.reassignment, plan.goal)
    if others.count:
        files[OTHERS] = election_json(others, np.arange(others.count))
    named = OTHERS if others.count else None
    text = commands(steps, throttle=throttle, rollback="rollback.json" if steps else None, others=named)
    return {name: text + "\n" for name, text in files.items()} | {"commands.txt": text}


def rollback(plan: Plan) -> Reassignment:
    """Return the reassignment that brings the rows of a plan back."""
    return Reassignment(view=plan.view, rows=plan.reassignment.rows, replicas=plan.reassignment.current)
