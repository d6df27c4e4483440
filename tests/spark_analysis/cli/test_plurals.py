"""Commands say "1 broker", not "1 brokers": what they print where a count is 1."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside

_VERBS = r"is\b|was\b|has\b|loses\b|shows\b|counts\b|as\b|ms\b|s\b"
WRONG = re.compile(rf"(?<![\w.,:=-])1 (?:unclean |offset )?(?!{_VERBS})[a-z]+s\b")
"""A 1 and a word that ends like a plural; units and verbs are none."""

COMMANDS = (
    "simulate --quiet --seed 0 --minutes 0.05",
    "simulate --quiet --seed 4 --minutes 0.05 --groups 1",
    "simulate --seed 1 --rules 0.10.2 --shrink",
    "simulate --quiet --compact --minutes 0.05",
    "mirror --minutes 0.1",
    "groups simulate --members 1 --partitions 1 --minutes 5",
    "groups simulate --members 1 --partitions 1 --minutes 1",
    "groups herd --consumers 1 --partitions 1",
    "requests --connections 1 --network-threads 1 --io-threads 1 --seconds 1",
    "explore --states 1",
    "explore --model quorum --voters 1 --records 0 --restarts 0 --lost-disks 0 --epochs 1",
    "scenario run S20",
)


DUMP = "Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: min.insync.replicas=1\n" + (
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
)
PLAN = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2]}]}'
ON_A_DUMP = (
    "outage one.txt",
    "outage one.txt --lose 1",
    "roll one.txt",
    "plan one.txt --goal drain --remove 1 --add 2 --out moved",
    "plan --check moved",
    "plan one.txt --goal drain --remove 1",
    "plan one.txt --by bytes",
    "impact one.txt plan.json --add 2",
    "compare one.txt one.txt",
    "report one.txt --out out --quiet",
)


def test_what_is_said_of_one_broker_and_one_partition_is_singular(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.txt").write_text(DUMP)
    (tmp_path / "plan.json").write_text(PLAN)
    for line in ON_A_DUMP:
        assert run(brokerside, "brokerside", shlex.split(line)) in (0, 1, 2)
        printed = capsys.readouterr()
        assert printed.out + printed.err
        assert [text for text in (printed.out + printed.err).splitlines() if WRONG.search(text)] == [], line


@pytest.mark.parametrize("line", COMMANDS)
def test_a_count_of_one_has_a_singular(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(brokerside, "brokerside", shlex.split(line)) in (0, 1, 2)
    printed = capsys.readouterr()
    # A history's lines are what its digest is of; they stay as they are.
    lines = [text for text in (printed.out + printed.err).splitlines() if not re.match(r" *\d+ ms ", text)]
    assert [text for text in lines if WRONG.search(text)] == []


def test_a_plural_of_one_is_seen() -> None:
    assert WRONG.search("10 brokers, 1 consumers a partition")
    assert not WRONG.search("at 1 ms 1 is down, 21 brokers, 0.1 seconds, 1 broker")
