"""Every example in a docstring is run and prints what it shows."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests.architecture.doctests import complaints, modules_with_examples
from tests.architecture.house import ROOT, Module

EXAMPLES = modules_with_examples(ROOT)

MODULE_COUNT_MIN = 125
"""How many modules have an example; it may only grow."""


def strange(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Module:
    (folder / "strange_example.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "strange_example", raising=False)
    return Module("strange_example.py", "strange_example", text, ast.parse(text))


@pytest.mark.parametrize("module", EXAMPLES, ids=lambda module: module.name)
def test_examples_print_what_they_show(module: Module) -> None:
    assert [str(complaint) for complaint in complaints(module)] == []


def test_examples_do_not_become_fewer() -> None:
    assert len(EXAMPLES) >= MODULE_COUNT_MIN


def test_a_wrong_example_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = 'def one():\n    """Do.\n\n    >>> one()\n    1\n    """\n    return 1\n'
    text = f'"""Do.\n\n    >>> one()\n    2\n"""\n\n\n{one}'
    (found,) = complaints(strange(tmp_path, monkeypatch, text))
    assert "Expected:\n    2\nGot:\n    1" in found.text


def test_an_example_that_nobody_runs_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '"""Do."""\n\nONE = 1\n"""Is one.\n\n>>> ONE\n1\n"""\n'
    (found,) = complaints(strange(tmp_path, monkeypatch, text))
    assert found.text == "has 1 lines `>>>`, of which 0 are run"
