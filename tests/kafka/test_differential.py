"""The comparison in every area: it sees a planted difference and makes it small, and finds none in its first cases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from broker.releases import NEWEST
from replication.rules import partition_change
from tests.kafka.controller_jvm import ControllerJvm
from tests.kafka.differential import __main__ as command
from tests.kafka.differential import batches, controllers, logs
from tests.kafka.differential.areas import DIFFERENCE_COUNT_MAX, Area, Found, Tally, fewer, run, shrunk
from tests.kafka.jvm import KafkaUnavailableError
from tests.kafka.log_jvm import KafkaLogs

RELEASES = (NEWEST,)
CASES = 30


def numbers(name: str = "numbers", *, planted: int | None = 7) -> Area[list[int]]:
    """An area of lists of numbers, in which a planted number is a difference."""

    def draw(seed: int, number: int) -> list[int]:
        return [(seed + number + step * step) % 50 for step in range(20)]

    def difference(case: list[int]) -> str | None:
        return f"{planted} is told otherwise" if planted in case else None

    return Area(name=name, draw=draw, difference=difference, smaller=fewer)


def ticks() -> Iterator[float]:
    """A clock on which each look takes 0.1 seconds."""
    tick = 0
    while True:
        yield (tick := tick + 1) / 10


def test_a_planted_difference_is_seen_and_shrunk_to_what_matters() -> None:
    clock = ticks()
    told: list[Tally] = []
    tally = run([numbers()], seed=1, seconds=600, now=lambda: next(clock), tell=told.append)
    assert len(tally.found) == DIFFERENCE_COUNT_MAX
    assert all(found.case == [7] for found in tally.found)
    assert str(tally.found[0]).splitlines()[1:] == ["  [7]", "  7 is told otherwise"]
    assert told[-1] is tally


def test_areas_get_the_same_time_and_one_with_differences_ends_alone() -> None:
    clock = ticks()
    tally = run(
        [numbers("bad"), numbers("one", planted=None), numbers("two", planted=None)],
        seed=1,
        seconds=120,
        now=lambda: next(clock),
    )
    assert tally.of("bad") == DIFFERENCE_COUNT_MAX
    assert tally.of("one") == tally.of("two") == 0
    assert abs(tally.case_counts["one"] - tally.case_counts["two"]) < 30
    assert tally.case_counts["one"] > 100
    assert list(tally.lines())[-1].split() == [
        "all",
        f"{sum(tally.case_counts.values()):,}",
        "cases",
        f"{sum(tally.problem_counts.values()):,}",
        "answers",
        "5",
        "differences",
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 8, 33])
def test_one_item_of_many_is_found(size: int) -> None:
    area = Area[list[int]](
        name="one", draw=lambda _seed, _number: [], difference=lambda case: "it" if 0 in case else None, smaller=fewer
    )
    assert shrunk(area, list(range(size)), "it") == ([0], "it")


def test_an_unknown_area_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--area", "striped,unheard"])
    assert ended.value.code == 2
    assert "no area unheard; there are classic," in capsys.readouterr().err


@pytest.mark.kafka
def test_a_difference_planted_in_kafkas_answer_to_a_program_is_shrunk_to_one_operation(kafka_logs: KafkaLogs) -> None:
    class Spoilt(KafkaLogs):
        def __init__(self) -> None:
            self.release = kafka_logs.release

        def program(self, case: Any, folder: Path) -> dict[str, Any]:
            answer = kafka_logs.program(case, folder)
            if any(operation["op"] == "roll" for operation in answer["ops"]):
                answer["stateAtClose"]["logEndOffset"] += 1
            return answer

    area = logs.area(Spoilt())
    number = next(number for number in range(100) if any(op["op"] == "roll" for op in area.draw(1, number)["ops"]))
    case = area.draw(1, number)
    difference = area.difference(case)
    assert difference is not None
    small, difference = shrunk(area, case, difference)
    assert [operation["op"] for operation in small["ops"]] == ["roll"]
    assert "logEndOffset" in difference


@pytest.mark.kafka
def test_a_difference_planted_in_a_batch_is_shrunk_to_one_record(kafka_logs: KafkaLogs) -> None:
    class Spoilt(KafkaLogs):
        def __init__(self) -> None:
            self.release = kafka_logs.release

        def build(self, given: Any) -> list[bytes]:
            return kafka_logs.build(given)

        def read(self, data: Any) -> list[dict[str, Any]]:
            outcomes = kafka_logs.read(data)
            for outcome in outcomes:
                for batch in outcome["batches"]:
                    for record in batch["records"]:
                        record["value"] = record["value"] or None
            return outcomes

    area = batches.area(Spoilt())
    found = next(
        Found("batches", 1, number, case, difference)
        for number in range(500)
        if (difference := area.difference(case := area.draw(1, number))) is not None
    )
    small, _ = shrunk(area, found.case, found.difference)
    assert len(small.batches) == 1
    assert [record["value"] for record in small.batches[0]["records"]] == [""]
    assert small.damage == ()


@pytest.mark.kafka
def test_a_rule_broken_in_our_controller_is_found_and_shrunk(
    kafka_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_change, "completed", lambda _phase, _rules: None)
    try:
        kafka = ControllerJvm.start(kafka_build)
    except KafkaUnavailableError as missing:
        pytest.skip(str(missing))
    with kafka:
        tally = run([controllers.area(kafka)], seed=1, seconds=60)
    assert len(tally.found) == DIFFERENCE_COUNT_MAX
    # Two brokers and a heartbeat, a topic, and a move that should have ended.
    sizes = [len(found.case.steps) for found in tally.found]
    assert min(sizes) == 5
    assert max(sizes) <= 12


@pytest.mark.kafka
def test_the_first_cases_of_every_area_agree(kafka_build: Path) -> None:
    with ExitStack() as running:
        try:
            areas = command.open_areas(running, kafka_build, NEWEST, command.AREAS)
        except KafkaUnavailableError as missing:
            pytest.skip(f"Kafka's own classes cannot be run here: {missing}")
        assert len(areas) > 10
        found = [
            str(Found(area.name, 1, number, case, difference))
            for area in areas
            for number in range(CASES)
            if (difference := area.difference(case := area.draw(1, number))) is not None
        ]
    assert found == []
