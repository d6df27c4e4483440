"""Every example in a docstring is run, as `python -m doctest` would run it, and prints what it shows.

A line `>>> …` that doctest does not find is a complaint too: it stands where nobody runs it, such as below a constant.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import sys
from pathlib import Path

import pytest

from tests.architecture.house import ROOT, Module, modules

EXAMPLE_LINE = re.compile(r"^\s*>>> ", re.MULTILINE)
EXAMPLES = [module for module in modules(ROOT) if EXAMPLE_LINE.search(module.text)]


def complaints(module: Module) -> list[str]:
    """Run the examples of a module; return each that prints something else, and a count of those that are not found."""
    loaded = importlib.import_module(module.name)
    runner = doctest.DocTestRunner(verbose=False)
    found: list[str] = []
    example_count = 0
    for test in doctest.DocTestFinder(exclude_empty=True).find(loaded, module.name):
        example_count += len(test.examples)
        report: list[str] = []
        if runner.run(test, out=report.append).failed:
            found.append("".join(report))
    written_count = len(EXAMPLE_LINE.findall(module.text))
    if written_count != example_count:
        found.append(f"has {written_count} lines `>>>`, of which {example_count} are run")
    return found


@pytest.mark.parametrize("module", EXAMPLES, ids=lambda module: module.name)
def test_examples_print_what_they_show(module: Module) -> None:
    assert complaints(module) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('"""Do.\n\n    >>> 1 + 1\n    3\n"""\n', "Expected:\n    3\nGot:\n    2"),
        ('"""Do."""\n\nONE = 1\n"""Is one.\n\n>>> ONE\n1\n"""\n', "has 1 lines `>>>`, of which 0 are run"),
    ],
)
def test_a_wrong_example_and_one_that_nobody_runs_are_seen(
    text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strange_example.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "strange_example", raising=False)
    (found,) = complaints(Module("strange_example.py", "strange_example", text, ast.parse(text)))
    assert complaint in found
