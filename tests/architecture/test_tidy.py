"""The house is tidy: nothing too long, nothing unexplained, no hidden inputs, nothing of one machine."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture import tidy
from tests.architecture.house import PACKAGES, ROOT, Module, modules, text_files

OURS = tuple(PACKAGES)


def lines(complaints: object) -> list[str]:
    assert hasattr(complaints, "__iter__")
    return [str(complaint) for complaint in complaints]


def module(text: str, path: str = "broker/a.py") -> list[Module]:
    return [Module(path, path.removesuffix(".py").replace("/", "."), text, ast.parse(text))]


def test_no_file_and_no_function_is_too_long() -> None:
    assert lines(tidy.check_lengths(modules(ROOT, packages=(*OURS, "tests")))) == []


def test_nine_of_ten_functions_fit_in_thirty_lines() -> None:
    lengths = tidy.function_lengths(modules(ROOT))
    assert lengths[len(lengths) * 9 // 10] <= 30


def test_every_module_and_every_public_name_says_what_it_is() -> None:
    assert lines(tidy.check_docstrings(modules(ROOT, packages=(*OURS, "tests")))) == []


def test_no_module_has_hidden_inputs() -> None:
    assert lines(tidy.check_hidden_inputs(modules(ROOT))) == []


def test_every_silenced_check_says_why() -> None:
    assert lines(tidy.check_suppressions(modules(ROOT, packages=(*OURS, "tests")))) == []


def test_no_stored_text_names_a_machine_or_a_registry() -> None:
    assert lines(tidy.check_stored_words(text_files(ROOT))) == []


def test_the_top_level_holds_what_it_should() -> None:
    assert lines(tidy.check_top_level(ROOT)) == []


def test_packages_are_typed_and_folders_of_tests_are_packages() -> None:
    assert lines(tidy.check_markers(ROOT)) == []


def test_a_long_function_is_seen() -> None:
    text = "def f():\n" + "    x = 1\n" * 70
    assert lines(tidy.check_lengths(module(text))) == ["broker/a.py:1: f has 71 lines; at most 70 are allowed"]


def test_a_docstring_does_not_make_a_function_long() -> None:
    text = 'def f():\n    """Say.\n\n    More.\n    """\n' + "    x = 1\n" * 69
    assert lines(tidy.check_lengths(module(text))) == []


@pytest.mark.parametrize(("path", "limit"), [("log/a.py", 500), ("tests/log/test_a.py", 800)])
def test_a_long_file_is_seen(path: str, limit: int) -> None:
    assert lines(tidy.check_lengths(module("x = 1\n" * limit, path))) == []
    too_long = lines(tidy.check_lengths(module("x = 1\n" * (limit + 1), path)))
    assert too_long == [f"{path}:{limit + 1}: has {limit + 1} lines; at most {limit} are allowed"]


def test_missing_docstrings_are_seen() -> None:
    text = "class A:\n    def b(self): ...\n    def _c(self): ...\ndef d(): ...\n"
    assert lines(tidy.check_docstrings(module(text))) == [
        "broker/a.py:1: has no docstring",
        "broker/a.py:1: A has no docstring",
        "broker/a.py:4: d has no docstring",
        "broker/a.py:2: b has no docstring",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import random", "random hides an input: take it as a parameter"),
        ("from datetime import timedelta", "datetime hides an input: take it as a parameter"),
        ("import time", "time hides an input: take it as a parameter"),
        ("from uuid import uuid4", "uuid hides an input: take it as a parameter"),
        ("import os; x = os.environ['A']", "reads the environment"),
        ("import os; x = os.getenv('A')", "reads the environment"),
        ("x = hash('a')", "uses hash(), which differs from run to run for strings"),
        ("print(1)", "prints; only command lines do"),
        ("open('a')", "opens a file"),
    ],
)
def test_a_hidden_input_is_seen(text: str, complaint: str) -> None:
    assert lines(tidy.check_hidden_inputs(module(text))) == [f"broker/a.py:1: {complaint}"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("broker/__main__.py", "print(1)"),
        ("spark_analysis/cli/commands.py", "print(1)"),
        ("spark_analysis/session/spark_session.py", "import os; os.environ['A'] = 'b'"),
        ("log/storage/files.py", "open('a')"),
    ],
)
def test_who_touches_the_world_by_design_may(path: str, text: str) -> None:
    assert lines(tidy.check_hidden_inputs(module(text, path))) == []


@pytest.mark.parametrize("where", ["spark_analysis/a.py", "placement/a.py"])
def test_chance_is_a_parameter_everywhere(where: str) -> None:
    assert lines(tidy.check_hidden_inputs(module("import random", where))) != []


@pytest.mark.parametrize("comment", ["noqa: A002", "noqa", "type: ignore[arg-type]", "fmt: off"])
def test_a_silenced_check_without_a_reason_is_seen(comment: str) -> None:
    assert lines(tidy.check_suppressions(module(f"x = 1  # {comment}\n"))) == [
        f"broker/a.py:1: # {comment} does not say why"
    ]
    assert lines(tidy.check_suppressions(module(f"x = 1  # {comment} - the field's word.\n"))) == []


@pytest.mark.parametrize("text", ["see /" + "root/x", "open('/" + "work/main')", "https://" + "pypi" + ".org/simple"])
def test_words_of_one_machine_are_seen(text: str) -> None:
    (complaint,) = lines(tidy.check_stored_words([("a.md", "fine\n" + text)]))
    assert complaint.startswith("a.md:2: holds ")


@pytest.mark.parametrize("text", ["/var/lib/kafka", "the framework/ folder", "log.dirs=/data/kafka-logs", "a/work/b"])
def test_ordinary_paths_are_no_words_of_one_machine(text: str) -> None:
    assert lines(tidy.check_stored_words([("a.md", text)])) == []


def test_a_stranger_at_the_top_level_is_seen(tmp_path: Path) -> None:
    for name in ("README.md", "notes.md", ".gitignore"):
        (tmp_path / name).write_text("x")
    assert lines(tidy.check_top_level(tmp_path)) == ["notes.md:0: has no place at the top level"]


def test_missing_markers_are_seen(tmp_path: Path) -> None:
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "py.typed").touch()
    (tmp_path / "log" / "py.typed").unlink()
    (tmp_path / "tests" / "log").mkdir(parents=True)
    (tmp_path / "tests" / "__init__.py").touch()
    (tmp_path / "tests" / "log" / "test_a.py").touch()
    assert lines(tidy.check_markers(tmp_path)) == ["log:0: has no py.typed", "tests/log:0: has no __init__.py"]
