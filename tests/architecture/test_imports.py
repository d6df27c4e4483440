"""The packages stand in order: each imports only what stands above it, and its docstring lists what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.house import PACKAGES, ROOT, Complaint, modules
from tests.architecture.imports import check_arrows, check_cycles, check_third_party, list_complaints


def complaints(root: Path, package: str) -> list[Complaint]:
    listed = modules(root, packages=(package,))
    found = [*check_arrows(listed), *check_cycles(listed), *check_third_party(listed)]
    return [*found, *list_complaints(root, package)]


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_and_lists_of_modules_are_in_order(package: str) -> None:
    assert [str(each) for each in complaints(ROOT, package)] == []


LISTS = {
    "broker": "    ids      Name things.\n    java/    Hash strings.\n",
    "log": "    a    Do.\n    cli/    Run.\n",
    "placement": "    a    Do.\n    b    Do.\n",
    "spark_analysis": "    cli/    Run.\n",
}
SOUND = {
    "broker/ids.py": "",
    "broker/__main__.py": "import broker.java.hash, click",
    "broker/java/__init__.py": '"""Hash.\n\n- order: Order.\n- hash: Hash strings.\n"""\n',
    "broker/java/hash.py": "import broker.ids",
    "broker/java/order.py": "import broker.java.hash",
    "log/a.py": "import numpy",
    "log/cli/__init__.py": "",
    "log/cli/run.py": "import click",
    "placement/a.py": "import broker.ids",
    "placement/b.py": "import placement.a",
    "spark_analysis/cli/commands.py": "def run():\n    from spark_analysis import session",
}


def tree(root: Path, files: dict[str, str]) -> Path:
    drawn = {f"{package}/__init__.py": f'"""Do.\n\n{text}"""\n' for package, text in LISTS.items()}
    for name, text in (drawn | SOUND | files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_sound_tree_is_accepted(tmp_path: Path) -> None:
    assert [each for package in LISTS for each in complaints(tree(tmp_path, {}), package)] == []


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("broker/ids.py", "import placement.b", "broker/ids.py:1: broker may not import placement.b"),
        ("log/a.py", "from placement import b", "log/a.py:1: log may not import placement"),
        ("placement/a.py", "def f():\n    import log", "placement/a.py:2: placement may not import log"),
        ("placement/a.py", "def f():\n    import broker.ids", "placement/a.py:2: imports broker.ids inside a function"),
        ("log/a.py", "if TYPE_CHECKING:\n    from replication import b", "log/a.py:2: log may not import replication"),
        ("log/a.py", "import tests.oracles", "log/a.py:1: imports tests; nothing may"),
        ("broker/ids.py", "import pyarrow as pa", "broker/ids.py:1: pyarrow is not allowed in broker/ids.py"),
        ("log/a.py", "import socket", "log/a.py:1: log is pure and may not import socket"),
        ("placement/a.py", "from . import b", "imports itself by way of"),
        ("placement/a.py", "import placement.b", "imports placement.b, but placement lists b below a"),
        ("broker/ids.py", "def f():\n    from .java.hash import x", "broker lists java below ids"),
        ("broker/clock.py", "", "the docstring lists ['ids', 'java/']; on disk are ['clock', 'ids'"),
        ("broker/zoo/deep/tree.py", "", "on disk are ['ids', 'java/', 'zoo/']"),
        ("broker/__init__.py", '"""A.\n\n    ids    B.\n    java/  no sentence\n"""', "lists ['ids']; on disk are"),
        ("broker/__init__.py", '"""A.\n\n    ids    B.\n    ids    B.\n    java/  C.\n"""', "lists ['ids', 'ids',"),
        ("broker/__init__.py", '"""A."""', "broker/__init__.py:1: the docstring lists []; on disk are"),
        ("broker/java/tree.py", "", "the bullets list ['hash', 'order']; on disk are ['hash', 'order', 'tree']"),
    ],
)  # fmt: skip
def test_a_wrong_arrow_or_list_is_seen(tmp_path: Path, path: str, text: str, complaint: str) -> None:
    found = [str(each) for each in complaints(tree(tmp_path, {path: text}), path.split("/")[0])]
    assert any(complaint in each for each in found), found
