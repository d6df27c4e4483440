"""Tidiness that a tool can see: lengths, docstrings, names that hide an input, words that must not be stored.

Each check takes modules or texts and yields complaints; the limits are those of the house's style.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from tests.architecture.house import PACKAGES, Complaint, Module, functions, tracked_files

FILE_LINES_MAX: Final = 500
TEST_LINES_MAX: Final = 800
FUNCTION_LINES_MAX: Final = 70

BANNED_MODULES: Final = frozenset({"random", "time", "datetime", "uuid", "secrets"})
"""Hidden inputs: chance and time come in as parameters."""

PRINTING_FILES: Final = ("*/__main__.py", "*/cli.py", "*/cli/*.py", "*/progress.py", "*/terminal.py")
IO_PACKAGE: Final = "spark_analysis"
STORAGE_FILE: Final = "log/storage/files.py"

TOP_LEVEL: Final = frozenset({"pyproject.toml", "README.md", "LICENSE", *PACKAGES, "tests"})

# Assembled from parts, so that this file does not hold what it looks for.
MACHINE_PATHS: Final = re.compile(
    r"(?<![\w.])/(?:"
    + "|".join(["ro" + "ot", "wo" + "rk", "ho" + "me", "op" + "t/dev", "tm" + "p/bash"])
    + r")/|\.\./sha"
    + "red"
)
REGISTRY_HOSTS: Final = re.compile(
    "|".join(
        re.escape(host)
        for host in (
            "pypi" + ".org",
            "files.python" + "hosted.org",
            "repo1.maven" + ".org",
            "repo.maven.apache" + ".org",
            "registry.npm" + "js.org",
        )
    )
)
_REASON: Final = re.compile(r"#\s*(?:noqa|type:\s*ignore|fmt:\s*off|pragma)\b(?P<rest>.*)")


def check_lengths(modules: Iterable[Module]) -> Iterator[Complaint]:
    """Yield files and functions that are too long; a function's docstring does not count."""
    for module in modules:
        limit = TEST_LINES_MAX if module.package == "tests" else FILE_LINES_MAX
        count = module.text.count("\n")
        if count > limit:
            yield Complaint(module.path, count, f"has {count} lines; at most {limit} are allowed")
        for function in functions(module.tree):
            length = _length_without_docstring(function)
            if length > FUNCTION_LINES_MAX:
                text = f"{function.name} has {length} lines; at most {FUNCTION_LINES_MAX} are allowed"
                yield Complaint(module.path, function.lineno, text)


def check_docstrings(modules: Iterable[Module]) -> Iterator[Complaint]:
    """Yield modules, and public classes and functions of packages, that do not say what they are."""
    for module in modules:
        if not ast.get_docstring(module.tree):
            yield Complaint(module.path, 1, "has no docstring")
        if module.package == "tests":
            continue
        for owner in _public_scopes(module.tree):
            for node in owner.body:
                named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                if named and not node.name.startswith("_") and not ast.get_docstring(node) and not _is_overload(node):
                    yield Complaint(module.path, node.lineno, f"{node.name} has no docstring")


def check_hidden_inputs(modules: Iterable[Module]) -> Iterator[Complaint]:
    """Yield uses of chance, clocks, the environment, string hashes and printing where they are not allowed.

    spark_analysis touches the world by design: there only chance and hashes stay banned.
    """
    for module in modules:
        touches_world = module.package == IO_PACKAGE or _matches(module.path, PRINTING_FILES)
        banned = BANNED_MODULES if not touches_world else frozenset({"random", "uuid", "secrets"})
        for node in ast.walk(module.tree):
            for name in _imported(node):
                if name.split(".", maxsplit=1)[0] in banned:
                    yield Complaint(module.path, node.lineno, f"{name} hides an input: take it as a parameter")
            if (
                isinstance(node, ast.Attribute)
                and not touches_world
                and ast.unparse(node) in ("os.environ", "os.getenv")
            ):
                yield Complaint(module.path, node.lineno, "reads the environment")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield from _check_call(module, node, node.func.id, touches_world=touches_world)


def check_suppressions(modules: Iterable[Module]) -> Iterator[Complaint]:
    """Yield comments that silence a tool and do not say why, as in `# noqa: A002 - the field's word.`"""
    for module in modules:
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
            match = _REASON.search(token.string) if token.type == tokenize.COMMENT else None
            if match and not re.search(r"\s[-–—#]\s*\w.*\w", match["rest"]):
                yield Complaint(module.path, token.start[0], f"{token.string.strip()} does not say why")


def check_stored_words(texts: Iterable[tuple[str, str]]) -> Iterator[Complaint]:
    """Yield paths of one machine and hosts of package registries in any stored text."""
    for path, text in texts:
        for number, line in enumerate(text.splitlines(), start=1):
            for pattern, what in ((MACHINE_PATHS, "a path of one machine"), (REGISTRY_HOSTS, "a registry's host")):
                if match := pattern.search(line):
                    yield Complaint(path, number, f"holds {what}: {match[0]}")


def check_top_level(root: Path) -> Iterator[Complaint]:
    """Yield files and folders at the top that the house has no room for."""
    names = {path.relative_to(root).parts[0] for path in tracked_files(root)}
    for name in sorted(names):
        if name not in TOP_LEVEL and not name.startswith("."):
            yield Complaint(name, 0, "has no place at the top level")


def check_markers(root: Path) -> Iterator[Complaint]:
    """Yield packages without py.typed, and folders of tests without __init__.py."""
    for package in PACKAGES:
        if not (root / package / "py.typed").is_file():
            yield Complaint(package, 0, "has no py.typed")
    for top in (*PACKAGES, "tests"):
        for folder in sorted({path.parent for path in (root / top).rglob("*.py")}):
            if not (folder / "__init__.py").is_file():
                yield Complaint(folder.relative_to(root).as_posix(), 0, "has no __init__.py")


def function_lengths(modules: Iterable[Module]) -> list[int]:
    """Return the lengths of all functions, without docstrings, ascending."""
    return sorted(_length_without_docstring(function) for module in modules for function in functions(module.tree))


def _length_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    length = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return length
    docstring = function.body[0]
    return length - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def _public_scopes(tree: ast.Module) -> list[ast.Module | ast.ClassDef]:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    return [tree, *classes]


def _is_overload(node: ast.stmt) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(ast.unparse(one).endswith(("overload", ".setter")) for one in decorators)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [node.module or ""]
    return []


def _check_call(module: Module, node: ast.Call, name: str, *, touches_world: bool) -> Iterator[Complaint]:
    printing = _matches(module.path, PRINTING_FILES)
    if name == "print" and not printing:
        yield Complaint(module.path, node.lineno, "prints; only command lines do")
    if name == "hash":
        yield Complaint(module.path, node.lineno, "uses hash(), which differs from run to run for strings")
    if name == "open" and not touches_world and module.path != STORAGE_FILE:
        yield Complaint(module.path, node.lineno, "opens a file")


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(PurePosixPath(path).match(pattern) for pattern in patterns)
