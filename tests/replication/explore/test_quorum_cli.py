"""The command `explore --model quorum`."""

from __future__ import annotations

import pytest

from broker.cli import run
from replication.explore.cli import explore


def test_a_quorum_of_ids_alone_is_told_to_be_broken(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(explore, "explore", ["--model", "quorum", "--ids-alone", "--quiet"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Broken after 5 steps, ")
    assert lines[4] == "  4. 2 loses its disk and comes back empty"
    assert lines[-2] == "voters [0, 1] lead in the same epoch"


def test_a_quorum_holds_within_small_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--model", "quorum", "--records", "0", "--epochs", "1", "--quiet"]
    assert run(explore, "explore", arguments) == 0
    assert capsys.readouterr().out.startswith("Holds in all ")


def test_the_quorum_has_no_rules_to_leave_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(explore, "explore", ["--model", "quorum", "--without", "elr"]) == 2
    assert capsys.readouterr().err == (
        "explore: the model 'quorum' has no rules to leave out; --ids-alone is what it was before KIP-853\n"
    )
