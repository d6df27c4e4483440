"""The wheel holds what it should, and runs the main job without the sources, from another folder.

The wheel is built by `python -m build` and installed into a virtual environment of its own. Nothing is downloaded: the
libraries that it needs are those of the running interpreter, put behind the wheel's own folder on the path.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import attrs
import pytest

from tests.architecture.house import PACKAGES, ROOT, tracked_files

ONLY_IN_READMES = (".md", ".png", ".svg")
"""Endings of tracked files that no wheel needs: the packages' READMEs, and the pictures that they show."""


def builds() -> bool:
    """Whether this interpreter has the builder of wheels, and a setuptools that knows licence expressions."""
    if importlib.util.find_spec("build") is None or importlib.util.find_spec("setuptools") is None:
        return False
    return int(importlib.metadata.version("setuptools").split(".")[0]) >= 77


pytestmark = [
    pytest.mark.deep,
    pytest.mark.spark,  # The main job starts Spark, in a process of its own.
    pytest.mark.skipif(not builds(), reason="no builder of wheels; it comes with the extra build"),
]


@attrs.frozen
class Installed:
    """The wheel, the virtual environment that it is installed in, and an empty folder to work in."""

    wheel: Path
    environment: Path
    folder: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, without what this run's own environment says of Python."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))
        }
        program = str(self.environment / "bin" / words[0])
        return subprocess.run(
            [program, *words[1:]], cwd=self.folder, env=kept, capture_output=True, text=True, timeout=600, check=False
        )


def copied_sources(target: Path) -> Path:
    """Copy what git tracks, so that the build leaves nothing in the checkout and takes nothing old from it."""
    for path in tracked_files(ROOT):
        there = target / path.relative_to(ROOT)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(path.read_bytes())
    return target


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    top = tmp_path_factory.mktemp("wheel")
    sources = copied_sources(top / "sources")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(top / "dist"), str(sources)]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr + built.stdout[-2_000:]
    (wheel,) = (top / "dist").glob("*.whl")
    environment = top / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *install], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    # A line of a .pth file adds a folder to the path, behind the wheel's own; .pth files in that folder are not read,
    # so that an editable installation of the sources there is not found.
    (packages / "libraries.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    (top / "elsewhere").mkdir()
    return Installed(wheel, environment, top / "elsewhere")


def test_the_wheel_holds_packages_assets_and_the_licence_and_no_tests(installed: Installed) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)
    assert [package for package in PACKAGES if f"{package}/py.typed" not in names] == []
    tracked = [path.relative_to(ROOT) for path in tracked_files(ROOT)]
    shipped = [path for path in tracked if path.parts[0] in PACKAGES and path.suffix not in ONLY_IN_READMES]
    assert {path.as_posix() for path in shipped} - set(names) == set()
    for ending in (".toml", ".css", ".js"):
        assert any(name.endswith(ending) for name in names), ending
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_code_that_runs_is_the_wheels(installed: Installed) -> None:
    script = f"import {', '.join(PACKAGES)}; print([p.__file__ for p in ({', '.join(PACKAGES)})])"
    done = installed.run("python", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(str(installed.environment)) == len(PACKAGES)
    assert str(ROOT) not in done.stdout


def test_the_main_job_runs_from_another_folder(installed: Installed) -> None:
    done = installed.run("brokerside", "fleet", "demo", "--clusters", "6", "--quiet", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert (installed.folder / "out" / "report.html").stat().st_size > 10_000
    assert str(ROOT) not in done.stdout + done.stderr
