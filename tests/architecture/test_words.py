"""The words of docstrings and help: what a tool can see of them."""

from __future__ import annotations

import ast

import click
import pytest

from tests.architecture import words
from tests.architecture.house import PACKAGES, Module
from tests.architecture.words import Line, check_lines, first_lines, help_lines


def test_docstrings_and_help_keep_the_rules_of_wording() -> None:
    assert [str(one) for one in words.failures()] == []


def test_the_list_has_every_package_and_every_command() -> None:
    listed = words.everything()
    assert {line.package for line in listed} == set(PACKAGES)
    names = {line.name for line in listed}
    assert {"brokerside assign", "brokerside fleet", "brokerside log verify", "brokerside fleet --seed"} <= names


def test_first_lines_are_those_of_public_names_and_help_that_of_commands_and_options() -> None:
    hold = 'class A:\n    """Hold."""\n    def b(self):\n        """Run."""\n    def _c(self):\n        """No."""\n'
    text = f'"""Do.\n\nMore.\n"""\n{hold}'
    module = Module("broker/a.py", "broker.a", text, ast.parse(text))
    assert [str(line) for line in first_lines([module])] == [
        "broker.a:: Do.",
        "broker.a:A: Hold.",
        "broker.a:A.b: Run.",
    ]

    @click.group()
    def cli() -> None:
        """Keep  a\n    house.\n\n    More."""

    @cli.command()
    @click.option("--size", help="Size.")
    @click.option("--loud/--quiet")
    @click.option("--secret", hidden=True)
    def paint(size: str, loud: bool, secret: str) -> None: ...

    assert [(line.name, line.text) for line in help_lines(cli, "x")] == [
        ("x", "Keep a house."), ("x paint", ""), ("x paint --size", "Size."), ("x paint --loud/--quiet", "")
    ]  # fmt: skip


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


@pytest.mark.parametrize("text", ["Return the history.", "Whatever comes is kept.", "The recovery point.", "Untold."])
def test_an_ordinary_line_passes(text: str) -> None:
    assert list(check_lines([Line("broker", "broker.a:f", text)])) == []
