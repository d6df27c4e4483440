"""The examples in docstrings, run as `python -m doctest` would run them: each docstring with its module's names.

A line `>>> …` that doctest does not find is a complaint too: it stands where nobody runs it, such as below a constant.
"""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

from tests.architecture.house import Complaint, Module, modules

EXAMPLE_LINE = re.compile(r"^\s*>>> ", re.MULTILINE)


def modules_with_examples(root: Path) -> list[Module]:
    """Return the modules of the five packages that hold an example anywhere."""
    return [module for module in modules(root) if EXAMPLE_LINE.search(module.text)]


def complaints(module: Module) -> list[Complaint]:
    """Run the examples of a module; return each that prints something else, and a count of those that are not found."""
    loaded = importlib.import_module(module.name)
    runner = doctest.DocTestRunner(verbose=False)
    found: list[Complaint] = []
    example_count = 0
    for test in doctest.DocTestFinder(exclude_empty=True).find(loaded, module.name):
        example_count += len(test.examples)
        report: list[str] = []
        if runner.run(test, out=report.append).failed:
            found.append(Complaint(module.path, (test.lineno or 0) + 1, "".join(report)))
    written_count = len(EXAMPLE_LINE.findall(module.text))
    if written_count != example_count:
        found.append(Complaint(module.path, 1, f"has {written_count} lines `>>>`, of which {example_count} are run"))
    return found
