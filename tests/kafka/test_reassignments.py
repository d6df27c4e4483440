"""Plans against released Kafka: files that it takes or refuses, moves that it starts and completes.

How: random plans of small views; each is written as we write it and read by kafka-reassign-partitions, and every row is
started and completed by PartitionReassignmentReplicas, by `replication` and by `placement.planning.completion`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import attrs
import numpy as np
import pytest

from broker.ids import BrokerId
from placement.formats.plan_files import reassignment_json
from placement.formats.plans import read_plan
from placement.planning.completion import completion
from placement.planning.reassignment import LogDirTarget, Reassignment
from placement.planning.schedule import Limits, schedule
from replication.rules.partition import PartitionState
from replication.rules.reassign import completed, started
from replication.rules.switches import rules_of
from tests.kafka.jvm import KafkaUnavailableError
from tests.kafka.reassign_jvm import KafkaReassignments, KafkaRefusedError
from tests.kafka.releases import DEFAULTS
from tests.placement.planning.cases import lists, random_plan, random_view

pytestmark = pytest.mark.kafka

PLANS = 400


@pytest.fixture(scope="module", params=DEFAULTS, ids=str)
def moves(request: pytest.FixtureRequest, kafka_build: Path) -> Iterator[KafkaReassignments]:
    try:
        running = KafkaReassignments.start(kafka_build, request.param)
    except KafkaUnavailableError as missing:
        pytest.skip(f"Kafka's own classes cannot be run here: {missing}")
    with running:
        yield running


def plans() -> Iterator[Reassignment]:
    for seed in range(PLANS):
        chance = random.Random(seed)
        yield random_plan(chance, random_view(chance, in_sync=0.6))


def test_every_file_of_a_plan_and_of_its_batches_is_taken_as_it_is_meant(moves: KafkaReassignments) -> None:
    for number, plan in enumerate(plans()):
        dirs = (LogDirTarget(place=0, broker_id=BrokerId(int(plan.replicas[0][0])), path="/d"),) if number % 3 else ()
        whole = attrs.evolve(plan, log_dirs=dirs)
        for part in (whole, *schedule(whole, Limits(batch_count=3)).parts()):
            text = reassignment_json(part)
            read = {(row["topic"], row["partition"]): row for row in moves.parsed(text)}
            meant = {(row["topic"], row["partition"]): row for row in json.loads(text)["partitions"]}
            assert read == meant
            assert len(read) == part.count


def test_moves_start_and_complete_as_kafka_says_in_replication_and_in_columns(moves: KafkaReassignments) -> None:
    rules, complete, blocked = rules_of(moves.release), 0, 0
    for plan in plans():
        table = plan.view.partitions
        assert table.isr is not None
        current, target = lists(plan.current), lists(plan.replicas)
        isr_of = lists(table.isr[plan.rows])
        full = [
            sorted({*isr, *target_row} - (set(now) - set(isr)))
            for isr, target_row, now in zip(isr_of, target, current, strict=True)
        ]
        theirs = moves.moved(list(zip(current, target, full, strict=True)))
        ours = completion(plan, moves.release)
        for place, kafka in enumerate(theirs):
            state = PartitionState(
                replicas=tuple(map(BrokerId, current[place])),
                isr=tuple(map(BrokerId, isr_of[place])),
                leader=BrokerId(isr_of[place][0]),
            )
            phase = started(state, tuple(map(BrokerId, target[place])))
            assert list(phase.replicas) == kafka.replicas
            assert list(phase.adding) == kafka.adding == sorted(plan.replicas[place][plan.added[place]].tolist())
            assert list(phase.removing) == kafka.removing == sorted(plan.current[place][plan.removed[place]].tolist())
            end = completed(attrs.evolve(phase, isr=tuple(map(BrokerId, full[place]))), rules)
            assert (None if end is None else list(end.replicas)) == kafka.done_replicas
            if not kafka.adding and not kafka.removing:
                continue
            assert bool(ours.is_blocked[place]) == (kafka.done_replicas is None)
            if kafka.done_isr is not None:
                assert sorted(kafka.done_isr) == sorted(lists(ours.isr)[place])
            complete += kafka.done_replicas is not None
            blocked += kafka.done_replicas is None
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
    moves: KafkaReassignments, entry: dict[str, object]
) -> None:
    view = random_view(random.Random(2), partition_count=8)
    good = random_plan(random.Random(2), view).take([0])
    document = json.loads(reassignment_json(good))
    document["partitions"].append(entry)
    ours = read_plan([json.dumps(document).encode()], source="plan.json", view=view)
    assert ours.rows_rejected == 1
    assert ours.refusal is not None
    with pytest.raises(KafkaRefusedError):
        moves.parsed(json.dumps(document))


def test_a_partition_named_twice_is_refused_by_both(moves: KafkaReassignments) -> None:
    view = random_view(random.Random(2), partition_count=8)
    document = json.loads(reassignment_json(random_plan(random.Random(2), view).take([0])))
    document["partitions"] *= 2
    assert read_plan([json.dumps(document).encode()], source="p", view=view).rows_rejected == 1
    with pytest.raises(KafkaRefusedError, match="duplicate topic partitions"):
        moves.parsed(json.dumps(document))


def test_a_wrong_completion_would_be_seen(moves: KafkaReassignments) -> None:
    (kafka,) = moves.moved([([1, 2, 3], [1, 4, 3], [1, 2, 4])])
    waits = moves.release < DEFAULTS[0]
    assert (kafka.done_replicas is None) is waits
    assert np.array_equal(kafka.replicas, [1, 4, 3, 2])
