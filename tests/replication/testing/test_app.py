"""An application runs under drawn faults; what breaks it is said, replayed and shrunk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from broker.errors import UsageError
from replication.simulation import Fault, FaultKind
from replication.testing.app import AppRun, load_app, run_app, shrunk, spec_of

ROOT = Path(__file__).parents[3]
APPS = "tests.replication.testing.example_app"


def asked(name: str, seed: int = 1, minutes: float = 2) -> AppRun:
    app = f"{APPS}:{name}"
    return AppRun(app=app, seed=seed, minutes=minutes, spec=spec_of(app))


def test_an_application_that_ends_is_not_broken_and_its_records_are_there() -> None:
    found = run_app(asked("calm"), ())
    assert (found.is_broken, found.line()) == (False, "nothing is broken")
    assert (found.outcome.durability.acked_count, found.outcome.durability.lost) == (10, ())


def test_equal_seeds_draw_equal_faults_and_give_equal_outcomes() -> None:
    first, again = run_app(asked("calm", seed=4)), run_app(asked("calm", seed=4))
    assert first.plan == again.plan != asked("calm", seed=5).plan()
    assert first.outcome.digest == again.outcome.digest


def test_what_breaks_an_application_is_shrunk_to_the_fault_that_does_it() -> None:
    kill = Fault(10_000, FaultKind.KILL, broker=1, duration_ms=5_000)
    pauses = [Fault(at_ms, FaultKind.PAUSE, broker=0, duration_ms=100) for at_ms in (4_000, 5_000, 12_000)]
    run = asked("wrong")
    found = run_app(run, (*pauses, kill))
    assert found.line() == "the application raised ValueError: a broker has died"
    assert shrunk(run, found).plan == (kill,)
    assert not run_app(asked("wrong", minutes=0.5), tuple(pauses)).is_broken


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no.such.module:main", "--app no.such.module:main: No module named 'no'"),
        (f"{APPS}:CLUSTER", "names no coroutine function; write `async def CLUSTER(kafka)`"),
        (f"{APPS}:gone", "names no coroutine function; write `async def gone(kafka)`"),
    ],
)
def test_a_name_that_is_no_application_is_refused(name: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        load_app(name)
    assert words in str(refused.value)


@pytest.mark.deep
def test_the_command_runs_seeds_side_by_side_and_says_which_are_broken() -> None:
    command = [sys.executable, "-m", "spark_analysis", "simulate", "--app", f"{APPS}:main", "--seeds", "6"]
    done = subprocess.run([*command, "--minutes", "2", "--json"], cwd=ROOT, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["seed"] for each in found] == list(range(6))
    assert done.returncode == int(any(each["is_broken"] for each in found))
    assert all(each["findings"] == [] for each in found)
    assert done.stderr == ""
