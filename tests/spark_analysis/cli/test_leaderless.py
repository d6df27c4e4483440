"""`brokerside report` says first who must return to partitions without a leader, and what an election would do."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside

REAL = Path(__file__).parents[2] / "real_data"
REPORTED = REAL / "reported"
Reported = Callable[..., tuple[str, dict[str, Any]]]


@pytest.fixture
def reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Reported:
    """Return a function that reports on a dump in a folder of its own: what it prints, and report.json."""
    monkeypatch.chdir(tmp_path)

    def report(dump: Path | str, *more: str) -> tuple[str, dict[str, Any]]:
        if isinstance(dump, str):
            Path("prod.txt").write_text(dump)
        name = "prod.txt" if isinstance(dump, str) else str(dump)
        assert run(brokerside, "brokerside", ["report", name, "--out", "out", "--quiet", *more]) == 0
        return capsys.readouterr().out, json.loads(Path("out/report.json").read_text())

    return report


def describe(*rows: str, count: int | None = None) -> str:
    """Return what kafka-topics prints of a topic, each row "leader / replicas / isr / more"."""
    lines = [f"Topic: t\tTopicId: x\tPartitionCount: {count or len(rows)}\tReplicationFactor: 2\tConfigs: "]
    for number, row in enumerate(rows):
        leader, replicas, isr, *more = (part.strip() for part in row.split("/"))
        fields = "".join(f"\t{each}" for each in more)
        lines.append(f"\tTopic: t\tPartition: {number}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}{fields}")
    return "\n".join(lines) + "\n"


ELR_LEFT = "none / 1,2 /  / Elr: 2 / LastKnownElr: "
CASES = {
    "sole in-sync": (
        REPORTED / "c-sole-in-sync.txt",
        [34],
        "broker 34 must return (sole in-sync replica of 2 partitions)",
        [("bookings", 0), ("bookings", 1)],
    ),
    "factor 1": (
        REPORTED / "37-leader-1.txt",
        [1, 2],
        "broker 1 must return (sole in-sync replica of 1 partition); broker 2 must return (sole in-sync replica of "
        "1 partition)",
        [],
    ),
    "eligible": (
        REAL / "kraft" / "describe" / "4-brokers-1-and-4-gone.txt",
        [1],
        "broker 1 must return (sole eligible replica of 1 partition); with that, 2 more partitions have a leader",
        [],
    ),
    "eligible, beside a live one": (
        describe(ELR_LEFT, "1 / 1,3 / 1,3 / Elr:  / LastKnownElr: "),
        [2],
        "broker 2 must return (sole eligible replica of 1 partition)",
        [("t", 0)],
    ),
    "one of several": (
        describe("none / 1,2 / 1,2", "3 / 3,1 / 3", "4 / 4,2 / 4"),
        [],
        "one of brokers 1 and 2 must return (in-sync replicas of 1 partition)",
        [],
    ),
    "last known leader": (
        describe("none / 1,2 /  / Elr:  / LastKnownElr: 2", "1 / 1,3 / 1,3 / Elr:  / LastKnownElr: "),
        [2],
        "broker 2 must return (last known leader of 1 partition)",
        [("t", 0)],
    ),
    "not shown": (
        describe("none / 1,2 / ", "3 / 3,1 / 3,1"),
        [],
        "the input does not show who may lead 1 partition",
        [("t", 0)],
    ),
    "log directory": (
        describe("none / 1,2 / 1", "1 / 1,2 / 1,2", "2 / 2,1 / 2,1"),
        [1],
        "broker 1 is up, but its replica, sole in-sync replica of 1 partition, is not: look at its log directories",
        [("t", 0)],
    ),
    "one of two is up": (
        describe("none / 1,2 / 1,2", "2 / 2,3 / 2,3", "3 / 3,1 / 3"),
        [],
        "one of brokers 1 and 2 must return (in-sync replicas of 1 partition; broker 2 is up, but its replica is not: "
        "look at its log directories)",
        [],
    ),
    "both are up": (
        describe("none / 1,2 / 1,2", "2 / 2,1 / 2,1"),
        [],
        "brokers 1 and 2 are up, but their replicas, in-sync replicas of 1 partition, are not: look at their log "
        "directories",
        [],
    ),
    "some partitions only": (
        describe("none / 1,2 / 2", count=30),
        [2],
        "broker 2 must return (sole in-sync replica of 1 partition)",
        [("t", 0)],
    ),
    "all brokers down": (
        describe("none / 1,2 / 2", "none / 2,1 / 2"),
        [2],
        "broker 2 must return (sole in-sync replica of 2 partitions)",
        [("t", 0), ("t", 1)],
    ),
}


@pytest.mark.parametrize(("dump", "brokers", "words", "elected"), CASES.values(), ids=CASES)
def test_who_must_return_comes_first(
    reported: Reported, dump: Path | str, brokers: list[int], words: str, elected: list[tuple[str, int]]
) -> None:
    shown, found = reported(dump)
    lines = shown.splitlines()
    (first,) = [place for place, line in enumerate(lines) if line.startswith("First, for 1.")]
    assert lines[first] == f"First, for 1., {words}"
    assert first < lines.index("First to look at:")
    (said,) = found["leaderless"]
    assert said["must_return_broker_ids"] == brokers
    assert said["steps"][0] == {"step": "return", "words": words, "command": None}
    assert found["what_to_do_next"][0]["steps"][0] == said["steps"][0]
    (unclean,) = [step for step in said["steps"] if step["step"] == "unclean-election"]
    if not elected:
        assert unclean["command"] is None
        assert "no other replica is live: if these brokers are gone for good, so are the records" in shown
        assert not list(Path("out/elections").glob("*-unclean.json"))
        return
    assert unclean["command"] in shown
    assert "(how many is not known)" in unclean["words"]
    recovery = found["what_to_do_next"][0]["recovery"]
    (leads,) = [step["broker_ids"] for step in recovery if step["step"] == "unclean-election"]
    assert leads
    assert not set(leads) & set(brokers)
    words_of = shlex.split(unclean["command"])
    assert words_of[:5] == [
        "kafka-leader-election.sh", "--bootstrap-server", "$BOOTSTRAP", "--election-type", "unclean",
    ]  # fmt: skip
    assert words_of[5] == "--path-to-json-file"
    listed = json.loads(Path(words_of[6]).read_text())
    assert listed == {"partitions": [{"topic": topic, "partition": number} for topic, number in elected]}


def test_a_metadata_log_names_the_eligible_ones(reported: Reported) -> None:
    _, found = reported(REAL / "kraft" / "__cluster_metadata-0", "--at", "168")
    steps = found["what_to_do_next"][0]["recovery"]
    assert [(step["step"], step["broker_ids"], step["role"]) for step in steps[:2]] == [
        ("return", [4], "eligible"),
        ("down", [1, 4], "fenced"),
    ]
    assert steps[0]["partition_count"] == len(steps[0]["partitions"]) == 2


@pytest.mark.parametrize(("name", "down"), [("60-dead3", 3), ("d-offline", 5)])
def test_a_broker_that_looks_dead_comes_back_or_is_drained(
    reported: Reported, capsys: pytest.CaptureFixture[str], name: str, down: int
) -> None:
    shown, found = reported(REPORTED / f"{name}.txt")
    (said,) = found["what_to_do_next"]
    step = said["steps"][0]
    assert step["step"] == "down"
    assert "bring it back, or if it is gone for good, drain it" in step["words"]
    assert f"Next, for 1., {step['words']}: {step['command']}" in shown
    words = shlex.split(step["command"])
    assert words[-5:] == ["drain", "--remove", str(down), "--out", f"{name}-drain"]
    assert run(brokerside, "brokerside", words[1:]) == 0
    assert run(brokerside, "brokerside", ["plan", "--check", words[-1]]) == 0, capsys.readouterr().err


def test_where_one_broker_leads_all_the_next_step_is_a_preferred_election(reported: Reported) -> None:
    shown, found = reported(REPORTED / "g-one-leads-all.txt")
    step = found["what_to_do_next"][0]["steps"][0]
    assert step["step"] == "preferred-election"
    assert step["words"] == (
        "elect the preferred leaders of 4 partitions, which copies nothing (leaders to move 4 → 0)"
    )
    assert f"Next, for 1., {step['words']}: {step['command']}" in shown
    words = shlex.split(step["command"])
    assert words[3:5] == ["--election-type", "preferred"]
    listed = json.loads(Path(words[6]).read_text())["partitions"]
    assert [each["partition"] for each in listed] == [1, 2, 4, 5]
    # The files of an earlier run go, as their clusters may be others.
    reported(REPORTED / "58-joined.txt")
    assert not Path(words[6]).exists()


def test_an_election_that_evens_nothing_is_named_where_nothing_else_is_to_do(reported: Reported) -> None:
    """Brokers 1 and 2 lead each other's partitions; a replica out of the ISR is not elected."""
    shown, _ = reported(describe("2 / 1,2 / 1,2", "1 / 2,1 / 1,2"))
    assert "Next, for 1., elect the preferred leaders of 2 partitions, which copies nothing: kafka-leader" in shown
    shown, _ = reported(describe("2 / 1,2 / 2", "1 / 2,1 / 1,2"))
    assert "preferred leaders of 2 partitions" not in shown


def test_lines_are_whole_in_a_pipe(reported: Reported) -> None:
    shown, _ = reported(REAL / "kraft" / "describe" / "4-brokers-1-and-4-gone.txt")
    assert "5 not led by their preferred replica (33.3 %); 1 state not in the dump" in shown
    assert "…" not in shown


def test_a_broker_that_is_full_because_of_its_rack_is_explained(reported: Reported) -> None:
    shown, found = reported(REPORTED / "25.json", "--racks", str(REPORTED / "25-racks.csv"))
    (said,) = found["what_to_do_next"][0]["rack_limits"]
    assert said.startswith("broker 6 must hold 10 replicas at a mean of 4.3, as rack rack2 has 1 broker of 7")
    assert f"Every cluster is as even as it can be.\n  {said}\n" in shown


def test_a_cluster_without_partitions_is_not_praised(reported: Reported) -> None:
    shown, _ = reported('{"brokers":[{"id":1,"name":"a:1"}],"topics":[]}')
    assert "There is no partition to look at." in shown


def test_no_file_is_written_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("theirs").mkdir()
    arguments = ["report", str(REPORTED / "c-sole-in-sync.txt"), "--out", "out", "--quiet"]
    assert run(brokerside, "brokerside", arguments) == 0
    shutil.rmtree("out/elections")
    Path("out/elections").symlink_to(tmp_path / "theirs")
    assert run(brokerside, "brokerside", arguments) == 2
    assert "is a link" in capsys.readouterr().err
    assert not list(Path("theirs").iterdir())


def test_of_many_clusters_without_leaders_three_are_named_and_the_others_counted(
    tmp_path: Path, reported: Reported
) -> None:
    """However long what is said of leaders, which once took the place of the list."""
    for number in range(14):
        shutil.copy(REPORTED / "c-sole-in-sync.txt", tmp_path / f"{chr(ord('a') + number)}.txt")
    shown = reported(Path("."))[0].splitlines()
    place = shown.index("First to look at:")
    assert [line[:8] for line in shown[place + 1 : place + 4]] == ["  1. a: ", "  2. b: ", "  3. c: "]
    assert shown[place + 4] == "  and 11 more; report.html ranks all"


def test_a_drain_that_would_be_refused_is_not_advised(reported: Reported) -> None:
    """Broker 1 is in no ISR, and no broker is left for its replica."""
    _, found = reported(describe("2 / 1,2 / 2", "2 / 2,1 / 2"))
    (step,) = [step for each in found["what_to_do_next"] for step in each["steps"] if step["step"] == "down"]
    assert step["command"] is None
    assert "a drain is refused as things stand (t-0 needs 2 live brokers, and 1 remains" in step["words"]
