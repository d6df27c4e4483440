"""The packages stand in order: each imports only what stands above it, and nothing hides an arrow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.house import PACKAGES, ROOT, modules
from tests.architecture.imports import check_arrows, check_cycles, check_third_party
from tests.architecture.rooms import all_complaints


def lines(complaints: object) -> list[str]:
    assert hasattr(complaints, "__iter__")
    return [str(complaint) for complaint in complaints]


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_every_package_is_there() -> None:
    assert [name for name in PACKAGES if not (ROOT / name / "__init__.py").is_file()] == []


def test_each_package_imports_only_what_stands_above_it() -> None:
    assert lines(check_arrows(modules(ROOT))) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_imports_itself_in_a_circle(package: str) -> None:
    assert lines(check_cycles(modules(ROOT, packages=(package,)))) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_rooms_are_drawn_as_they_stand_and_no_import_runs_back_up(package: str) -> None:
    assert lines(all_complaints(ROOT, package)) == []


def test_only_listed_third_party_packages_are_used() -> None:
    assert lines(check_third_party(modules(ROOT))) == []


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("broker/a.py", "import placement.b", "broker/a.py:1: broker may not import placement.b"),
        ("log/a.py", "from placement import b", "log/a.py:1: log may not import placement"),
        ("placement/a.py", "def f():\n    import log", "placement/a.py:2: placement may not import log"),
        ("placement/a.py", "def f():\n    import broker.ids", "placement/a.py:2: imports broker.ids inside a function"),
        (
            "log/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from replication import b",
            "log/a.py:3: log may not import replication",
        ),
        (
            "replication/a.py",
            "from spark_analysis.jobs import x",
            "replication/a.py:1: replication may not import spark_analysis.jobs",
        ),
        ("spark_analysis/a.py", "import tests.oracles", "spark_analysis/a.py:1: imports tests; nothing may"),
    ],
)
def test_a_wrong_arrow_is_seen(tmp_path: Path, path: str, text: str, complaint: str) -> None:
    assert lines(check_arrows(modules(tree(tmp_path, {path: text})))) == [complaint]


def test_the_command_line_may_load_spark_late(tmp_path: Path) -> None:
    late = "def run():\n    from spark_analysis import session"
    assert lines(check_arrows(modules(tree(tmp_path, {"spark_analysis/cli/commands.py": late})))) == []


@pytest.mark.parametrize(
    "second", ["from placement.a import x", "from placement import a", "from . import a", "from .a import x"]
)
def test_a_circle_is_seen_however_it_is_written(tmp_path: Path, second: str) -> None:
    files = {"placement/__init__.py": "", "placement/a.py": "import placement.b", "placement/b.py": second}
    (complaint,) = lines(check_cycles(modules(tree(tmp_path, files))))
    assert "placement.a" in complaint
    assert "placement.b" in complaint


def test_a_late_import_is_no_circle(tmp_path: Path) -> None:
    files = {"placement/a.py": "import placement.b", "placement/b.py": "def f():\n    import placement.a"}
    assert lines(check_cycles(modules(tree(tmp_path, files)))) == []


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("broker/a.py", "import numpy as np", "broker/a.py:1: numpy is not allowed in broker/a.py"),
        ("placement/a.py", "import hypothesis", "placement/a.py:1: hypothesis is not allowed in placement/a.py"),
        (
            "replication/a.py",
            "from pyspark.sql import Row",
            "replication/a.py:1: pyspark is not allowed in replication/a.py",
        ),
        ("spark_analysis/a.py", "import click", "spark_analysis/a.py:1: click is not allowed in spark_analysis/a.py"),
        ("log/a.py", "import socket", "log/a.py:1: log is pure and may not import socket"),
    ],
)
def test_a_package_that_is_not_listed_is_seen(tmp_path: Path, path: str, text: str, complaint: str) -> None:
    assert lines(check_third_party(modules(tree(tmp_path, {path: text})))) == [complaint]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("broker/cluster.py", "import numpy"),
        ("placement/strategies.py", "import hypothesis"),
        ("broker/__main__.py", "import click"),
        ("spark_analysis/report/terminal.py", "import rich.table"),
    ],
)
def test_a_file_with_a_reason_may_import_more(tmp_path: Path, path: str, text: str) -> None:
    assert lines(check_third_party(modules(tree(tmp_path, {path: text})))) == []
