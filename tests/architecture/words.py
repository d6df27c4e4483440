"""The words of the project as one list: first lines of public docstrings, and the help of every command and option.

`python -m tests.architecture words` prints the list, to be read from top to bottom. What can be seen mechanically is
checked here: openings that name no agent, words that only this project used, and help that is missing or is no
sentence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Final

import attrs
import click

from tests.architecture.house import ROOT, Module, modules

PRIVATE_WORDS: Final = re.compile(
    r"\b(story|stories|tales?|ghosts?|shadows?|weather|upkeep|told|guests?|heeds?|gentlest|judges?|campaigns?"
    r"|mend(?:s|ed|ing)?|bad news|phantoms?)\b",
    re.IGNORECASE,
)
RIDDLES: Final = ("What ", "Who ", "How ", "It ")
"""Openings of a first line that name nobody who acts."""


@attrs.frozen(order=True)
class Line:
    """One entry of the list: where it belongs, what it names, its text, and whether it is the help of a command."""

    package: str
    name: str
    text: str
    is_help: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


def first_lines(listed: Iterable[Module]) -> Iterator[Line]:
    """Yield the first line of every public docstring: of modules, classes, functions and methods."""
    for module in listed:
        for name, docstring in _docstrings(module.tree.body, ast.get_docstring(module.tree)):
            yield Line(module.package, f"{module.name}:{name}", docstring.splitlines()[0])


def help_lines(command: click.Command, path: str = "brokerside") -> Iterator[Line]:
    """Yield the help of a command, of its options, and of the commands below it."""
    package = (getattr(command.callback, "__module__", None) or "spark_analysis").split(".", maxsplit=1)[0]
    yield Line(package, path, _one_line((command.help or "").split("\n\n")[0]), is_help=True)
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden and option.name != "help":
            spelled = "/".join(sorted(option.opts, key=len)[-1:] + option.secondary_opts)
            yield Line(package, f"{path} {spelled}", _one_line(option.help or ""), is_help=True)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from help_lines(found, f"{path} {name}")


def everything() -> list[Line]:
    """Return the whole list: docstrings by package in import order, then the commands of brokerside."""
    from spark_analysis.cli.commands import brokerside

    return [*first_lines(modules(ROOT)), *help_lines(brokerside)]


def check_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield every line with an opening or a word that is not allowed, and help that is missing or is no sentence."""
    for line in lines:
        if line.text.startswith(RIDDLES):
            yield Line(line.package, line.name, f"begins with {line.text.split()[0]!r}: {line.text}")
        if word := PRIVATE_WORDS.search(line.text):
            yield Line(line.package, line.name, f"says {word[0]!r}: {line.text}")
        if line.is_help and not line.text.endswith("."):
            yield Line(line.package, line.name, f"is no sentence: {line.text}" if line.text else "has no help")


def failures() -> list[Line]:
    """Return everything that fails, sorted."""
    return sorted(check_lines(everything()))


def _docstrings(body: list[ast.stmt], own: str | None, prefix: str = "") -> Iterator[tuple[str, str]]:
    if own:
        yield prefix, own
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        name = f"{prefix}.{node.name}" if prefix else node.name
        yield from _docstrings(node.body if isinstance(node, ast.ClassDef) else [], ast.get_docstring(node), name)


def _one_line(text: str) -> str:
    return " ".join(text.replace("\b", "").split())
