"""Files of a plan: what kafka-reassign-partitions and kafka-leader-election take, and the commands to run them."""

from __future__ import annotations

import json
import random

import attrs
import pytest

from broker.ids import BrokerId
from placement.formats.plan_files import Step, commands, election_json, needs_election, reassignment_json
from placement.formats.plans import read_plan
from placement.planning.completion import completion
from placement.planning.reassignment import LogDirTarget, Reassignment
from tests.placement.formats.test_plans import VIEW
from tests.placement.planning.cases import lists, random_plan, random_view


def test_rows_stand_by_topic_and_partition_with_their_directories() -> None:
    dirs = (LogDirTarget(place=0, broker_id=BrokerId(5), path="/d5"),)
    plan = Reassignment(view=VIEW, rows=[1, 2], replicas=[[5, 3, 1], [4, 3, -1]], log_dirs=dirs)
    assert reassignment_json(plan) == (
        '{"version":1,"partitions":[{"topic":"eu.audit-log","partition":0,"replicas":[4,3],"log_dirs":["any","any"]},'
        '{"topic":"orders","partition":1,"replicas":[5,3,1],"log_dirs":["/d5","any","any"]}]}'
    )


@pytest.mark.parametrize("seed", range(50))
def test_what_is_written_is_read_again(seed: int) -> None:
    view = random_view(random.Random(seed))
    plan = random_plan(random.Random(seed), view)
    again = read_plan([reassignment_json(plan).encode()], source="plan.json", view=view)
    assert again.rows_rejected == 0
    written = dict(zip(plan.rows.tolist(), lists(plan.replicas), strict=True))
    assert dict(zip(again.reassignment.rows.tolist(), lists(again.reassignment.replicas), strict=True)) == written


def test_an_election_is_held_where_the_first_replica_does_not_lead_by_itself() -> None:
    table = attrs.evolve(VIEW.partitions, isr=VIEW.partitions.replicas)
    view = attrs.evolve(VIEW, partitions=table)
    plan = Reassignment(view=view, rows=[0, 1, 2], replicas=[[3, 2, 1], [4, 3, 1], [3, 5, -1]])
    places = needs_election(plan, completion(plan))
    assert json.loads(election_json(plan, places)) == {"partitions": [{"topic": "orders", "partition": 0}]}


def test_the_commands_name_the_files_the_throttle_and_the_way_back() -> None:
    steps = (Step(reassignment="batch-01.json"), Step(reassignment="batch-02.json", election="preferred-02.json"))
    tool = 'kafka-reassign-partitions.sh --bootstrap-server "$BOOTSTRAP" --reassignment-json-file'
    elect = 'kafka-leader-election.sh --bootstrap-server "$BOOTSTRAP" --election-type preferred --path-to-json-file'
    lines = commands(steps, throttle=50_000_000, rollback="rollback.json").splitlines()
    assert [line for line in lines if line and not line.startswith("# S")] == [
        f"{tool} batch-01.json --execute --throttle 50000000",
        f"{tool} batch-01.json --verify",
        f"{tool} batch-02.json --execute --throttle 50000000",
        f"{tool} batch-02.json --verify",
        f"{elect} preferred-02.json",
        "# Back to the replicas as they were, if need be:",
        f"# {tool} rollback.json --execute --throttle 50000000",
    ]
    assert "--throttle" not in commands(steps)
