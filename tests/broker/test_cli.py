"""How commands end."""

from __future__ import annotations

import subprocess
import sys

from tests.architecture.house import ROOT

ENDLESS = """
import click, sys
from broker.cli import run

@click.command()
def talk():
    while True:
        click.echo("word " * 1000)

status = run(talk, "talk", [])
sys.stderr.write("left\\n")
sys.exit(status)
"""


def test_a_reader_that_leaves_is_no_failure() -> None:
    with subprocess.Popen([sys.executable, "-c", ENDLESS], cwd=ROOT, stdout=subprocess.PIPE) as talking:
        assert talking.stdout is not None
        assert talking.stdout.read(5) == b"word "
        talking.stdout.close()
        assert talking.wait(timeout=60) == 0
