"""The words of the house as one list: first lines of public docstrings, and the help of every command and option.

`python -m tests.architecture words` prints the list, to be read from top to bottom. What can be seen mechanically is
checked here: openings that name no agent or are no verb, words that only this house used, headings outside the
template of module docstrings, and help that is missing or is no sentence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Final

import attrs
import click

from tests.architecture.house import ROOT, Module, modules

HEADINGS: Final = (
    "What it decides",
    "Goals, most important first",
    "Constraints",
    "How",
    "Cost",
    "Example",
    "Left out",
    "Source",
)
"""The template of module docstrings, in its order."""

PRIVATE_WORDS: Final = re.compile(
    r"\b(story|stories|tales?|ghosts?|shadows?|weather|upkeep|told|guests?)\b", re.IGNORECASE
)
RIDDLES: Final = ("What ", "Who ", "How ", "It ")
"""Openings of a first line that name nobody who acts."""
VERBS: Final = frozenset(
    re.findall(
        r"\w+",
        """
    Accept Add Analyse Answer Append Apply Arrange Ask Assert Assign Balance Begin Bound Build Call Cancel Carry
    Change Check Choose Clean Close Collect Commit Compact Compare Compile Complete Compress Compute Configure
    Connect Consume Continue Convert Coordinate Copy Count Create Cut Decide Decode Decompress Define Delete
    Deliver Derive Describe Discard Do Draw Drop Elect Encode Escape Estimate Exclude Explore Fail Fetch Fill
    Find Fire Flip Flush Follow Forget Format Gather Generate Give Group Handle Hash Hold Host Identify
    Implement Import Index Inject Insert Iterate Join Keep Kill Let List Load Lock Look Lose Make Manage Map Mark
    Measure Model Move Name Note Notify Observe Open Order Overwrite Pack Parse Pass Perform Permute Place
    Plan Print Process Provide Put Queue Raise Rank Read Rebuild Record Recover Register Reject Release Reload
    Remove Rename Render Renew Replace Replay Report Represent Reproduce Request Require Reserve Reset Resize
    Restore Resume Return Reuse Rewrite Roll Run Scan Schedule Search Select Send Serve Set Settle Share Show Shrink
    Shuffle Simulate Skip Sort Split Stand Start State Step Stop Store Sum Summarise Take Tell Track Translate
    Trim Truncate Try Turn Undo Unwind Update Use Wait Walk Wrap Write Yield
    """,
    )
)
"""Verbs that begin a first line, in the imperative; a new one is added here, a noun is not."""

_HEADING: Final = re.compile(r"^(?P<words>[A-Z][\w'’-]*(?:,? [\w'’-]+){0,4}):(?:\s|$)")


@attrs.frozen
class Line:
    """One entry of the list: where it belongs, what it names, its text, and whether it is the help of a command."""

    package: str
    name: str
    text: str
    is_help: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@attrs.frozen(order=True)
class Failure:
    """One line that fails, and why."""

    package: str
    name: str
    text: str

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


def check_lines(lines: Iterable[Line]) -> Iterator[Failure]:
    """Yield every line with an opening or a word that is not allowed, and help that is missing or is no sentence."""
    for line in lines:
        if line.text.startswith(RIDDLES):
            yield Failure(line.package, line.name, f"begins with {line.text.split()[0]!r}: {line.text}")
        if word := PRIVATE_WORDS.search(line.text):
            yield Failure(line.package, line.name, f"says {word[0]!r}: {line.text}")
        if line.is_help and not line.text.endswith("."):
            yield Failure(line.package, line.name, f"is no sentence: {line.text}" if line.text else "has no help")


def check_verbs(lines: Iterable[Line]) -> Iterator[Failure]:
    """Yield every first line of a docstring that begins with no verb of VERBS.

    A class of errors says in a sentence what happened instead, so its line is not judged, nor is help: an option's
    help may be the name of its value.
    """
    for line in lines:
        first = line.text.split()[0].rstrip(",:;.") if line.text else ""
        if not line.is_help and not line.name.endswith("Error") and first not in VERBS:
            yield Failure(line.package, line.name, f"begins with {first!r}, which is no verb of the list: {line.text}")


def check_headings(listed: Iterable[Module]) -> Iterator[Failure]:
    """Yield headings of module docstrings that the template does not have, or has in another order.

    A heading begins a paragraph, has at most five words and ends with a colon.
    """
    for module in listed:
        paragraphs = (ast.get_docstring(module.tree) or "").split("\n\n")[1:]
        for first in (paragraph.splitlines()[0] for paragraph in paragraphs if paragraph):
            if first in HEADINGS:
                yield Failure(module.package, module.name, f"has the heading {first!r} without its colon")
        found = [match["words"] for paragraph in paragraphs if (match := _HEADING.match(paragraph))]
        for heading in found:
            if heading not in HEADINGS:
                yield Failure(module.package, module.name, f"has the heading {heading!r}, which the template has not")
        places = [HEADINGS.index(heading) for heading in found if heading in HEADINGS]
        if places != sorted(set(places)):
            named = ", ".join(HEADINGS[place] for place in places)
            yield Failure(module.package, module.name, f"has its headings twice or out of order: {named}")


def failures() -> list[Failure]:
    """Return everything that fails, sorted."""
    return sorted([*check_lines(everything()), *check_headings(modules(ROOT))])


def is_of(name: str, holder: str) -> bool:
    """Return whether the name of a line belongs to a package, a room, a module or a command."""
    return name == holder or name.startswith((f"{holder}.", f"{holder}:", f"{holder} "))


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
