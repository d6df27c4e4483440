"""The examples in help texts can be typed: their commands and options are there, and diagrams have the names shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from replication.roles.states import find_machines
from spark_analysis.cli.commands import brokerside


def paths(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from paths(found, f"{path} {name}")


def examples() -> list[str]:
    return sorted(
        {
            line.strip()
            for _, command in paths(brokerside, "brokerside")
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


@pytest.mark.parametrize(("path", "command"), [*paths(brokerside, "brokerside")])
def test_help_fits_a_terminal_of_80_columns(path: str, command: click.Command) -> None:
    shown = command.get_help(click.Context(command, info_name=path, terminal_width=80))
    assert [line for line in shown.splitlines() if len(line) > 80] == []


def test_there_are_examples_and_a_wrong_one_is_seen() -> None:
    assert len(examples()) > 15
    with pytest.raises(click.NoSuchOption):
        parse("brokerside assign orders:4:3 --borkers 0-5")
