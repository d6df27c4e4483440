"""The words of docstrings and help: what a tool can see of them, in the packages and rooms that are held to it."""

from __future__ import annotations

import ast

import click
import pytest

from tests.architecture import words
from tests.architecture.__main__ import main
from tests.architecture.house import PACKAGES, Module
from tests.architecture.words import (
    Failure,
    Line,
    check_headings,
    check_lines,
    check_verbs,
    first_lines,
    help_lines,
    is_of,
)

HELD = (
    "broker",
    "brokerside",
    "log",
    "placement",
    "replication",
    "spark_analysis",
)
"""Packages, rooms, modules and commands without a failure; a name is added when its last one is mended."""
BEGIN_WITH_VERBS = ("broker", "log", "spark_analysis")
"""Packages in which every first line of a docstring begins with a verb."""


def module(text: str, path: str = "broker/a.py") -> list[Module]:
    return [Module(path, path.removesuffix(".py").replace("/", "."), text, ast.parse(text))]


def test_what_is_held_to_the_rules_of_wording_keeps_them() -> None:
    assert [str(one) for one in words.failures() if any(is_of(one.name, held) for held in HELD)] == []


def test_first_lines_of_the_named_packages_begin_with_a_verb() -> None:
    assert [str(one) for one in check_verbs(words.everything()) if one.package in BEGIN_WITH_VERBS] == []


def test_the_list_has_every_package_and_every_command() -> None:
    listed = words.everything()
    assert {line.package for line in listed} == set(PACKAGES)
    assert len(listed) > 3_000
    names = {line.name for line in listed}
    assert {"brokerside assign", "brokerside fleet", "brokerside log verify", "brokerside fleet --seed"} <= names


def test_first_lines_are_those_of_public_names() -> None:
    hold = 'class A:\n    """Hold."""\n    def b(self):\n        """Run."""\n    def _c(self):\n        """No."""\n'
    text = f'"""Do.\n\nMore.\n"""\n{hold}'
    assert [str(line) for line in first_lines(module(text))] == [
        "broker.a:: Do.",
        "broker.a:A: Hold.",
        "broker.a:A.b: Run.",
    ]


def test_help_is_listed_for_commands_and_options() -> None:
    @click.group()
    def cli() -> None:
        """Keep  a\n    house.\n\n    More."""

    @cli.command()
    @click.option("--size", help="Size.")
    @click.option("--loud/--quiet")
    @click.option("--secret", hidden=True)
    @click.argument("room")
    def paint(size: str, loud: bool, secret: str, room: str) -> None: ...

    assert [(line.name, line.text) for line in help_lines(cli, "x")] == [
        ("x", "Keep a house."),
        ("x paint", ""),
        ("x paint --size", "Size."),
        ("x paint --loud/--quiet", ""),
    ]


@pytest.mark.parametrize(
    ("text", "is_help", "failure"),
    [
        ("What a broker is.", False, "begins with 'What'"),
        ("Who may lead.", False, "begins with 'Who'"),
        ("How it is read.", False, "begins with 'How'"),
        ("It is gone.", False, "begins with 'It'"),
        ("Return the ghost.", False, "says 'ghost'"),
        ("Return the stories.", False, "says 'stories'"),
        ("", True, "has no help"),
        ("Seed", True, "is no sentence"),
    ],
)
def test_a_failing_line_is_seen(text: str, is_help: bool, failure: str) -> None:
    (found,) = check_lines([Line("broker", "broker.a:f", text, is_help)])
    assert found.text.startswith(failure)


@pytest.mark.parametrize("text", ["The coordinator of a group.", "One record.", "Reads a log.", "Bytes of a file."])
def test_a_line_that_begins_with_a_noun_or_a_third_person_is_seen(text: str) -> None:
    (found,) = check_verbs([Line("broker", "broker.a:f", text)])
    assert found.text == f"begins with {text.split()[0]!r}, which is no verb of the list: {text}"


def test_verbs_help_and_errors_pass_the_check_of_verbs() -> None:
    assert not list(
        check_verbs(
            [
                Line("broker", "broker.a:f", "Read, check and rework logs."),
                Line("broker", "broker.a:f", "Flush: all files."),
                Line("broker", "broker.a:SizeError", "A batch is too large."),
                Line("broker", "brokerside x --seed", "Seed.", is_help=True),
            ]
        )
    )


@pytest.mark.parametrize(
    "text", ["Return the history.", "Whatever comes is kept.", "Items are sorted", "Untold riches."]
)
def test_an_ordinary_line_passes(text: str) -> None:
    assert list(check_lines([Line("broker", "broker.a:f", text)])) == []


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ("Worked example: 1.", "has the heading 'Worked example', which the template has not"),
        ("Price:\n    much", "has the heading 'Price', which the template has not"),
        ("How\nSo.", "has the heading 'How' without its colon"),
        ("Source: ours.\n\nLeft out: more.", "has its headings twice or out of order: Source, Left out"),
        ("How: so.\n\nMore.\n\nMore.\n\nPrice: 1.", "has the heading 'Price', which the template has not"),
        ("How: so.\n\nHow: or so.", "has its headings twice or out of order: How, How"),
    ],
)
def test_a_heading_outside_the_template_is_seen(body: str, failure: str) -> None:
    assert [one.text for one in check_headings(module(f'"""Do.\n\n{body}\n"""'))] == [failure]


def test_the_template_passes() -> None:
    body = "\n\n".join(f"{heading}: text: more." for heading in words.HEADINGS)
    assert (
        list(check_headings(module(f'"""Do.\n\nA paragraph that ends with a colon and goes on:\n\n{body}\n"""'))) == []
    )


def test_a_name_belongs_to_its_room_and_to_no_other() -> None:
    assert [
        name for name in ("log", "log:A", "log.a:B", "log scan", "logs", "brokerside log") if is_of(name, "log")
    ] == [
        "log",
        "log:A",
        "log.a:B",
        "log scan",
    ]


def test_the_list_ends_with_what_fails_and_where_the_rules_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(words, "everything", lambda: [Line("broker", "broker.a:", "Do.")])
    monkeypatch.setattr(words, "failures", lambda: [Failure("broker", "broker.a:", "says 'tale': A tale.")])
    assert main(["words"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "broker.a:: Do.\n"
    assert printed.err.splitlines() == [
        "broker: broker.a:: says 'tale': A tale.",
        "1 rule of wording is broken; tests/architecture/words.py has the rules, "
        "and test_words.py names what must not break one any more",
    ]
