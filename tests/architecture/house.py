"""What the house is: its packages in import order, and how its files are found and read.

Every checker takes a root directory, so that it can be tried on a small bad tree as well as on the real one.
"""

from __future__ import annotations

import ast
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

ROOT: Final = Path(__file__).resolve().parents[2]

PACKAGES: Final[dict[str, frozenset[str]]] = {
    "broker": frozenset(),
    "placement": frozenset({"broker"}),
    "log": frozenset({"broker"}),
    "replication": frozenset({"broker", "placement", "log"}),
    "spark_analysis": frozenset({"broker", "placement", "log", "replication"}),
}
"""Each package with those of ours that it may import, in import order."""

_TEXT_ENDINGS: Final = frozenset(
    {".py", ".md", ".toml", ".txt", ".json", ".csv", ".tsv", ".css", ".js", ".java", ".sh", ".cfg", ".yml", ".yaml"}
)


@attrs.frozen(order=True)
class Complaint:
    """One thing that is wrong, and where."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@attrs.frozen
class Module:
    """One Python file: its path below the root, its dotted name, its text and its syntax tree."""

    path: str
    name: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The top-level package."""
        return self.name.split(".", maxsplit=1)[0]

    @property
    def is_package(self) -> bool:
        """Whether this is an __init__.py."""
        return self.path.endswith("__init__.py")


def modules(root: Path, *, packages: tuple[str, ...] = tuple(PACKAGES)) -> list[Module]:
    """Return the modules of `packages` below `root`, sorted by path."""
    found = []
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            relative = path.relative_to(root)
            dotted = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
            found.append(Module(relative.as_posix(), dotted, text, _parsed(text, str(path))))
    return found


@functools.cache
def _parsed(text: str, name: str) -> ast.Module:
    """Parse a file once, however many checks look at it."""
    return ast.parse(text, filename=name)


def tracked_files(root: Path) -> list[Path]:
    """Return the files that git tracks or would track, sorted; without git, every file below `root`."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        return sorted(path for path in root.rglob("*") if path.is_file())
    names = sorted(set(listed.stdout.decode().split("\0")) - {""})
    return [path for path in (root / name for name in names) if path.is_file()]


def text_files(root: Path) -> Iterator[tuple[str, str]]:
    """Yield (path below root, text) of every tracked text file."""
    for path in tracked_files(root):
        if path.suffix in _TEXT_ENDINGS or path.parent.name == ".ci" or path.name.startswith("."):
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="replace")


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function and method of a module, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
