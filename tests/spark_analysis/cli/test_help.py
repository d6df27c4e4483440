"""The examples in help texts can be typed: their commands and options are there, and diagrams have the names shown."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from replication.roles.states import find_machines
from spark_analysis.cli.commands import brokerside
from tests.architecture.house import PACKAGES, ROOT
from tests.architecture.options import walked

COMMANDS = [(" ".join(("brokerside", *words)), command) for words, command in walked(brokerside)]


def examples() -> list[str]:
    return sorted(
        {
            line.strip()
            for _, command in COMMANDS
            for line in (command.help or "").splitlines()
            if re.match(r"\s*brokerside [a-z]", line)
        }
    )


def parse(line: str) -> tuple[click.Command, list[str]]:
    """Return the command that a line calls and its words; click raises for an option that is not there."""
    command: click.Command = brokerside
    words = shlex.split(line)[1:]
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, words[0]
        command, words = found, words[1:]
    command.make_parser(click.Context(command)).parse_args(list(words))
    return command, words


@pytest.mark.parametrize("line", examples())
def test_an_example_of_a_help_text_can_be_typed(line: str) -> None:
    _, words = parse(line)
    if "--diagram" in words:
        assert find_machines(words[words.index("--diagram") + 1])


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_help_fits_a_terminal_of_80_columns(path: str, command: click.Command) -> None:
    shown = command.get_help(click.Context(command, info_name=path, terminal_width=80))
    assert [line for line in shown.splitlines() if len(line) > 80] == []


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
OF_KAFKA = re.compile(r"kafka-|var\(--|:root|--add-modules|--topics-with-overrides")
"""Texts that name options of Kafka's tools, properties of a style sheet, or options of Java."""
IN_KAFKA_TEXTS = frozenset({
    "--additional", "--at-min-isr-partitions", "--bootstrap-server", "--describe",
    "--disallow-replication-factor-change", "--election-type", "--execute", "--generate", "--members",
    "--offsets", "--path-to-json-file", "--reassignment-json-file", "--replica-alter-log-dirs-throttle", "--state",
    "--unavailable-partitions", "--under-min-isr-partitions", "--under-replicated-partitions", "--verbose", "--verify",
})  # fmt: skip


def options_of(command: click.Command) -> set[str]:
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}


def texts_of(command: click.Command) -> Iterator[str]:
    yield from (command.help or "").splitlines()
    yield from (getattr(param, "help", None) or "" for param in command.params)


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_a_help_text_names_options_of_its_own_command(path: str, command: click.Command) -> None:
    have = options_of(command)
    for text in texts_of(command):
        if not re.search(r"kafka-|^\s*brokerside ", text):
            assert set(OPTION.findall(text)) <= have, text


def literals(path: Path) -> Iterator[str]:
    """Yield the strings of a module that are no docstrings."""
    source = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source))) if OPTION.search(source) else []
    scopes = (node for node in nodes if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef))
    documented = {id(scope.body[0].value) for scope in scopes if scope.body and isinstance(scope.body[0], ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


def test_a_message_names_options_that_a_command_has() -> None:
    """Of a module of one command these are its own, elsewhere those of any command; or Kafka's tools have them."""
    every: set[str] = set()
    own: dict[str, set[str]] = {}
    for _, command in COMMANDS:
        every |= options_of(command)
        module = inspect.unwrap(command.callback).__module__ if command.callback is not None else ""
        own.setdefault(module, set()).update(options_of(command))
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            known = (every if module == "spark_analysis.cli.commands" else own.get(module, every)) | IN_KAFKA_TEXTS
            for text in literals(path):
                if not OF_KAFKA.search(text):
                    assert set(OPTION.findall(text)) <= known, (module, text)


def test_there_are_examples_and_a_wrong_one_is_seen() -> None:
    assert len(examples()) > 15
    with pytest.raises(click.NoSuchOption):
        parse("brokerside assign orders:4:3 --borkers 0-5")
