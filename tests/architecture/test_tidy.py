"""Nothing too long, no hidden inputs, no silenced check without a reason, nothing of one machine.

Docstrings, printing and style are ruff's (rules D1 and T20); these rules are ours.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, Final

import pytest

from tests.architecture.house import PACKAGES, ROOT, Complaint, Module, functions, modules, text_files, tracked_files

FILE_LINES_MAX: Final = 500
TEST_LINES_MAX: Final = 800
FUNCTION_LINES_MAX: Final = 70
TOP_LEVEL: Final = frozenset({"pyproject.toml", "README.md", "LICENSE", *PACKAGES, "tests"})

CHANCE: Final = frozenset({"random", "uuid", "secrets"})
CLOCKS: Final = frozenset({"time", "datetime"})
WORLDLY_FILES: Final = (
    *("*/__main__.py", "*/cli.py", "*/*_cli.py", "*/cli/*.py", "log/storage/files.py"),
    *("replication/testing/sockets.py", "replication/testing/virtual_process.py"),
)
"""Files that read clocks, the environment and files, beside spark_analysis; chance is a parameter everywhere."""

VALUES: Final = frozenset(
    {"from datetime import timedelta", "from datetime import UTC, datetime, timedelta", "from uuid import UUID"}
)
"""Types of values of the wire format, which read neither clock nor chance."""
CHANCE_REPLACED: Final = "replication/testing/virtual_process.py"
"""Puts seeded chance in the place of the process's own while a program runs on virtual time."""

# Assembled from parts, so that this file does not hold what it looks for.
_PLACES: Final = ("ro" + "ot", "wo" + "rk", "ho" + "me", "op" + "t/dev", "tm" + "p/bash")
_HOSTS: Final = (
    *("pypi" + ".org", "files.python" + "hosted.org", "repo1.maven" + ".org", "repo.maven.apache" + ".org"),
    "registry.npm" + "js.org",
)
STORED_WORDS: Final = re.compile(rf"(?<![\w.])/(?:{'|'.join(_PLACES)})/|\.\./sha" + "red|" + "|".join(_HOSTS))
PRIVATE_WORDS: Final = re.compile(
    r"\b(story|stories|tales?|ghosts?|shadows?|weather|upkeep|told|guests?|heeds?|gentlest|judges?|campaigns?"
    r"|mend(?:s|ed|ing)?|bad news|phantoms?)\b",
    re.IGNORECASE,
)
RIDDLES: Final = ("What ", "Who ", "How ", "It ")
"""Openings of a first line that name nobody who acts."""
_SILENCER: Final = re.compile(r"#\s*(?:noqa|type:\s*ignore|fmt:\s*off|pragma)\b(?P<rest>.*)")


def length_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function without its docstring."""
    text = function.body[0] if ast.get_docstring(function) is not None else None
    return (function.end_lineno or 0) - function.lineno + 1 - ((text.end_lineno or 0) - text.lineno + 1 if text else 0)


def too_long(listed: Iterable[Module]) -> Iterator[Complaint]:
    for module in listed:
        limit, count = (TEST_LINES_MAX if module.package == "tests" else FILE_LINES_MAX), module.text.count("\n")
        if count > limit:
            yield Complaint(module.path, count, f"has {count} lines; at most {limit} are allowed")
        for function in functions(module.tree):
            if (length := length_of(function)) > FUNCTION_LINES_MAX:
                text = f"{function.name} has {length} lines; at most {FUNCTION_LINES_MAX} are allowed"
                yield Complaint(module.path, function.lineno, text)


def hidden_inputs(listed: Iterable[Module]) -> Iterator[Complaint]:
    """Yield uses of chance, clocks, the environment, files and string hashes where they are not allowed."""
    for module in listed:
        path = PurePosixPath(module.path)
        is_worldly = module.package == "spark_analysis" or any(map(path.match, WORLDLY_FILES))
        for node in ast.walk(module.tree):
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            chance = frozenset() if module.path == CHANCE_REPLACED else CHANCE
            hides = [each for each in named if each.split(".")[0] in (chance if is_worldly else chance | CLOCKS)]
            hides = [] if ast.unparse(node) in VALUES else hides
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            is_environment = isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv")
            if hides or called == "hash" or (not is_worldly and (is_environment or called == "open")):
                yield Complaint(module.path, getattr(node, "lineno", 0), f"hides an input: {ast.unparse(node)}")


def unexplained(listed: Iterable[Module]) -> Iterator[Complaint]:
    """Yield comments that silence a tool and do not say why, as in `# noqa: A002 - the field's word.`"""
    for module in listed:
        if not _SILENCER.search(module.text):
            continue
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
            match = _SILENCER.search(token.string) if token.type == tokenize.COMMENT else None
            if match and not re.search(r"\s[-–—#]\s*\w.*\w", match["rest"]):
                yield Complaint(module.path, token.start[0], f"{token.string.strip()} does not say why")


def riddles(listed: Iterable[Module]) -> Iterator[Complaint]:
    """Yield first lines of public docstrings that name no agent, or hold a word that only this project used."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for module in listed:
        for node in ast.walk(module.tree):
            docstring = ast.get_docstring(node) if isinstance(node, kinds) else None
            if docstring is None or getattr(node, "name", "").startswith("_"):
                continue
            first = docstring.splitlines()[0]
            if first.startswith(RIDDLES) or PRIVATE_WORDS.search(first):
                yield Complaint(module.path, getattr(node, "lineno", 1), f"is worded so that few read it: {first}")


def stored_words(texts: Iterable[tuple[str, str]]) -> Iterator[Complaint]:
    """Yield paths of one machine and hosts of package registries in any stored text."""
    for path, text in texts:
        for number, line in enumerate(text.splitlines(), start=1):
            if match := STORED_WORDS.search(line):
                yield Complaint(path, number, f"holds {match[0]}")


EVERYTHING: Final = (*PACKAGES, "tests")


@pytest.mark.parametrize("packages", [tuple(PACKAGES), pytest.param(("tests",), marks=pytest.mark.deep)])
def test_every_module_is_short_and_explains_what_it_silences(packages: tuple[str, ...]) -> None:
    listed = modules(ROOT, packages=packages)
    assert [str(each) for check in (too_long, unexplained) for each in check(listed)] == []


def test_no_module_has_hidden_inputs_and_nine_of_ten_functions_fit_in_thirty_lines() -> None:
    listed = modules(ROOT)
    assert [str(each) for check in (hidden_inputs, riddles) for each in check(listed)] == []
    lengths = sorted(length_of(function) for module in listed for function in functions(module.tree))
    assert lengths[len(lengths) * 9 // 10] <= 30


def test_no_stored_text_names_a_machine_or_a_registry() -> None:
    assert [str(each) for each in stored_words(text_files(ROOT))] == []


def test_the_top_level_holds_what_it_should_and_every_folder_is_a_package() -> None:
    names = {path.relative_to(ROOT).parts[0] for path in tracked_files(ROOT)}
    assert {name for name in names if not name.startswith(".")} <= TOP_LEVEL
    assert [package for package in PACKAGES if not (ROOT / package / "py.typed").is_file()] == []
    folders = {path.parent for top in EVERYTHING for path in (ROOT / top).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


@pytest.mark.parametrize(
    ("check", "path", "text", "complaint"),
    [
        (too_long, "log/a.py", "def f():\n" + "    x = 1\n" * 70, "log/a.py:1: f has 71 lines; at most 70 are allowed"),
        (too_long, "log/a.py", 'def f():\n    """Say.\n\n    More.\n    """\n' + "    x = 1\n" * 69, None),
        (too_long, "log/a.py", "x = 1\n" * 501, "log/a.py:501: has 501 lines; at most 500 are allowed"),
        (too_long, "tests/log/test_a.py", "x = 1\n" * 501, None),
        (hidden_inputs, "log/a.py", "import random", "log/a.py:1: hides an input: import random"),
        (hidden_inputs, "log/cli/a.py", "import random", "log/cli/a.py:1: hides an input: import random"),
        (hidden_inputs, "log/a.py", "from time import time", "log/a.py:1: hides an input: from time import time"),
        (hidden_inputs, "log/a.py", "\nos.environ['A']", "log/a.py:2: hides an input: os.environ"),
        (hidden_inputs, "log/a.py", "x = hash('a')", "log/a.py:1: hides an input: hash('a')"),
        (hidden_inputs, "log/a.py", "open('a')", "log/a.py:1: hides an input: open('a')"),
        (hidden_inputs, "log/storage/files.py", "open('a')", None),
        (hidden_inputs, "spark_analysis/a.py", "import time; os.environ['A']", None),
        (riddles, "log/a.py", '"""What it is."""', "log/a.py:1: is worded so that few read it: What it is."),
        (riddles, "log/a.py", 'def f():\n    """Return the ghost."""', "log/a.py:1: is worded so that few"),
        (riddles, "log/a.py", 'def f():\n    """Return the history, untold."""', None),
        (unexplained, "log/a.py", "x = 1  # noqa: A002\n", "log/a.py:1: # noqa: A002 does not say why"),
        (unexplained, "log/a.py", "x = 1  # fmt: off\n", "log/a.py:1: # fmt: off does not say why"),
        (unexplained, "log/a.py", "x = 1  # noqa: A002 - the field's word.\n", None),
    ],
)  # fmt: skip
def test_a_broken_rule_is_seen(check: Any, path: str, text: str, complaint: str | None) -> None:
    found = check([Module(path, path.removesuffix(".py").replace("/", "."), text, ast.parse(text))])
    assert [str(each).startswith(complaint or "") for each in found] == ([] if complaint is None else [True])


@pytest.mark.parametrize(
    ("text", "is_seen"),
    [
        ("see /" + "root/x", True),
        ("https://pypi" + ".org/simple", True),
        ("/var/lib/kafka", False),
        ("a/work/b", False),
    ],
)
def test_words_of_one_machine_are_seen(text: str, is_seen: bool) -> None:
    assert bool(list(stored_words([("a.md", text)]))) is is_seen
