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
    return attrs.evolve(scenario, lost_values=(7,))


def test_a_scenario_is_printed_from_its_title_to_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", ["run", "S01-before"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "S01-before: Follower truncates to its own high watermark and a committed record is lost"
    assert lines[2] == "Source: KIP-101, scenario 1"
    assert "     5300 ms  broker 0 dies, down until 30000 ms" in lines
    assert lines[-2].endswith("acknowledged 1, lost 1; broken: I16, I4, I5, I6, I7, I9")
    assert lines[-1] == "as expected"


def test_a_scenario_without_a_cluster_is_printed_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", ["run", "S18"]) == 0
    assert "it starts again; the log ends at 2, its file at 138" in capsys.readouterr().out


def test_all_are_printed_in_one_line_each(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario_cli, "SCENARIOS", SHORT)
    assert run(scenario, "scenario", ["run", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["S01", "S01-before", "S18"]
    assert all("as expected" in line for line in lines[:3])
    assert lines[3] == "3 scenarios, 0 otherwise than expected"


def test_a_scenario_that_goes_otherwise_is_printed_and_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenario_cli, "SCENARIOS", (_wrong(),))
    assert run(scenario, "scenario", ["run", "S01"]) == 1
    assert "OTHERWISE THAN EXPECTED: lost acknowledged values are (), expected (7,)" in capsys.readouterr().out
    assert run(scenario, "scenario", ["run", "--all"]) == 1
    assert capsys.readouterr().out.endswith("1 scenarios, 1 otherwise than expected\n")


def test_results_are_printed_as_json_and_those_of_one_scenario_with_its_steps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenario_cli, "SCENARIOS", SHORT)
    assert run(scenario, "scenario", ["run", "--all", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["name"], each["is_expected"], each["differences"]) for each in lines] == [
        ("S01", True, []),
        ("S01-before", True, []),
        ("S18", True, []),
    ]
    assert run(scenario, "scenario", ["run", "S01", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["source"] == "KIP-101, scenario 1"
    assert "     5000 ms  value 0 is sent to broker 0, acks=all" in printed["steps"]


def test_the_list_names_every_scenario_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", ["list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [scenario.name for scenario in SCENARIOS]
    assert run(scenario, "scenario", ["list", "--json"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["name"] for each in printed] == names


@pytest.mark.parametrize("arguments", [["run"], ["run", "S01", "--all"]])
def test_one_name_or_all_must_be_given(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", arguments) == 2
    assert capsys.readouterr().err == "scenario: give the name of one scenario, or --all\n"
