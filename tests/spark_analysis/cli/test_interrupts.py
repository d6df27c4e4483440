"""Ctrl-C and SIGTERM at chosen moments: one line, a status, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spark_analysis.cli.interrupts import end_at_once, raise_in_command
from tests.architecture.house import ROOT
from tests.spark_analysis.processes import SECONDS_MAX, processes_of, wait_until

pytestmark = pytest.mark.deep

MAIN = "from spark_analysis.cli import main; main()"

# The interpreter looks for a module, and at that moment the signal arrives.
AT_IMPORT = """
import os, signal, sys

wanted = sys.argv[1]

class Signalling:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Signalling())
from spark_analysis.cli import main
sys.argv[:2] = ["brokerside"]
main()
"""

IN_COMMAND = """
import click, os, signal, sys, tempfile
from broker.cli import run

@click.command()
@click.argument("number", type=int)
def work(number):
    with tempfile.TemporaryDirectory():
        os.kill(os.getpid(), number)

sys.exit(run(work, "work"))
"""

# The signal arrives where nothing can be raised, and the command would work on for a minute.
WHERE_NOTHING_IS_RAISED = """
import click, os, signal, sys, time, weakref
from broker.cli import run

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), number)
        time.sleep(0.001)

class Referred:
    pass

def finalizer():
    Finalized()

def weak_reference():
    it = Referred()
    reference = weakref.ref(it, lambda _: os.kill(os.getpid(), number))
    del it

@click.command()
def work():
    globals()[sys.argv[2]]()
    time.sleep(60)
    print("worked on")

number = int(sys.argv[1])
sys.exit(run(work, "work", []))
"""


def run(script: str, *words: str, temporary: Path) -> tuple[int, str]:
    environment = os.environ | {"TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "module", ["broker", "broker.cli", "click", "spark_analysis.cli.commands", "placement.cli", "numpy"]
)
def test_an_interrupt_while_modules_are_loaded_is_one_line(module: str, tmp_path: Path) -> None:
    ended = run(AT_IMPORT, module, "assign", "orders:12:3", "--brokers", "0-5", temporary=tmp_path)
    assert ended == (130, "brokerside: interrupted\n")


@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_command_clears_up_and_says_one_line(number: int, status: int, word: str, tmp_path: Path) -> None:
    assert run(IN_COMMAND, str(int(number)), temporary=tmp_path) == (status, f"work: {word}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["finalizer", "weak_reference"])
@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_signal_where_nothing_is_raised_ends_the_command_too(
    place: str, number: int, status: int, word: str, tmp_path: Path
) -> None:
    assert run(WHERE_NOTHING_IS_RAISED, str(int(number)), place, temporary=tmp_path) == (status, f"work: {word}\n")


@pytest.mark.parametrize("former", [signal.SIG_IGN, signal.SIG_DFL])
def test_an_interrupt_that_somebody_else_decided_on_stays_so(former: signal.Handlers) -> None:
    before = signal.signal(signal.SIGINT, former)
    try:
        end_at_once()
        raise_in_command()
        assert signal.getsignal(signal.SIGINT) is former
    finally:
        signal.signal(signal.SIGINT, before)


def has_files(folder: Path) -> bool:
    return any(path.is_file() for path in folder.rglob("*.parquet"))


@pytest.mark.spark
@pytest.mark.parametrize("moment", ["start", "job"])
@pytest.mark.parametrize(
    ("number", "status", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_spark_leaves_nothing_behind(moment: str, number: int, status: int, word: str, tmp_path: Path) -> None:
    temporary, out = tmp_path / "temporary", tmp_path / "out"
    temporary.mkdir()
    # A group of its own, as a terminal makes it: the signal reaches every process of the group.
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "fleet", "--clusters", "50", "--out", str(out)],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(lambda: bool(processes_of(temporary)) if moment == "start" else has_files(out))
        os.killpg(process.pid, number)
        _, said = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    said_at_last = [line for line in said.splitlines() if not line.startswith(("Starting Spark", "Placing"))]
    assert (process.returncode, said_at_last) == (status, [f"brokerside: {word}"])
    assert (processes_of(temporary), list(temporary.iterdir())) == ([], [])
