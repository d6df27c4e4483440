"""The words of docstrings and help: what a tool can see of them."""

from __future__ import annotations

import pytest

from tests.architecture import words
from tests.architecture.house import PACKAGES
from tests.architecture.words import Line, check_lines


def test_docstrings_and_help_keep_the_rules_of_wording() -> None:
    assert [str(one) for one in words.failures()] == []


def test_the_list_has_every_package_and_every_command() -> None:
    listed = words.everything()
    assert {line.package for line in listed} == set(PACKAGES)
    names = {line.name for line in listed}
    assert {"brokerside assign", "brokerside fleet", "brokerside log verify", "brokerside fleet --seed"} <= names


@pytest.mark.parametrize(
    ("text", "is_help", "failure"),
    [
        ("What a broker is.", False, "begins with 'What'"),
        ("It is gone.", False, "begins with 'It'"),
        ("Return the ghost.", False, "says 'ghost'"),
        ("", True, "has no help"),
        ("Seed", True, "is no sentence"),
    ],
)
def test_a_failing_line_is_seen(text: str, is_help: bool, failure: str) -> None:
    (found,) = check_lines([Line("broker", "broker.a:f", text, is_help)])
    assert found.text.startswith(failure)
