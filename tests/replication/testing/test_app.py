"""An application runs under drawn faults; what breaks it is said, replayed and shrunk."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from broker.errors import UsageError
from replication.simulation import Fault, FaultKind
from replication.simulation.report import shrunk_lines
from replication.testing import virtual_loop
from replication.testing.app import AppRun, load_app, run_app, shrunk, spec_of
from tests.replication.testing import example_app

ROOT = Path(__file__).parents[3]
APPS = "tests.replication.testing.example_app"


def at(name: str, further: int) -> str:
    """Return the place of a line of an example, as verdicts name it."""
    return f" (example_app.py, line {getattr(example_app, name).__code__.co_firstlineno + further})"


def asked(name: str, faults: tuple[Fault, ...] | None = (), seed: int = 1, minutes: float = 2) -> AppRun:
    app = f"{APPS}:{name}"
    return AppRun(app=app, seed=seed, minutes=minutes, spec=spec_of(app), faults=faults)


def test_an_application_that_ends_is_not_broken_and_its_records_are_there() -> None:
    found = run_app(asked("calm"))
    assert (found.is_broken, found.line()) == (False, "nothing is broken")
    assert (found.outcome.durability.acked_count, found.outcome.durability.lost) == (10, ())


def test_equal_seeds_draw_equal_faults_and_give_equal_outcomes() -> None:
    first, again = (run_app(asked("calm", None, seed=4)) for _ in range(2))
    assert first.plan == again.plan != asked("calm", None, seed=5).plan()
    assert first.outcome.digest == again.outcome.digest


def test_what_breaks_an_application_is_shrunk_to_the_fault_that_does_it() -> None:
    kill = Fault(10_000, FaultKind.KILL, broker=1, duration_ms=5_000)
    pauses = [Fault(at_ms, FaultKind.PAUSE, broker=0, duration_ms=100) for at_ms in (4_000, 5_000, 12_000)]
    run = asked("wrong", (*pauses, kill))
    found = run_app(run)
    assert found.line() == f"the application raised ValueError: a broker has died{at('wrong', 4)}"
    assert shrunk(run, found).plan == (kill,)
    assert not run_app(asked("wrong", tuple(pauses), minutes=0.5)).is_broken


def test_what_breaks_without_a_fault_is_shrunk_to_no_fault() -> None:
    run = asked("asserts", (Fault(10_000, FaultKind.KILL, broker=1, duration_ms=5_000),))
    lines = shrunk_lines(shrunk(run, run_app(run)).plan, 1)
    assert lines == ["shrunk: it breaks without any fault", "plan, as a file for --plan:", "[]"]


@pytest.mark.parametrize("name", ["drifts_by_class", "drifts_by_line"])
def test_shrinking_keeps_to_the_failure_that_was_seen(name: str) -> None:
    kills = tuple(Fault(at_ms, FaultKind.KILL, broker=1, duration_ms=1_000) for at_ms in (4_000, 30_000))
    found = run_app(asked(name, kills))
    smallest = shrunk(asked(name), found)
    assert (found.struck_count, smallest.struck_count) == (2, 2)
    assert (smallest.plan, smallest.error) == (kills, found.error)
    (other,) = run_app(asked(name, kills[:1])).failures
    assert other not in found.failures, "with one kill it fails otherwise"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("leaves", f"SystemExit: 3{at('leaves', 3)}"),
        ("leaves_in_a_task", f"SystemExit: 4{at('leaves_in_a_task', 4)}"),
        ("generator_exit", f"GeneratorExit{at('generator_exit', 2)}"),
        ("cancelled", f"CancelledError{at('cancelled', 4)}"),
        ("asserts", f"AssertionError{at('asserts', 4)}"),
        ("headless", f"UsageError: partition 0 of topic 'orders' has no leader to kill{at('headless', 5)}"),
    ],
)
def test_whatever_an_application_raises_breaks_its_seed_and_names_the_line(name: str, error: str) -> None:
    found = run_app(asked(name))
    assert (found.is_broken, found.line()) == (True, f"the application raised {error}")


def test_the_text_of_an_error_is_one_short_line() -> None:
    error = run_app(asked("talks")).error
    assert error.startswith("TalkativeError: ('to be read at leisure ', 'on and on and ")
    assert error.endswith(f"…{at('talks', 2)}")
    assert len(error) < 350


@pytest.mark.parametrize("name", ["late", "stubborn", "serves"])
def test_an_application_that_is_cut_off_is_said_to_have_been_running(name: str) -> None:
    found = run_app(asked(name))
    assert (found.is_broken, found.has_ended) == (False, False)
    assert found.line().startswith("nothing is broken")
    assert found.line().endswith("; the application was still running when its 2 minutes were over")


def test_an_application_whose_clients_never_connect_is_said_to_prove_nothing() -> None:
    found = run_app(asked("late", minutes=4))
    assert found.line() == f"the application raised ValueError: too late to be seen{at('late', 3)}"
    found = run_app(asked("polls", minutes=0.1))
    assert (found.is_broken, found.has_connected) == (False, False)
    assert found.line().startswith("nothing is broken, but no client ever connected")


@pytest.mark.parametrize("name", ["leaves_a_task", "holds_a_task"])
def test_a_task_that_dies_though_nobody_waits_for_it_breaks_its_seed(name: str) -> None:
    found = run_app(asked(name))
    where = at("_dies", 2)
    assert found.line() == f"a background task raised RuntimeError: in the background{where}"
    assert (found.error, found.failures) == ("", frozenset({f"RuntimeError{where}"}))


@pytest.mark.parametrize(("is_strict", "lost_count"), [(False, 10), (True, 0)])
def test_a_plan_that_is_given_loses_what_it_says_unless_the_cluster_is_strict(is_strict: bool, lost_count: int) -> None:
    wipes = tuple(Fault(15_000, FaultKind.WIPE, broker=broker, duration_ms=1_000) for broker in range(3))
    run = asked("trusts", wipes)
    spec = attrs.evolve(run.spec, factor=1, is_strict=is_strict)
    found = run_app(attrs.evolve(run, spec=spec))
    assert len(found.outcome.durability.lost_by_all) == lost_count
    assert {fault.kind for fault in found.plan} == {FaultKind.KILL if is_strict else FaultKind.WIPE}


def test_an_application_that_polls_without_waiting_is_cut_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_loop, "BUSY_COUNT", 1_000)
    found = run_app(asked("polls", minutes=0.5))
    assert (found.is_broken, found.has_ended) == (False, False)


@pytest.mark.deep
def test_an_application_may_run_longer_than_programs_of_run_virtual() -> None:
    found = run_app(asked("late", minutes=121))
    assert found.error.startswith("ValueError: too late to be seen")
    assert not run_app(asked("stubborn", minutes=121)).has_ended


def simulate(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spark_analysis", "simulate", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.deep
def test_the_command_names_the_seeds_that_are_broken_and_goes_on() -> None:
    done = simulate("--app", f"{APPS}:leaves", "--seeds", "2")
    assert (done.returncode, done.stderr) == (1, "")
    first, again, second, *_ = done.stdout.splitlines()
    assert first.startswith("seed 0, ")
    assert first.endswith(f": the application raised SystemExit: 3{at('leaves', 3)}")
    assert again == f"  again: brokerside simulate --app {APPS}:leaves --minutes 1 --seed 0"
    assert second.startswith("seed 1, ")
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(
        r"2 of 2 seeds broken, 0 lost records acknowledged by all; 0 of \d+ faults struck, \d+ never did", last
    )


@pytest.mark.deep
def test_the_command_replays_the_plan_that_it_has_shrunk_and_says_the_same_as_json(tmp_path: Path) -> None:
    given, smaller = tmp_path / "plan.json", tmp_path / "smaller.json"
    kills = [{"start_ms": at_ms, "kind": "KILL", "broker": 1, "duration_ms": 1_000} for at_ms in (4_000, 30_000)]
    given.write_text(json.dumps(kills))
    command = ("--app", f"{APPS}:wrong", "--seed", "7", "--shrink", "--plan")
    lines = simulate(*command, str(given)).stdout.splitlines()
    assert lines[1:3] == [
        f"  again: brokerside simulate --app {APPS}:wrong --minutes 1 --plan {given} --seed 7",
        "  shrunk: 1 of 2 faults is enough:",
    ]
    smaller.write_text(lines[-3])
    assert (
        simulate(*command, str(smaller)).stdout.splitlines()[0] == f"seed 7, 1 of 1 fault struck: {lines[-2].strip()}"
    )
    found = json.loads(simulate(*command, str(given), "--json").stdout)
    assert (found["again"], found["plan"]) == (lines[1].removeprefix("  again: "), kills)
    assert found["shrunk"]["plan"] == json.loads(lines[-3])
    assert found["shrunk"]["error"] == found["error"]


@pytest.mark.deep
def test_an_application_may_run_until_its_minutes_are_over_and_must_connect() -> None:
    done = simulate("--app", f"{APPS}:serves", "--seeds", "2")
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert line.endswith("; in 2 the application was still running when its 1 minute was over")
    done = simulate("--app", f"{APPS}:late", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["is_broken"], found["ended"], found["connected"]) == (1, False, False, False)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no.such.module:main", "--app no.such.module:main: ModuleNotFoundError: No module named 'no'"),
        (f"{APPS}:CLUSTER", "names no coroutine function; write `async def CLUSTER(kafka)`"),
        (f"{APPS}:_at_rest", "_at_rest cannot be called with the cluster alone: too many positional arguments; write"),
        (f"{APPS}:gone", "names no coroutine function; write `async def gone(kafka)`"),
    ],
)
def test_a_name_that_is_no_application_is_refused(name: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        load_app(name)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import os\nasync def main(kafka:\n", "'(' was never closed (broken_app.py, line 2)"),
        ("import os\n1 / 0\n", "ZeroDivisionError: division by zero (broken_app.py, line 2)"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3 (broken_app.py, line 2)"),
        ("import none_such\n", "ModuleNotFoundError: No module named 'none_such' (broken_app.py, line 1)"),
    ],
)
def test_what_a_module_raises_when_imported_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    (tmp_path / "broken_app.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError) as refused:
        load_app("broken_app:main")
    assert str(refused.value) == f"--app broken_app:main: {words}"


@pytest.mark.parametrize("name", ["", ":main", ".app:main"])
def test_a_name_without_a_module_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="names no module; wanted is MODULE:MAIN, such as my_service:main"):
        load_app(name)


@pytest.mark.deep
def test_the_command_runs_seeds_side_by_side_and_says_which_are_broken() -> None:
    done = simulate("--app", f"{APPS}:main", "--seeds", "6", "--minutes", "2", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["seed"] for each in found] == list(range(6))
    assert done.returncode == int(any(each["is_broken"] for each in found))
    assert all(each["findings"] == [] for each in found)
    assert done.stderr == ""
