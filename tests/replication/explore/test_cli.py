"""The command `explore`."""

from __future__ import annotations

import re

import pytest

from broker.cli import run
from broker.errors import UsageError
from replication.explore import ElrScope, QuorumScope, TruncationScope
from replication.explore.cli import explore
from replication.rules.switches import SWITCHES


def explored(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run(explore, "explore", list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def test_rules_that_hold_leave_with_success(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = explored(capsys, "--replicas", "2", "--records", "1", "--epoch-max", "1")
    assert status == 0
    assert out.startswith("Holds in all ")
    assert err.startswith("after  1 step: ")


def test_rules_that_break_tell_how_and_leave_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = explored(capsys, "--rules", "0.10.2", "--replicas", "2", "--quiet")
    lines = out.splitlines()
    assert (status, err) == (1, "")
    assert lines[0].startswith("Broken after 9 steps, found among ")
    assert lines[1] == "  1. the controller elects 0 in epoch 0"
    assert lines[10].startswith("StrongISR: ")
    assert len(lines) == 12


def test_a_rule_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = explored(capsys, "--model", "elr", "--without", "strict_min_isr", "--losses", "0", "--quiet")
    assert status == 1
    assert out.startswith("Broken after 5 steps")


def test_a_search_cut_short_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = explored(capsys, "--states", "10", "--quiet")
    assert status == 1
    assert out.startswith("Not broken in ")


def test_a_quorum_of_ids_alone_is_broken_and_holds_within_small_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = explored(capsys, "--model", "quorum", "--ids-alone", "--quiet")
    lines = out.splitlines()
    assert (status, lines[0].startswith("Broken after 5 steps, ")) == (1, True)
    assert lines[4] == "  4. 2 loses its disk and comes back empty"
    assert lines[-2] == "voters [0, 1] lead in the same epoch"
    status, out, _ = explored(capsys, "--model", "quorum", "--records", "0", "--epochs", "1", "--quiet")
    assert (status, out.startswith("Holds in all ")) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--rules", "9.9"), "explore: release '9.9' of Kafka is not known; allowed are 0.10.2 to 4.4"),
        (("--without", "gravity"), "explore: rule 'gravity' is not known; allowed are fetch_epoch_check,"),
        (("--fences", "2"), "explore: --fences is not a bound of the model 'truncation'; see --help"),
        (
            ("--model", "elr", "--log-size", "2"),
            "explore: --log-size is not a bound of the model 'elr'; see --help",
        ),
        (
            ("--model", "elr", "--rules", "2.7"),
            "explore: the model 'elr' cuts logs on fetching, as Kafka does since 2.8; these rules do not",
        ),
        (
            ("--model", "quorum", "--without", "elr"),
            "explore: the model 'quorum' has no rules to leave out; --ids-alone is what it was before KIP-853",
        ),
        (("--replicas", "9"), "explore: replicas is 9; allowed are 2 to 5"),
    ],
)
def test_wrong_usage_is_one_line_and_two(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str
) -> None:
    status, out, err = explored(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(text)
    assert err.count("\n") == 1


def test_the_rules_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = explored(capsys, "--list-rules")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == list(SWITCHES)


def test_the_help_names_the_bounds_that_the_models_take(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = explored(capsys, "--help")
    assert status == 0
    options = re.findall(r"--([a-z-]+) N (.*?)\)\.", " ".join(out.split()))
    bounds = [
        (name, *bound)
        for name, text in options
        for bound in re.findall(r"(truncation|elr|quorum): (\d) to (\d), default (\d)", text)
    ]
    assert len(bounds) == 14
    scopes = {"truncation": TruncationScope, "elr": ElrScope, "quorum": QuorumScope}
    for option, model, least, most, default in bounds:
        name = option.replace("-", "_")
        assert getattr(scopes[model](), name) == int(default)
        scopes[model](**{name: int(least)})
        scopes[model](**{name: int(most)})
        for beyond in (int(least) - 1, int(most) + 1):
            with pytest.raises(UsageError, match=f"allowed are {least} to {most}"):
                scopes[model](**{name: beyond})
