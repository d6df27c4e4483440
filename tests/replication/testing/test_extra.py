"""Without the extra `clients`, one sentence names it, and help is shown all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
SENTENCE: Final = "a cluster for real clients needs kio: pip install 'brokerside[clients]'"
_WITHOUT_KIO: Final = "import sys; sys.modules['kio'] = None; "
_COMMAND: Final = "sys.argv = ['brokerside', {}]; from spark_analysis.cli import main; main()"
pytestmark = pytest.mark.deep


def python(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _WITHOUT_KIO + program]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("arguments", ["'serve'", "'simulate', '--app', 'x:main'"])
def test_a_command_that_needs_the_extra_names_it(arguments: str) -> None:
    done = python(_COMMAND.format(arguments))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"brokerside: {SENTENCE}\n")


@pytest.mark.parametrize("command", ["serve", "simulate"])
def test_help_needs_no_extra(command: str) -> None:
    done = python(_COMMAND.format(f"'{command}', '--help'"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: brokerside {command} ")


def test_a_name_of_the_library_that_needs_the_extra_names_it() -> None:
    catching = "\ntry:\n from replication.testing import kafka_cluster\nexcept ImportError as error:\n print(error)"
    assert python(catching).stdout == f"{SENTENCE}\n"
    assert python("from replication.testing import kafka_cluster").stderr.splitlines()[-1].endswith(SENTENCE)
