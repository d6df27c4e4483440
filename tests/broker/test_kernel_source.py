"""Kernels of a module in an archive are compiled once, wherever the archive lies and whatever it is called."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from broker.kernel_source import lasting_source

pytestmark = pytest.mark.deep

ROOT = Path(__file__).resolve().parents[2]
EMPTY = "broker/__init__.py"  # Of the archive; the real one imports more.
MODULE = """
from broker.compiled import compiled, interpreted_at_most
never_interpreted = interpreted_at_most(-1)
never_interpreted.__enter__()
FACTOR = {factor}
@compiled
def times(number):
    return number * FACTOR
"""


def archive(path: Path, factor: int = 3) -> Path:
    """An archive of the modules that compile, and a module with a kernel."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as opened:
        for name in (
            EMPTY,
            "broker/block_copy.py",
            "broker/compiled.py",
            "broker/interpreted.py",
            "broker/kernel_source.py",
        ):
            opened.writestr(zipfile.ZipInfo(name), (ROOT / name).read_bytes() if name != EMPTY else b"")
        opened.writestr(zipfile.ZipInfo("kernels.py"), MODULE.format(factor=factor))
    return path


def result(path: Path, cache: Path, **environment: str) -> str:
    """What the archive's kernel answers in a process of its own, whose caches are below `cache`."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); from kernels import times; print(times(7))"
    variables = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env=variables | {"XDG_CACHE_HOME": str(cache)} | environment,
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def machine_code(cache: Path) -> dict[str, int]:
    """Each file of machine code below `cache`, with the time at which it was written."""
    return {str(path.relative_to(cache)): path.stat().st_mtime_ns for path in cache.rglob("*.nbc")}


def test_an_archive_elsewhere_is_not_compiled_again(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert result(archive(tmp_path / "app-1" / "ours.zip"), cache) == "21"
    first = machine_code(cache)
    assert len(first) == 1
    assert result(archive(tmp_path / "app-2" / "other.zip"), cache) == "21"
    assert machine_code(cache) == first


def test_another_version_is_compiled_for_itself(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert result(archive(tmp_path / "app-1" / "ours.zip"), cache) == "21"
    assert result(archive(tmp_path / "app-1" / "ours.zip", factor=5), cache) == "35"
    assert len(machine_code(cache)) == 2


def test_a_copy_that_somebody_has_changed_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.kernel_source._folder", lambda: tmp_path / "cache")
    module = str(archive(tmp_path / "ours.zip") / "kernels.py")
    copy = lasting_source(module)
    assert copy is not None
    own = Path(copy).read_text(encoding="utf-8")
    Path(copy).write_text("raise SystemExit", encoding="utf-8")
    assert lasting_source(module) == copy
    assert Path(copy).read_text(encoding="utf-8") == own


def test_a_file_that_is_no_archives_member_keeps_its_path(tmp_path: Path) -> None:
    assert lasting_source(__file__) == __file__
    assert lasting_source("<string>") == "<string>"
    assert lasting_source(str(tmp_path / "none.zip" / "broker" / "ids.py")) == str(
        tmp_path / "none.zip" / "broker" / "ids.py"
    )
    damaged = tmp_path / "damaged.zip"
    damaged.write_bytes(b"nothing of the kind")
    assert lasting_source(str(damaged / "broker" / "ids.py")) is None
