"""The command `scenario`: what it prints of a scenario, and its exit status."""

from __future__ import annotations

import json

import attrs
import pytest

from broker.cli import run
from replication.scenarios import SCENARIOS, Scenario
from replication.scenarios import cli as scenario_cli
from replication.scenarios.cli import scenario

SHORT = tuple(scenario for scenario in SCENARIOS if scenario.name in ("S01", "S01-before", "S18"))


def _wrong() -> Scenario:
    scenario = SHORT[0]
    assert isinstance(scenario, Scenario)
    return attrs.evolve(scenario, gone=(7,))


def test_a_story_is_told_from_its_title_to_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", ["run", "S01-before"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "S01-before: a follower that cuts its log at its own high watermark"
    assert lines[2] == "Source: KIP-101, scenario 1"
    assert "     5300 ms  broker 0 dies, down until 30000 ms" in lines
    assert lines[-2].endswith("acknowledged 1, lost 1; broken: I16, I4, I5, I6, I7, I9")
    assert lines[-1] == "as expected"


def test_a_tale_is_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", ["run", "S18"]) == 0
    assert "it starts again; the log ends at 2, its file at 138" in capsys.readouterr().out


def test_all_are_told_in_a_line_each(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario_cli, "SCENARIOS", SHORT)
    assert run(scenario, "scenario", ["run", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["S01", "S01-before", "S18"]
    assert all("as expected" in line for line in lines[:3])
    assert lines[3] == "3 scenarios, 0 otherwise than expected"


def test_a_story_that_goes_otherwise_is_said_and_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenario_cli, "SCENARIOS", (_wrong(),))
    assert run(scenario, "scenario", ["run", "S01"]) == 1
    assert "OTHERWISE THAN EXPECTED: acknowledged and gone are (), expected (7,)" in capsys.readouterr().out
    assert run(scenario, "scenario", ["run", "--all"]) == 1
    assert capsys.readouterr().out.endswith("1 scenarios, 1 otherwise than expected\n")


def test_verdicts_are_told_as_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario_cli, "SCENARIOS", SHORT)
    assert run(scenario, "scenario", ["run", "--all", "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["name"], each["is_expected"], each["differences"]) for each in told] == [
        ("S01", True, []),
        ("S01-before", True, []),
        ("S18", True, []),
    ]


def test_one_story_as_json_has_its_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", ["run", "S01", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["source"] == "KIP-101, scenario 1"
    assert "     5000 ms  value 0 is sent to broker 0, acks=all" in told["steps"]


def test_the_list_names_every_story_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", ["list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [scenario.name for scenario in SCENARIOS]
    assert run(scenario, "scenario", ["list", "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["name"] for each in told] == names


@pytest.mark.parametrize("arguments", [["run"], ["run", "S01", "--all"]])
def test_one_name_or_all_must_be_given(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", arguments) == 2
    assert capsys.readouterr().err == "scenario: give the name of one scenario, or --all\n"
