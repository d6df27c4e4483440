"""Commands say "1 broker", not "1 brokers": what they print where a count is 1."""

from __future__ import annotations

import re
import shlex

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
    "mirror --quiet --minutes 0.1",
    "groups simulate --members 1 --partitions 1 --minutes 5",
    "groups simulate --members 1 --partitions 1 --minutes 1",
    "groups herd --consumers 1 --partitions 1",
    "requests --connections 1 --network-threads 1 --io-threads 1 --seconds 1",
    "explore --states 1",
    "explore --model quorum --voters 1 --records 0 --restarts 0 --lost-disks 0 --epochs 1",
    "scenario run S20",
)


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
