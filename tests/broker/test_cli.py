"""How commands end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from broker import wording
from broker.cli import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, TRACEBACK, FiniteRange, run, summary_of
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


@click.command()
def nothing() -> None:
    """Do nothing,
    in two lines.

    More.
    """


def test_a_summary_is_the_whole_first_paragraph() -> None:
    assert summary_of(nothing) == "Do nothing, in two lines."


def test_sigterm_is_the_systems_again_when_a_command_is_done() -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert run(nothing, "nothing", []) == 0
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_sigterm_that_somebody_else_handles_stays_theirs() -> None:
    @click.command()
    def terminated() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    handled: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: handled.append(number))
    try:
        assert run(terminated, "terminated", []) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    assert handled == [signal.SIGTERM]


def test_a_command_runs_outside_the_main_thread_too() -> None:
    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(run(nothing, "nothing", [])))
    thread.start()
    thread.join()
    assert statuses == [0]


def test_an_interrupted_question_is_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    def ask() -> None:
        raise click.exceptions.Abort

    assert run(ask, "ask", []) == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "ask: interrupted\n"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (KeyError("seed"), "this is a bug in brokerside, please report it with the command line: KeyError in "),
        (RecursionError(), "this is a bug in brokerside, please report it with the command line: RecursionError in "),
        (MemoryError(), "out of memory; if the input is small, please report it as a bug with the command line: "),
    ],
)
def test_what_no_command_expects_is_one_line_and_a_status_of_its_own(
    error: Exception, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fails:
        def encode(self, *_: str) -> bytes:
            raise error

    @click.command()
    def fail() -> None:
        wording.encodable(Fails())  # type: ignore[arg-type]  # It is to fail.

    assert run(fail, "fail", []) == EXIT_FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fail: {says}")
    assert f"{type(error).__name__} in broker.wording, line " in line
    monkeypatch.setenv(TRACEBACK, "1")
    assert run(fail, "fail", []) == EXIT_FAILED
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_failure_in_generated_code_without_a_module_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    generated: dict[str, Callable[[], None]] = {}
    exec("def fail():\n    raise ValueError('x')", generated)  # As attrs makes methods.
    assert "__name__" not in generated
    assert run(click.command()(generated["fail"]), "fail", []) == EXIT_FAILED
    (line,) = capsys.readouterr().err.splitlines()
    assert "command line: ValueError in broker.cli, line " in line


def test_where_neither_output_can_be_written_the_status_says_so() -> None:
    words = [sys.executable, "-m", "broker", "config", "log.retention.ms"]
    with Path("/dev/full").open("w") as full:
        assert subprocess.run(words, cwd=ROOT, stdout=full, stderr=full, check=False).returncode == EXIT_USAGE


@pytest.mark.parametrize(
    ("work", "status", "said"),
    [
        ("pass", EXIT_USAGE, "No space left on device"),
        ("raise UsageError('this is wrong')", EXIT_USAGE, "this is wrong"),
        ("raise KeyboardInterrupt", EXIT_INTERRUPTED, "interrupted"),
    ],
)
def test_what_a_full_disk_did_not_take_is_not_tried_again_at_the_end(work: str, status: int, said: str) -> None:
    program = f"""
import click, sys
from broker.cli import run
from broker.errors import UsageError

@click.command()
def talk():
    sys.stdout.write("words")
    {work}

sys.exit(run(talk, "talk", []))
"""
    # With unbuffered output nothing would be left for the interpreter to write at its end.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=environment, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, ended.stderr.decode()) == (status, f"talk: {said}\n")


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", b"? 1\n"), ("latin-1", b"? 1\n"), ("utf-8", "– 1\n".encode())]
)
def test_what_a_terminal_cannot_show_is_a_question_mark(encoding: str, shown: bytes) -> None:
    program = "import click; from broker.cli import run; run(click.command()(lambda: print('\u2013 1')), 'talk', [])"
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (ended.stdout, ended.stderr) == (shown, b"")


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "inf", "0"])
def test_a_number_that_no_bound_holds_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    @click.option("--minutes", type=FiniteRange(0.01, 10))
    def wait(minutes: float) -> int:
        raise AssertionError(minutes)

    assert run(wait, "wait", ["--minutes", text]) == 2
    assert "is not in the range 0.01<=x<=10" in capsys.readouterr().err
