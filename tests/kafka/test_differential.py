"""The comparison in every area: it sees a planted difference and makes it small, and finds none in its first cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from broker.entropy import RandomSource
from broker.releases import NEWEST
from placement.consumer.assignment import GroupAssignment
from placement.consumer.client_range import RangeAssignor
from placement.consumer.group import Group
from replication.rules import partition_change
from tests.golden import consumers
from tests.kafka import batches, controllers, differential, placement, programs
from tests.kafka.areas import DIFFERENCE_COUNT_MAX, Area, Found, Tally, fewer, run, shrunk
from tests.kafka.jvm import Json, KafkaJvm
from tests.kafka.releases import VERSIONS, WITH_ADMIN_UTILS

SEED = 20250909
CASES = {**dict.fromkeys(placement.AREAS, 400), "logs": 200, "dumps": 300, "controller": 100}
OTHER_CASES = 100


def numbers(name: str = "numbers", *, planted: int | None = 7) -> Area[list[int]]:
    """An area of lists of numbers, in which a planted number is a difference."""

    def draw(seed: int, number: int) -> list[int]:
        return [(seed + number + step * step) % 50 for step in range(20)]

    def difference(case: list[int]) -> str | None:
        return f"{planted} differs" if planted in case else None

    return Area(name=name, draw=draw, difference=difference, smaller=fewer)


def ticks() -> Iterator[float]:
    """A clock on which each look takes 0.1 seconds."""
    tick = 0
    while True:
        yield (tick := tick + 1) / 10


def test_a_planted_difference_is_seen_and_shrunk_to_what_matters() -> None:
    clock = ticks()
    shown: list[Tally] = []
    tally = run([numbers()], seed=1, seconds=600, now=lambda: next(clock), tell=shown.append)
    assert len(tally.found) == DIFFERENCE_COUNT_MAX
    assert all(found.case == [7] for found in tally.found)
    assert str(tally.found[0]).splitlines()[1:] == ["  [7]", "  7 differs"]
    assert shown[-1] is tally


def test_areas_get_the_same_time_and_one_with_differences_ends_alone() -> None:
    clock = ticks()
    areas = [numbers("bad"), numbers("one", planted=None), numbers("two", planted=None)]
    tally = run(areas, seed=1, seconds=120, now=lambda: next(clock))
    assert [tally.of(name) for name in ("bad", "one", "two")] == [DIFFERENCE_COUNT_MAX, 0, 0]
    assert abs(tally.case_counts["one"] - tally.case_counts["two"]) < 30
    assert tally.case_counts["one"] > 100
    cases, answers = (f"{sum(counts.values()):,}" for counts in (tally.case_counts, tally.answer_counts))
    assert list(tally.lines())[-1].split() == ["all", cases, "cases", answers, "answers", "5", "differences"]


@pytest.mark.parametrize("size", [1, 2, 3, 8, 33])
def test_one_item_of_many_is_found(size: int) -> None:
    area = Area[list[int]](
        name="one", draw=lambda _seed, _number: [], difference=lambda case: "it" if 0 in case else None, smaller=fewer
    )
    assert shrunk(area, list(range(size)), "it") == ([0], "it")


def test_an_unknown_area_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        differential.main(["--area", "logs,unheard"])
    assert ended.value.code == 2
    assert "no area unheard; there are admin_utils," in capsys.readouterr().err


@pytest.mark.kafka
@pytest.mark.parametrize("name", differential.AREAS)
def test_the_first_cases_of_every_area_agree(kafka: KafkaJvm, name: str) -> None:
    found = [
        str(Found(name, SEED, number, case, difference))
        for area in differential.open_areas(kafka, [name])
        for number in range(CASES.get(name, OTHER_CASES))
        if (difference := area.difference(case := area.draw(SEED, number))) is not None
    ]
    assert found == []


@pytest.mark.kafka
def test_what_answers_is_the_release_that_was_asked_for(kafka: KafkaJvm) -> None:
    assert kafka.source().startswith(f"Apache Kafka {VERSIONS[kafka.release]}, OpenJDK ")
    names = [area.name for area in differential.open_areas(kafka)]
    assert (set(placement.CLASSIC) <= set(names)) is (kafka.release <= WITH_ADMIN_UTILS)


@pytest.mark.kafka
@pytest.mark.parametrize("kafka", [NEWEST], indirect=True, ids=str)
def test_both_agree_on_a_large_striped_topic_with_many_racks_and_fenced_brokers(kafka: KafkaJvm) -> None:
    brokers = [{"id": number, "rack": f"zone-{number % 70}", "fenced": number % 11 == 0} for number in range(700)]
    call = {"start_partition": 0, "partitions": 20_000, "replication_factor": 5}
    given = {"random_seed": 99, "brokers": brokers, "calls": [call]}
    assert placement.difference(kafka, "striped_replica_placer", given) is None


@pytest.mark.kafka
@pytest.mark.parametrize("kafka", [NEWEST], indirect=True, ids=str)
def test_an_assignor_of_ours_that_is_wrong_is_found_and_its_group_made_small(
    kafka: KafkaJvm, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Backwards(RangeAssignor):
        def assign(self, group: Group, entropy: RandomSource) -> GroupAssignment:
            return GroupAssignment(group, super().assign(group, entropy).rows.take(np.arange(len(group.members))[::-1]))

    wrong = {"consumer_range": lambda given: consumers.run_client(given, Backwards)}
    monkeypatch.setattr(placement, "runners_of", lambda release: wrong)
    (area,) = placement.areas(kafka, ["consumer_range"])
    tally = run([area], seed=SEED, seconds=60)
    sizes = [
        (len(step["members"]), sum(topic["partitions"] for topic in step["topics"]))
        for found in tally.found
        for step in found.case["steps"]
    ]
    assert (2, 1) in sizes


@pytest.mark.kafka
@pytest.mark.parametrize("kafka", [NEWEST], indirect=True, ids=str)
def test_a_difference_planted_in_kafkas_answer_to_a_program_is_shrunk_to_one_operation(kafka: KafkaJvm) -> None:
    class Altered:
        def program(self, case: Any, folder: Path) -> dict[str, Any]:
            answer = kafka.program(case, folder)
            if any(operation["op"] == "roll" for operation in answer["ops"]):
                answer["stateAtClose"]["logEndOffset"] += 1
            return answer

    area: Area[Any] = programs.area(Altered())  # type: ignore[arg-type]  # Altered answers as a driver does.
    cases = (area.draw(1, number) for number in range(100))
    case = next(case for case in cases if any(operation["op"] == "roll" for operation in case["ops"]))
    difference = area.difference(case)
    assert difference is not None
    small, difference = shrunk(area, case, difference)
    assert [operation["op"] for operation in small["ops"]] == ["roll"]
    assert "logEndOffset" in difference


@pytest.mark.kafka
@pytest.mark.parametrize("kafka", [NEWEST], indirect=True, ids=str)
def test_a_difference_planted_in_a_batch_is_shrunk_to_one_record(kafka: KafkaJvm) -> None:
    class Altered:
        def call(self, name: str, **given: Json) -> Json:
            outcomes = kafka.call(name, **given)
            for outcome in outcomes if name == "read" else ():
                for batch in outcome["batches"]:
                    for record in batch["records"]:
                        record["value"] = record["value"] or None
            return outcomes

    area: Area[Any] = batches.area(Altered())  # type: ignore[arg-type]  # The stand-in answers as a driver does.
    case, difference = next(
        (case, difference)
        for number in range(500)
        if (difference := area.difference(case := area.draw(1, number))) is not None
    )
    small, _ = shrunk(area, case, difference)
    assert len(small.batches) == 1
    assert [record["value"] for record in small.batches[0]["records"]] == [""]
    assert small.damage == ()


@pytest.mark.kafka
@pytest.mark.parametrize("kafka", [NEWEST], indirect=True, ids=str)
def test_a_rule_broken_in_our_controller_is_found_and_shrunk(kafka: KafkaJvm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_change, "completed", lambda _phase, _rules: None)
    tally = run([controllers.area(kafka)], seed=1, seconds=60)
    assert len(tally.found) == DIFFERENCE_COUNT_MAX
    # Two brokers and a heartbeat, a topic, and a move that should have ended.
    sizes = [len(found.case.steps) for found in tally.found]
    assert min(sizes) == 5
    assert max(sizes) <= 12
