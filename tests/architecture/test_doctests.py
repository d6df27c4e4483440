"""Every example in a docstring is run, as `python -m doctest` would run it, and prints what it shows.

A line `>>> …` that doctest does not find is a complaint too: it stands where nobody runs it, such as below a constant.
"""

from __future__ import annotations

import doctest
import importlib
import re

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
