"""Plans against released Kafka: files that it takes or refuses, moves that it starts and completes.

How: random plans of small views; each is written as we write it and read by kafka-reassign-partitions, and every row is
started and completed by PartitionReassignmentReplicas, by `replication` and by `placement.planning.completion`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import pytest

from broker.ids import BrokerId
from broker.releases import NEWEST
from placement.formats.plan_files import reassignment_json
from placement.formats.plans import read_plan
from placement.planning.completion import completion
from placement.planning.reassignment import LogDirTarget, Reassignment
from placement.planning.schedule import Limits, schedule
from replication.rules.partition import PartitionState
from replication.rules.reassign import completed, started
from replication.rules.switches import rules_of
from tests.kafka.jvm import Json, KafkaJvm, KafkaThrewError
from tests.placement.planning.cases import lists, random_plan, random_view

pytestmark = pytest.mark.kafka

PLANS = 400


def plans() -> Iterator[Reassignment]:
    for seed in range(PLANS):
        chance = random.Random(seed)
        yield random_plan(chance, random_view(chance, in_sync=0.6))


def moved(kafka: KafkaJvm, rows: Sequence[tuple[list[int], list[int], list[int]]]) -> list[dict[str, Json]]:
    """Return how Kafka starts moves, each from current replicas to a target, and what they complete to with an ISR."""
    asked = [{"current": current, "target": target, "isr": isr} for current, target, isr in rows]
    answer: list[dict[str, Json]] = kafka.call("moves", rows=asked)
    return answer


def test_every_file_of_a_plan_and_of_its_batches_is_taken_as_it_is_meant(kafka: KafkaJvm) -> None:
    for number, plan in enumerate(plans()):
        dirs = (LogDirTarget(place=0, broker_id=BrokerId(int(plan.replicas[0][0])), path="/d"),) if number % 3 else ()
        whole = attrs.evolve(plan, log_dirs=dirs)
        for part in (whole, *schedule(whole, Limits(batch_count=3)).parts()):
            text = reassignment_json(part)
            read = {(row["topic"], row["partition"]): row for row in kafka.call("plan", text=text)}
            meant = {(row["topic"], row["partition"]): row for row in json.loads(text)["partitions"]}
            assert read == meant
            assert len(read) == part.count


def test_moves_start_and_complete_as_kafka_says_in_replication_and_in_columns(kafka: KafkaJvm) -> None:
    rules, complete, blocked = rules_of(kafka.release), 0, 0
    for plan in plans():
        table = plan.view.partitions
        assert table.isr is not None
        current, target = lists(plan.current), lists(plan.replicas)
        isr_of = lists(table.isr[plan.rows])
        full = [
            sorted({*isr, *target_row} - (set(now) - set(isr)))
            for isr, target_row, now in zip(isr_of, target, current, strict=True)
        ]
        theirs = moved(kafka, list(zip(current, target, full, strict=True)))
        ours = completion(plan, kafka.release)
        for place, row in enumerate(theirs):
            state = PartitionState(
                replicas=tuple(map(BrokerId, current[place])),
                isr=tuple(map(BrokerId, isr_of[place])),
                leader=BrokerId(isr_of[place][0]),
            )
            phase = started(state, tuple(map(BrokerId, target[place])))
            assert list(phase.replicas) == row["replicas"]
            assert list(phase.adding) == row["adding"] == sorted(plan.replicas[place][plan.added[place]].tolist())
            assert list(phase.removing) == row["removing"] == sorted(plan.current[place][plan.removed[place]].tolist())
            end = completed(attrs.evolve(phase, isr=tuple(map(BrokerId, full[place]))), rules)
            assert (None if end is None else list(end.replicas)) == row.get("doneReplicas")
            if not row["adding"] and not row["removing"]:
                continue
            assert bool(ours.is_blocked[place]) == (row.get("doneReplicas") is None)
            if row.get("doneIsr") is not None:
                assert sorted(row.get("doneIsr")) == sorted(lists(ours.isr)[place])
            complete += row.get("doneReplicas") is not None
            blocked += row.get("doneReplicas") is None
    assert complete > 200
    assert blocked > 50


REFUSED = [
    {"topic": "a-topic", "partition": 0, "replicas": []},
    {"topic": "a-topic", "partition": 0, "replicas": [1, 1]},
    {"topic": "a-topic", "partition": 0, "replicas": [1, 2], "log_dirs": ["any"]},
    {"topic": ["a-topic"], "partition": 0, "replicas": [1]},
    {"topic": "a-topic", "partition": 0, "replicas": ["1"]},
    {"topic": "a-topic", "partition": "0", "replicas": [1]},
    {"topic": "a-topic", "replicas": [1]},
]


@pytest.mark.parametrize("entry", REFUSED, ids=str)
def test_an_entry_that_we_reject_is_refused_by_kafka_with_the_whole_file(
    kafka: KafkaJvm, entry: dict[str, object]
) -> None:
    view = random_view(random.Random(2), partition_count=8)
    good = random_plan(random.Random(2), view).take([0])
    document = json.loads(reassignment_json(good))
    document["partitions"].append(entry)
    ours = read_plan([json.dumps(document).encode()], source="plan.json", view=view)
    assert ours.rows_rejected == 1
    assert ours.refusal is not None
    with pytest.raises(KafkaThrewError):
        kafka.call("plan", text=json.dumps(document))


def test_a_partition_named_twice_is_refused_by_both(kafka: KafkaJvm) -> None:
    view = random_view(random.Random(2), partition_count=8)
    document = json.loads(reassignment_json(random_plan(random.Random(2), view).take([0])))
    document["partitions"] *= 2
    assert read_plan([json.dumps(document).encode()], source="p", view=view).rows_rejected == 1
    with pytest.raises(KafkaThrewError, match="duplicate topic partitions"):
        kafka.call("plan", text=json.dumps(document))


def test_a_wrong_completion_would_be_seen(kafka: KafkaJvm) -> None:
    (row,) = moved(kafka, [([1, 2, 3], [1, 4, 3], [1, 2, 4])])
    waits = kafka.release < NEWEST
    assert (row.get("doneReplicas") is None) is waits
    assert np.array_equal(row["replicas"], [1, 4, 3, 2])
