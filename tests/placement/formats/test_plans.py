"""Plans over a view: what is used, what is rejected and why, and what a plan says of the state before."""

from __future__ import annotations

import json
import random

import attrs
import pytest

from broker.cluster import BrokerView, ClusterView, PartitionTable, TopicView
from broker.errors import InputError
from broker.ids import BrokerId
from placement.formats import entries
from placement.formats.plan_files import Step, commands, election_json, needs_election, reassignment_json
from placement.formats.plans import ParsedPlan, read_plan
from placement.formats.read import read_dump
from placement.planning.completion import completion
from placement.planning.reassignment import LogDirTarget, Reassignment
from tests.placement.formats.samples import REAL_DATA
from tests.placement.planning.cases import lists, random_plan, random_view

VIEW = ClusterView.build(
    name="prod",
    source="inline",
    format="test",
    brokers=[BrokerView(id=BrokerId(number)) for number in range(1, 6)],
    topics=(TopicView("orders"), TopicView("eu.audit-log")),
    partitions=PartitionTable(
        topic_index=[0, 0, 1],
        partition_ids=[0, 1, 0],
        replicas=[[1, 2, 3], [2, 3, 1], [3, 4, -1]],
        leader=[1, 2, 3],
    ),
)


def read(*documents: object, captions: tuple[str, ...] = ("",)) -> ParsedPlan:
    texts = [f"{caption}\n{json.dumps(each)}\n" for caption, each in zip(captions, documents, strict=False)]
    return read_plan(["".join(texts).encode()], source="plan.json", view=VIEW)


def entry(topic: object, partition: object, replicas: object, **rest: object) -> dict[str, object]:
    return {"topic": topic, "partition": partition, "replicas": replicas, **rest}


def plan_of(*entries: object) -> dict[str, object]:
    return {"version": 1, "partitions": list(entries)}


def test_entries_become_rows_of_the_view_in_the_order_of_the_plan() -> None:
    found = read(plan_of(entry("eu.audit-log", 0, [5, 4, 1]), entry("orders", 1, [2, 3, 1])))
    plan = found.reassignment
    assert plan.rows.tolist() == [2, 1]
    assert lists(plan.replicas) == [[5, 4, 1], [2, 3, 1]]
    assert [plan.name(place) for place in range(2)] == ["eu.audit-log-0", "orders-1"]
    assert (found.unchanged_count, found.stale_count, found.refusal) == (1, 0, None)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (entry("gone", 0, [1]), "topic gone is not in cluster prod"),
        (entry("orders", 7, [1]), "topic orders has no partition 7 among its 2 in the cluster"),
        (
            entry("orders", 0, [1, 9]),
            "broker 9 is not in cluster prod; --add or --racks names one that holds nothing",
        ),
        (entry("orders", 0, [1], log_dirs=["d"]), 'log_dirs holds something other than "any" and absolute paths'),
        (entry("orders", 1, [1]), "partition 1 of orders is already given by partitions[0]"),
    ],
)
def test_an_entry_that_kafka_would_refuse_is_rejected_with_its_place(bad: object, reason: str) -> None:
    """Of what the view says; what any entry may lack is in test_json_formats.py."""
    found = read(plan_of(entry("orders", 1, [1, 2, 3]), bad))
    assert [reject.reason for reject in found.rejects] == [f"partitions[1]: {reason}"]
    assert (found.rows_in, found.rows_analysed, found.rows_rejected) == (2, 1, 1)
    assert found.reassignment.rows.tolist() == [1]
    assert found.refusal == f"kafka-reassign-partitions refuses the whole file plan.json: partitions[1]: {reason}"


@pytest.mark.parametrize("seed", range(30))
def test_entries_checked_at_once_are_those_checked_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    fields: list[list[object]] = [
        ["orders"] * 9 + ["eu.audit-log", "gone", "a b", ["orders"], None],
        [0, 1] * 6 + [2, 7, True, -1, 10**30, "0"],
        [[1, 2]] * 9 + [[1, 2, 3], [5, 4], [3], [], [1, 1], [1, 9], ["1"], [True], [[1]], [1.0], [10**30], None, "12"],
    ]
    dirs: list[object] = [None] * 9 + [["any", "any"], ["any"], ["/d", "any"], ["any", 1], "any"]
    drawn = [entry(*map(chance.choice, fields), log_dirs=chance.choice(dirs)) for _ in range(60)]
    plan = plan_of(*drawn, 7, [], entry("orders", 1, [1, 2, 3]))
    monkeypatch.setattr(entries, "BATCH_COUNT", chance.choice([1, 1, 2, 5]))
    at_once = read(plan)
    monkeypatch.setattr(entries.Columns, "of", lambda _: None)
    for field in attrs.fields(ParsedPlan):
        if field.name != "reassignment":
            assert getattr(at_once, field.name) == getattr(read(plan), field.name), field.name
    found, wanted = at_once.reassignment, read(plan).reassignment
    assert (found.rows.tolist(), found.log_dirs) == (wanted.rows.tolist(), wanted.log_dirs)
    assert lists(found.replicas) == lists(wanted.replicas)


def test_lines_that_are_no_plan_are_counted_and_noted() -> None:
    found = read(plan_of(entry("orders", 0, [2, 1, 3])), captions=("$ cat plan.json\nsome words",))
    assert found.lines_passed_over == 2
    assert found.notes == ("2 lines are no rows and were passed over; the first: line 1, '$ cat plan.json'",)
    assert read(plan_of(entry("orders", 0, [2, 1, 3]))).notes == ()


def test_log_directories_other_than_any_are_kept_with_their_broker() -> None:
    found = read(plan_of(entry("orders", 0, [1, 2, 3], log_dirs=["any", "/d1/kafka", "any"])))
    assert found.reassignment.log_dirs == (LogDirTarget(place=0, broker_id=BrokerId(2), path="/d1/kafka"),)
    assert found.unchanged_count == 0


def test_of_what_generate_prints_the_proposed_document_is_the_plan() -> None:
    captions = ("Current partition replica assignment", "\nProposed partition reassignment configuration")
    now, then = plan_of(entry("orders", 0, [1, 2, 4])), plan_of(entry("orders", 0, [4, 2, 1]))
    found = read(now, then, captions=captions)
    assert lists(found.reassignment.replicas) == [[4, 2, 1]]
    assert found.stale_count == 1


def test_two_plans_in_one_file_are_refused() -> None:
    with pytest.raises(InputError) as raised:
        read(plan_of(entry("orders", 0, [1])), plan_of(entry("orders", 1, [1])), captions=("", ""))
    assert str(raised.value) == "plan.json:4: 2 plans in one file; give each batch a file of its own, in their order"


def proposal(topic: str, partition: int, old: list[int], new: list[int]) -> dict[str, object]:
    where = {"topic": topic, "partition": partition, "hash": 1}
    return {"topicPartition": where, "oldLeader": old[0], "oldReplicas": old, "newReplicas": new}


def test_proposals_of_cruise_control_are_a_plan_also_in_an_envelope_of_user_tasks() -> None:
    answer = {"summary": {}, "proposals": [proposal("orders", 0, [1, 2, 5], [4, 2, 3]), {}], "version": 1}
    envelope = {"userTasks": [{"originalResponse": json.dumps(answer)}, {"Status": "Active"}], "version": 1}
    for given in (answer, envelope):
        found = read(given)
        assert found.format == "cruise-control-proposals"
        assert lists(found.reassignment.replicas) == [[4, 2, 3]]
        assert (found.rows_in, found.rows_rejected, found.stale_count, found.refusal) == (2, 1, 1, None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"summary": {}, "goalSummary": []},
            "plan.json:2: a Cruise Control answer without proposals; ask for it with json=true and verbose=true",
        ),
        (
            {"topics": [{"topic": "orders"}]},
            "plan.json:2: a JSON object that is no plan; a plan is kafka-reassign-partitions or "
            'cruise-control-proposals (found \'{"topics": [{"topic": "orders"}]}\')',
        ),
        (
            {"version": 2, "partitions": []},
            "plan.json:2: the reassignment's version is not 1, the only one there is (found '2')",
        ),
        (plan_of(), "plan.json: the plan has no partition; kafka-reassign-partitions refuses an empty list"),
        ({"proposals": [], "summary": {}}, "plan.json: the plan has no proposal"),
    ],
)
def test_what_is_no_plan_is_refused(given: object, words: str) -> None:
    with pytest.raises(InputError) as raised:
        read(given)
    assert str(raised.value) == words


def test_a_real_map_of_topicmappr_is_a_plan_over_the_map_before() -> None:
    folder = REAL_DATA / "topicmappr"
    view = read_dump([(folder / "optimize_input.json").read_bytes()], source="before").clusters[0]
    found = read_plan([(folder / "optimize_output.json").read_bytes()], source="map", view=view)
    assert found.rows_rejected == 0
    assert found.rows_in == view.partitions.count
    assert not found.reassignment.added.any()  # topicmappr's optimize-leadership only reorders.
    assert 0 < found.unchanged_count < found.rows_in


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
    places = needs_election(completion(plan))
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
