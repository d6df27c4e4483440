"""The commands `simulate` and `scenario`: what they print, and their exit statuses."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from broker.cli import run
from broker.cluster import BrokerView, Int32Array
from broker.entropy import RandomSource
from placement.spec import PlacementSpec
from replication.cli.simulate import simulate
from replication.scenarios.cli import scenario
from replication.simulation import Fault, FaultKind, LeaderOf, plan_json, read_plan


def test_a_clean_run_tells_seed_and_options_then_the_verdict_before_its_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(simulate, "simulate", ["--quiet", "--seed", "4", "--minutes", "0.1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "seed 4, quiet, 6000 ms under faults, then up to 180000 ms to become whole"
    assert lines[1] == "3 brokers in 3 racks, 2 partitions of 3 replicas, min.insync.replicas 2, unclean election off"
    assert "partition 0: leader 0 (epoch 0), ISR 0,1,2, OSR none, ELR none" in "\n".join(lines)
    verdict = lines.index("nothing is broken")
    assert [line.split()[0] for line in lines[verdict + 1 :]] == ["2,208", "acknowledged", "digest"]


def test_lost_records_are_in_the_first_line_of_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """Seed 51 elects the last known leader, which lacks records that all in sync had acknowledged."""
    arguments = ["--seed", "51", "--minutes", "3"]
    assert run(simulate, "simulate", arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    verdict = next(place for place, line in enumerate(lines) if "broken" in line)
    assert re.match(r"nothing is broken, but \d+ of \d+ records acknowledged by all are lost: ", lines[verdict])
    assert re.match(r"[\d,]+ events in ", lines[verdict + 1])


@pytest.mark.deep
def test_a_broken_run_says_how_to_have_it_again_and_which_faults_are_enough(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--swarm", "--seed", "1", "--minutes", "1", "--rules", "0.10.2", "--shrink"]
    assert run(simulate, "simulate", arguments) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "again: brokerside simulate --swarm --minutes 1 --kafka 0.10.2 --seed 1" in lines
    line = next(line for line in lines if line.endswith(" enough:"))
    _, enough, _, of = line.split()[:4]
    assert int(enough) < int(of)
    assert lines[-1].startswith("BROKEN: ")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("release", "seed", "code", "named"),
    [
        ("2.8", 3001, "I6", "diverging_fetch_ignored (KAFKA-13141, 3.0)"),
        ("2.6", 0, "I29", "maximal_isr (KIP-497, 2.7)"),
        ("2.4", 3002, "I12", "epoch_cache_always_trimmed (KAFKA-10706, 2.7)"),
    ],
)
def test_a_bug_of_an_older_release_is_named(
    release: str, seed: int, code: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--zookeeper", "--kafka", release, "--minutes", "1", "--seed", str(seed)]
    assert run(simulate, "simulate", arguments) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"BROKEN: {code} broken at ") for line in lines)
    (line,) = (line for line in lines if " lacks " in line)
    assert line.startswith(f"  Kafka {release} lacks {named}: ")
    assert line.endswith("; with it this seed holds")


@pytest.mark.deep
def test_what_a_newest_release_without_a_rule_breaks_names_no_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(simulate, "simulate", ["--seed", "1", "--without", "elr_excludes_unclean"]) == 1
    assert " lacks " not in capsys.readouterr().out


def test_the_verdict_over_seeds_comes_before_the_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(simulate, "simulate", ["--quiet", "--seeds", "3", "--minutes", "0.05"]) == 0
    verdict, counts = capsys.readouterr().out.splitlines()
    assert verdict == "0 broken; 0 of 3 runs lost acks=all records"
    assert re.fullmatch(r"acknowledged by all [\d,]+ \(lost 0\), by one 0 \(lost 0\), [\d,]+ events", counts)


@pytest.mark.deep
def test_the_verdict_over_seeds_tells_what_allowed_the_losses(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--varied", "--seed", "5", "--seeds", "11"]
    assert run(simulate, "simulate", arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2] == "0 broken; 2 of 11 runs lost acks=all records as their settings allow (last known leader 2)"
    assert run(simulate, "simulate", [*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["run_count"], found["broken_count"], found["lossy_count"]) == (11, 0, 2)
    assert found["lossy_count_by_cause"] == {"last known leader": 2}
    assert [each["seed"] for each in found["runs"]] == [5, 15]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("is_terminal", [True, False])
def test_seeds_show_progress_on_a_terminal_alone(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    assert run(simulate, "simulate", ["--quiet", "--seeds", "3", "--minutes", "0.05"]) == 0
    assert ("Running" in stream.getvalue()) is is_terminal


def test_a_plan_of_faults_is_replayed_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    plan = (Fault(4_000, FaultKind.KILL, broker=LeaderOf(0), duration_ms=1_000),)
    file.write_text(plan_json(plan), "utf-8")
    assert read_plan(file) == plan
    assert run(simulate, "simulate", ["--quiet", "--seed", "4", "--minutes", "0.1", "--plan", str(file)]) == 0
    assert "4000 ms  broker 0 dies, down for 1000 ms" in capsys.readouterr().out


@pytest.mark.deep
def test_a_shrunk_plan_is_printed_as_a_file_that_breaks_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--seed", "1", "--without", "elr_excludes_unclean"]
    assert run(simulate, "simulate", [*arguments, "--shrink"]) == 1
    lines = capsys.readouterr().out.splitlines()
    file = tmp_path / "plan.json"
    file.write_text(lines[-2], "utf-8")
    assert run(simulate, "simulate", [*arguments, "--plan", str(file)]) == 1
    assert lines[-1] in capsys.readouterr().out
    assert run(simulate, "simulate", [*arguments, "--shrink", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["shrunk"]["plan"] == json.loads(lines[-2])
    assert f"again: {found['again']}" in lines
    assert len(found["plan"]) > len(found["shrunk"]["plan"])


def test_every_kind_of_fault_of_a_plan_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(simulate, "simulate", ["--fault-kinds", "--diagram"]) == 0
    rows = [row.split(maxsplit=2) for row in capsys.readouterr().out.splitlines()[1:]]
    assert [(FaultKind[name], what) for name, _, what in rows] == [(kind, kind.value) for kind in FaultKind]
    assert {strikes for _, strikes, _ in rows} == {"broker", "rack", "partition", "cluster"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "is no plan; wanted is a list of faults"),
        ("[", "is no JSON: Expecting value"),
        ("[" * 100_000, "the JSON is nested too deeply or holds a number too long"),
        (f"[{9 * 10**4_000}{10**999}]", "the JSON is nested too deeply or holds a number too long"),
        ('[{"kind": "KILL", "kind": "STOP"}]', "field 'kind' is given twice"),
        ("[7]", "fault 1: 7 is no object"),
        ('[{"kind": "BOOM"}]', "fault 1: kind 'BOOM' is not known; allowed are KILL, POWER_LOSS, "),
        ('[{"kind": "KILL", "at": 4}]', "fault 1: field 'at' is not known; allowed are kind, start_ms, "),
        ('[{"kind": "KILL", "broker": 0}]', "fault 1: start_ms of KILL is None; allowed are whole numbers from 0 on"),
        ('[{"kind": "KILL", "start_ms": 4000}]', "fault 1: KILL strikes a broker; give broker="),
        ('[{"kind": "KILL", "start_ms": 4000, "broker": {"of": 1}}]', "fault 1: broker is {'of': 1}; wanted is "),
    ],
)
def test_a_file_that_is_no_plan_is_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text, "utf-8")
    assert run(simulate, "simulate", ["--quiet", "--plan", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"simulate: plan.json: {said}")


def test_a_plan_of_another_cluster_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    file.write_text('[{"kind": "KILL", "start_ms": 4000, "broker": 7}]', "utf-8")
    assert run(simulate, "simulate", ["--quiet", "--plan", str(file)]) == 2
    assert capsys.readouterr().err == "simulate: KILL strikes broker 7; the cluster has brokers 0 to 2\n"


class LastFirst:
    """Puts each partition on the last brokers."""

    def place(self, spec: PlacementSpec, brokers: Sequence[BrokerView], entropy: RandomSource) -> Int32Array:
        ids = [broker.id for broker in brokers][::-1][: spec.replication_factor]
        return np.array([ids] * spec.partition_count, np.int32)


def test_a_placer_of_one_s_own_is_named_by_module_and_class(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--quiet", "--minutes", "0.1", "--placer"]
    assert run(simulate, "simulate", [*arguments, f"{__name__}:LastFirst"]) == 0
    assert "partition 0: leader 2 (epoch 0), ISR 2,1,0" in capsys.readouterr().out
    assert run(simulate, "simulate", [*arguments, f"{__name__}:Nobody"]) == 2
    said = f"simulate: placer '{__name__}:Nobody' is not there; wanted is module:name\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("words", [("--quiet", "--harsh"), ("--harsh", "--quiet")])
def test_two_shapes_of_a_run_are_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(simulate, "simulate", [*words, "--minutes", "0.05"]) == 2
    assert capsys.readouterr() == ("", "simulate: --quiet and --harsh are different runs; give one of them\n")


def test_a_rule_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(simulate, "simulate", ["--without", "gravity"]) == 2
    assert capsys.readouterr().err.startswith("simulate: rule 'gravity' is not known; allowed are fetch_epoch_check, ")


def test_scenarios_are_listed_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", ["list"]) == 0
    assert "S20           Clean crash of the leader\n" in capsys.readouterr().out
    assert run(scenario, "scenario", ["run", "S20"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("S20: Clean crash of the leader\n")
    assert out.endswith("as expected\n")


def test_an_unknown_scenario_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", ["run", "nobody\x1b"]) == 2
    listed = "`brokerside scenario list` prints all names\n"
    assert capsys.readouterr().err == rf"scenario: there is no scenario 'nobody\x1b'; {listed}"
    assert run(scenario, "scenario", ["run", "s01-befor"]) == 2
    near = "the nearest is 'S01-before'"
    assert capsys.readouterr().err == f"scenario: there is no scenario 's01-befor'; {near}; {listed}"


def test_a_scenario_is_found_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(scenario, "scenario", ["run", "s01-BEFORE"]) == 0
    assert capsys.readouterr().out.startswith("S01-before: ")


@pytest.mark.deep
def test_the_older_mode_knows_no_elr_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(simulate, "simulate", ["--zookeeper", "--seed", "3", "--rules", "4.0"]) == 2
    refusal = "with ZooKeeper there is no ELR, and each shrink begins a leader epoch: take rules before 3.6"
    assert capsys.readouterr() == ("", f"simulate: {refusal}\n"), "no head of a run that is not made"
    assert run(simulate, "simulate", ["--zookeeper", "--seed", "3"]) == 0
    older = capsys.readouterr().out
    assert run(simulate, "simulate", ["--seed", "3", "--rules", "3.5"]) == 0
    assert older.splitlines()[-1] != capsys.readouterr().out.splitlines()[-1], "the digest is that of another history"
