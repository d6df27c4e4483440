"""Write a plan as the files and commands that Kafka's own tools take.

The same plan gives the same bytes; rows stand by topic, then partition, as Kafka prints them.
Source: Kafka 4.3.1 ReassignPartitionsCommand, LeaderElectionCommand (parseReplicaElectionData).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

import attrs
import numpy as np

from broker.cluster import Int32Array, Int64Array
from placement.formats.reassign import write_reassignment
from placement.planning.completion import OTHERS, Completion, completion, elected_besides, rollback_refused
from placement.planning.goal import Goal
from placement.planning.reassignment import Reassignment
from placement.spec import Assignment

BOOTSTRAP: Final = "$BOOTSTRAP"
"""What the commands name the servers to connect to; the user sets it."""
PLAN: Final = "plan.json"
"""The whole plan in the folder of a plan."""
_TOOL: Final = f'kafka-reassign-partitions.sh --bootstrap-server "{BOOTSTRAP}" --reassignment-json-file'


@attrs.frozen(kw_only=True)
class Step:
    """Name the files of one step: a reassignment, and a preferred election if one is needed.

    A step that copies nothing, because it only reorders replicas, gets no throttle.
    """

    reassignment: str
    election: str | None = None
    copies: bool = True


def reassignment_json(plan: Reassignment) -> str:
    """Return a plan as kafka-reassign-partitions takes it: one line without a final newline."""
    named = {(each.place, int(each.broker_id)): each.path for each in plan.log_dirs}
    return write_reassignment(_assignment(plan, plan.replicas), named)


def _assignment(plan: Reassignment, replicas: Int32Array) -> Assignment:
    table, names = plan.view.partitions, tuple(topic.name for topic in plan.view.topics)
    return Assignment(names, table.topic_index[plan.rows], table.partition_ids[plan.rows], replicas)


def election_command(path: str, kind: str = "preferred") -> str:
    """Return the command that holds an election, preferred or unclean, of the partitions in the file `path`."""
    tool = f'kafka-leader-election.sh --bootstrap-server "{BOOTSTRAP}"'
    return f"{tool} --election-type {kind} --path-to-json-file {path}"


def election_text(partitions: Iterable[tuple[str, int]]) -> str:
    """Return the partitions, by topic and number, as kafka-leader-election --path-to-json-file takes them."""
    listed = [{"topic": topic, "partition": partition} for topic, partition in partitions]
    return json.dumps({"partitions": listed}, separators=(",", ":"))


def needs_election(done: Completion) -> Int64Array:
    """Return the places whose preferred leader does not lead at completion, int64[n]; they need an election."""
    return np.flatnonzero(done.leader != done.preferred)


def election_json(plan: Reassignment, places: Int64Array) -> str:
    """Return the partitions at `places` as kafka-leader-election --path-to-json-file takes them."""
    part = plan.take(places)
    listed = json.loads(write_reassignment(_assignment(part, part.replicas)))["partitions"]
    return election_text((each["topic"], each["partition"]) for each in listed)


def commands(
    steps: Sequence[Step],
    *,
    throttle: int | None = None,
    rollback: str | None = None,
    refused: str = "",
    others: str | None = None,
) -> str:
    """Return the commands for `steps` in order, as lines of a shell; `throttle` is in bytes a second.

    `refused` says why --execute refuses the rollback as things
    stand. `others` is the file of an election that follows them all, of partitions that no step changes.
    """
    if not steps and others is None:
        return "# Nothing has to change.\n"
    rate = "" if throttle is None else f" --throttle {throttle}"
    count = "There is 1 step." if len(steps) == 1 else f"There are {len(steps)} steps, one after the other."
    if not steps:
        count = "No replica has to move."
    lines = [f"# Set the servers first: export BOOTSTRAP=host:9092. {count}"]
    for number, step in enumerate(steps, start=1):
        tool = f"{_TOOL} {step.reassignment}"
        lines += ["", f"# Step {number}. Verify until every partition is complete; that clears the throttle too."]
        lines += [f"{tool} --execute{rate if step.copies else ''}", f"{tool} --verify"]
        if step.election is not None:
            lines.append(f"{election_command(step.election)}")
    if others is not None:
        lines += [
            "",
            "# Elect the preferred leaders of other partitions, as the plan counts them:",
            f"{election_command(others)}",
        ]
    if rollback is not None:
        tool = f"{_TOOL} {rollback}"
        lines += ["", "# Back to the replicas as they were, if need be:", *([f"# {refused}"] if refused else [])]
        lines += [f"# {tool} --execute{rate}"]
    return "\n".join(lines) + "\n"


def plan_texts(
    plan: Reassignment, goal: Goal, batches: Sequence[Reassignment], *, throttle: int | None = None
) -> dict[str, str]:
    """Return the files of a plan for `goal` in `batches` by name; `throttle` is bytes a second."""
    back = plan.rollback(plan.view)
    files = {PLAN: reassignment_json(plan), "rollback.json": reassignment_json(back)}
    steps = []
    for number, part in enumerate(batches, start=1):
        batch, election = f"batch-{number:02d}.json", f"preferred-election-{number:02d}.json"
        places = needs_election(completion(part))
        elect = election if places.size else None
        steps.append(Step(reassignment=batch, election=elect, copies=bool(part.added.any())))
        files[batch] = reassignment_json(part)
        if places.size:
            files[election] = election_json(part, places)
    others = elected_besides(plan, goal)
    if others.count:
        files[OTHERS] = election_json(others, np.arange(others.count))
    named = OTHERS if others.count else None
    text = commands(
        steps,
        throttle=throttle,
        rollback="rollback.json" if steps else None,
        refused=rollback_refused(plan),
        others=named,
    )
    return {name: text + "\n" for name, text in files.items()} | {"commands.txt": text}
