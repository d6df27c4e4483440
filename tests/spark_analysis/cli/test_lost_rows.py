"""Dumps of which rows cannot be read: each command that needs the whole cluster refuses them, and gates fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.cli import run
from placement.formats.describe import read_describe
from placement.formats.read import FORMATS, read_dump
from spark_analysis.cli.commands import brokerside

ROW = "\tTopic: {}\tPartition: {}\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
HEAD = "Topic: {}\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: \n"
DUMP = "".join(HEAD.format(topic) + ROW.format(topic, 0) + ROW.format(topic, 1) for topic in ("ord", "inv"))
LOST = {
    "broken UTF-8": (DUMP.encode().replace(b"inv", b"in\xffv"), "3 of 6 rows could not be read (line 4: "),
    "a marked name": (DUMP.replace("inv", "*inv*").encode(), "3 of 6 rows could not be read (line 4: "),
    "a last row cut off": ((DUMP + "Topic: late\tPartitionCo").encode(), "1 of 7 rows could not be read (line 7: "),
}


def brokerside_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return run(brokerside, "brokerside", list(arguments)), *capsys.readouterr()


@pytest.mark.parametrize("name", LOST)
def test_commands_refuse_what_lost_rows_unless_partial(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, reason = LOST[name]
    (tmp_path / "d.txt").write_bytes(data)
    for command in ("plan", "outage", "roll"):
        status, out, err = brokerside_of(capsys, command, str(tmp_path / "d.txt"))
        assert (status, out) == (2, "")
        assert f"d.txt: {reason}" in err
        status, out, _ = brokerside_of(capsys, command, str(tmp_path / "d.txt"), "--partial", "--json")
        assert status == 0
        assert json.loads(out)["known"][0]["partial"].startswith(reason)


def test_rows_that_repeat_and_foreign_lines_lose_nothing() -> None:
    text = DUMP + "some other line\n" + ROW.format("inv", 1) + HEAD.format("inv")
    parsed = read_describe([text.encode()], source="d", name="d")
    assert parsed.rows_rejected == 2
    assert parsed.clusters[0].wholeness.is_whole


def test_rejected_entries_of_json_are_lost_rows() -> None:
    rows = [{"topic": "a", "partition": number, "replicas": [1, 2]} for number in (0, 1, -1)]
    data = json.dumps({"version": 1, "partitions": rows}).encode()
    (view,) = read_dump([data], source="r", format=None, name=None, known=FORMATS).clusters
    assert (view.wholeness.refusal or "").startswith("1 of 3 rows could not be read (partitions[2]: ")


def test_rejected_sizes_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.txt").write_text(DUMP)
    sizes = {"ord-0": 5, "ord-1": -1, "inv-0": 10**30}
    found = [{"partition": name, "size": size} for name, size in sizes.items()]
    brokers = [{"broker": 1, "logDirs": [{"logDir": "/d", "partitions": found}]}]
    (tmp_path / "s.json").write_text(json.dumps({"version": 1, "brokers": brokers}))
    for command in ("plan", "outage", "roll"):
        _, _, err = brokerside_of(capsys, command, str(tmp_path / "d.txt"), "--sizes", str(tmp_path / "s.json"))
        assert "warning: 2 of 3 rows were put aside; the first: " in err


def test_impact_says_the_lines_of_a_plan_that_are_none_and_the_rejected_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.txt").write_text(DUMP)
    found = [{"partition": "ord-0", "size": 5}, {"partition": "ord-1", "size": -1}]
    brokers = [{"broker": 1, "logDirs": [{"logDir": "/d", "partitions": found}]}]
    (tmp_path / "s.json").write_text(json.dumps({"version": 1, "brokers": brokers}))
    plan = {"version": 1, "partitions": [{"topic": "ord", "partition": 0, "replicas": [2, 1, 3]}]}
    (tmp_path / "p.json").write_text(f"some words\n{json.dumps(plan)}\n")
    given = ("d.txt", "p.json", "--sizes", "s.json")
    paths = [each if each.startswith("-") else str(tmp_path / each) for each in given]
    _, out, err = brokerside_of(capsys, "impact", *paths, "--json")
    assert json.loads(out)["plans"][0]["lines_passed_over"] == 1
    assert "p.json: 1 line is no row and was passed over; the first: line 1, 'some words'" in err
    assert "warning: 1 of 2 rows were put aside; the first: " in err
