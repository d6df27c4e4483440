"""`report --groups` answers about real groups: counted by hand, accounted for row by row, refused in one sentence."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from broker.cli import run
from broker.errors import UsageError
from spark_analysis.answers.registry import QUESTIONS, asked_of, load_question
from spark_analysis.cli.commands import brokerside
from tests.placement.formats.test_group_tables import printed, rows_of

TOPICS = {"orders": 6, "eu-west-1.payments": 3}


def dump() -> str:
    """Return a cluster of two brokers: even partitions are led by 1, in the east, odd ones by 2, in the west."""
    lines = []
    for topic, count in TOPICS.items():
        lines.append(f"Topic: {topic}\tPartitionCount: {count}\tReplicationFactor: 2\tConfigs: ")
        for number in range(count):
            both = f"{number % 2 + 1},{2 - number % 2}"
            lines.append(f"\tTopic: {topic}\tPartition: {number}\tLeader: {both[0]}\tReplicas: {both}\tIsr: {both}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prod.txt").write_text(dump())
    (tmp_path / "racks.csv").write_text("1,east\n2,west\n")
    (tmp_path / "zones.csv").write_text("b-1,east\nn-1,east\nb-2,west\nn-2,west\n")
    for form in ("members", "members-verbose", "offsets"):
        (tmp_path / f"{form}.txt").write_text(printed(form))
    return tmp_path


def asked(capsys: pytest.CaptureFixture[str], *more: str) -> Any:
    given = ["report", "prod.txt", "--racks", "racks.csv", "--ask", "consumers", "--json", "--quiet", *more]
    assert run(brokerside, "brokerside", given) == 0
    return json.loads(capsys.readouterr().out)


def test_what_members_hold_is_counted_in_every_form(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """b-1 (east) holds payments-2 and orders-3, 4, 5, n-1 (east) orders-2 to 5; in the west are the other five each."""
    answers = []
    for names in (["members-verbose"], ["offsets"], ["members", "offsets"]):
        given = [word for name in names for word in ("--groups", f"{name}.txt")]
        found = asked(capsys, *given, "--group-zones", "zones.csv")
        answers.append(found["answers"]["consumers"]["by_assignor"])
    now = next(row for row in answers[0] if row["assignor"] == "now")
    assert (now["fetched_count"], now["crossing_count"], now["closest_count"], now["moved_count"]) == (18, 10, 0, 0)
    assert now in answers[1]  # The rest may differ: offsets do not say which members are static.
    assert answers[0] == answers[2]


@pytest.mark.parametrize("pair", list(combinations(QUESTIONS, 2)), ids=" and ".join)
@pytest.mark.parametrize("groups", [(), ("--groups", "offsets.txt")], ids=["drawn", "given"])
def test_every_two_questions_have_the_assumptions_that_each_has_alone(
    pair: tuple[str, str], groups: tuple[str, ...], files: Path
) -> None:
    """What is idle for one question, as its groups are given, may be an assumption of the other, such as the seed."""
    given = bool(groups)
    if given and not {*pair} & {"consumers", "traffic"}:
        with pytest.raises(UsageError, match="--groups has no effect"):
            asked_of(pair, (), given_groups=given)
        return
    alone = {
        name: (asked_of((name,), (), given_groups=given and bool(load_question(name).drawn))[0].values) for name in pair
    }
    assert {one.name: one.values for one in asked_of(pair, (), given_groups=given)} == alone


def test_consumers_and_availability_are_answered_together(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, "--groups", "offsets.txt", "--ask", "availability", "--assume", "seed=3")
    assert {*found["answers"]} == {"consumers", "availability"}


def test_rows_of_groups_are_in_the_account(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = asked(capsys)
    with_groups = asked(capsys, "--groups", "offsets.txt")
    assert with_groups["rows_in"] - alone["rows_in"] == len(rows_of(printed("offsets")))
    aside = asked(capsys, "--groups", "members.txt")
    assert aside["rows_rejected"] == len(rows_of(printed("members")))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            "--groups offsets.txt",
            "--groups has no effect without --ask consumers or --ask traffic; give both, or neither",
        ),
        ("--group-zones zones.csv", "--group-zones has no effect without --groups; give both, or neither"),
        (
            "--ask consumers --groups x=offsets.txt",
            "--groups 'x=offsets.txt': no cluster is called 'x'; there are prod",
        ),
        (
            "--ask consumers --groups racks.csv",
            "racks.csv: this is not what kafka-consumer-groups --describe prints, with --members, --offsets or --state "
            "(found '1,east\\n2,west')",
        ),
        (
            "--ask consumers --groups offsets.txt --assume members=3",
            "--assume members=3: consumers assumes nothing",
        ),
    ],
)
def test_groups_that_make_no_sense_are_one_sentence(
    files: Path, capsys: pytest.CaptureFixture[str], given: str, sentence: str
) -> None:
    assert run(brokerside, "brokerside", ["report", "prod.txt", "--quiet", *given.split()]) == 2
    assert capsys.readouterr().err == f"brokerside: {sentence}\n"
