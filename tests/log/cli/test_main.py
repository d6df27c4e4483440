"""The group `brokerside log` lists its commands without importing them."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from broker.cli import summary_of
from log.cli.main import COMMANDS, log
from tests.architecture.house import ROOT


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_the_first_sentence_of_each_command_s_help(name: str) -> None:
    command = log.get_command(click.Context(log), name)
    assert command is not None
    assert command.name == name
    assert summary_of(command) == COMMANDS[name][1]


@pytest.mark.deep
def test_help_imports_no_command_and_no_heavy_library() -> None:
    script = (
        "import sys\n"
        "from broker.cli import run\n"
        "from log.cli.main import COMMANDS, log\n"
        "run(log, 'log', ['--help'])\n"
        "heavy = {'numba', 'pyarrow', 'rich', 'log.tools', *(module for module, _ in COMMANDS.values())}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines()[-1], done.stderr) == ("[]", "")


def test_an_unknown_command_is_none() -> None:
    assert log.get_command(click.Context(log), "nothing") is None
