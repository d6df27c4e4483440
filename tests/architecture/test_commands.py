"""`python -m <package>` answers for every package: with what it has, or with one sentence and status 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.house import PACKAGES, ROOT


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_answers_for_itself(package: str) -> None:
    done = run(package, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: ")


def test_a_wrong_name_is_one_sentence_and_status_2() -> None:
    done = run("broker", "config", "log.retention.m")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "python -m broker: there is no setting 'log.retention.m'; the nearest is 'log.retention.ms'\n"


def test_the_first_four_packages_load_without_spark_or_any_command_line_library() -> None:
    script = (
        "import importlib, pathlib, sys\n"
        "for package in ('broker', 'placement', 'log', 'replication'):\n"
        "    for path in sorted(pathlib.Path(package).rglob('*.py')):\n"
        "        parts = path.with_suffix('').parts\n"
        "        if not {'__main__', 'cli', 'cli_options', 'strategies', 'testing'} & set(parts):\n"
        "            importlib.import_module('.'.join(parts).removesuffix('.__init__'))\n"
        "print(sorted({'pyspark', 'hypothesis', 'click', 'rich', 'numba'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
