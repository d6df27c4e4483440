"""A fast first look at mutants: code that is swapped, forks that end, and statements that are reached."""

from __future__ import annotations

import os
import subprocess
import time
import weakref
from functools import partial
from pathlib import Path

import pytest

from broker.ids import BrokerEpoch
from replication.rules import fencing
from tests.architecture.house import ROOT
from tests.replication.mutants.code_swap import live_functions, statement_line, swap
from tests.replication.mutants.forks import in_fork, in_forks
from tests.replication.mutants.operators import Mutant, mutants_of
from tests.replication.mutants.reach import Reached, kept, reaching, recorded
from tests.replication.mutants.until_noticed import Check
from tests.spark_analysis.processes import wait_until

PATH = "replication/rules/fencing.py"


def mutant(name: str) -> Mutant:
    (found,) = [each for each in mutants_of(PATH, (ROOT / PATH).read_text(encoding="utf-8")) if each.name == name]
    return found


MUTANT = mutant(f"{PATH} is_clean_registration [dropped branch] registered is None -> False")


def clean_without_a_registration() -> str:
    try:
        return str(fencing.is_clean_registration(fencing.StopProof(BrokerEpoch(1)), None))
    except AttributeError:
        return "changed"


def test_a_mutant_is_in_the_fork_and_not_here() -> None:
    before = clean_without_a_registration()
    functions = live_functions([PATH])

    def changed() -> str:
        return f"{swap(MUTANT, functions)} {clean_without_a_registration()}"

    assert before != "changed"
    assert in_fork(changed, 10).said == "1 changed"
    assert clean_without_a_registration() == before


def test_functions_are_found_beside_a_proxy_of_what_is_gone() -> None:
    proxy = weakref.proxy(Reached("gone", 0.0, frozenset()))
    with pytest.raises(ReferenceError):
        isinstance(proxy, str)
    assert live_functions([PATH])


def test_a_fork_tells_what_came_of_its_call() -> None:
    def spin() -> str:
        while True:
            pass

    def fail() -> str:
        raise ValueError("is wrong")

    assert in_fork(lambda: "words", 5).said == "words"
    failed = in_fork(fail, 5)
    assert (failed.status, failed.said) == (1, "ValueError: is wrong")
    assert in_fork(spin, 0).status is None


def test_what_a_call_started_ends_with_its_fork() -> None:
    started = in_fork(lambda: str(subprocess.Popen(["sleep", "60"]).pid), 5)
    assert started.status == 0, started.said
    process = int(started.said)
    wait_until(lambda: not runs(process))
    assert not runs(process)


def test_forks_that_nobody_waits_for_end(tmp_path: Path) -> None:
    forks = in_forks([0, 60], lambda seconds: partial(_asleep, seconds, tmp_path), lambda _: 5.0, jobs=2)
    assert next(forks)[0] == 0
    wait_until((tmp_path / "60").exists)
    forks.close()
    assert not runs(int((tmp_path / "60").read_text("utf-8")))


def _asleep(seconds: int, folder: Path) -> str:
    (folder / str(seconds)).write_text(str(os.getpid()), "utf-8")
    time.sleep(seconds)
    return ""


def runs(process: int) -> bool:
    """Whether a process runs; one that has ended may still wait to be told of."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False).stdout
    return told.strip().rstrip("sl+<N") not in ("", "Z")


def test_forks_run_at_the_same_time_and_each_has_its_own_answer() -> None:
    start = time.monotonic()
    found = dict(in_forks([1, 2, 3], lambda item: partial(_late, item), lambda _: 5.0, jobs=3))
    assert {item: done.said for item, done in found.items()} == {1: "1", 2: "2", 3: "3"}
    assert time.monotonic() - start < 3 * 0.5


def _late(item: int) -> str:
    time.sleep(0.5)
    return str(item)


def test_what_a_check_reaches_is_its_statements_and_no_others() -> None:
    checks = [Check("none", lambda: ""), Check("one", lambda: clean_without_a_registration() and "")]
    none, one = recorded(checks, [PATH])
    source = (ROOT / PATH).read_text(encoding="utf-8")
    place = (PATH, statement_line(source, MUTANT.line, MUTANT.column))
    assert (none.name, none.places, one.name) == ("none", frozenset(), "one")
    assert place in one.places
    assert [each.name for each in reaching([none, one], place, 1.0)] == ["one"]
    assert len(one.places) < 5


def test_a_check_that_complains_of_sound_code_is_not_asked() -> None:
    assert recorded([Check("loud", lambda: "broken")], [PATH]) == []


def test_the_shortest_checks_come_first_until_the_time_is_spent() -> None:
    place = (PATH, 3)
    every = [Reached(name, seconds, frozenset({place})) for name, seconds in (("c", 5.0), ("a", 1.0), ("b", 2.0))]
    assert [each.name for each in reaching(every, place, 4.0)] == ["a", "b"]
    assert [each.name for each in reaching(every, place, 0.5)] == ["a"]
    assert reaching(every, (PATH, 4), 4.0) == []


def test_near_checks_come_before_shorter_ones() -> None:
    place = (PATH, 3)
    every = [Reached(name, seconds, frozenset({place})) for name, seconds in (("far", 1.0), ("near", 2.0))]
    assert [each.name for each in reaching(every, place, 9.0, {"near": 0, "far": 1}.__getitem__)] == ["near", "far"]


def test_a_recording_is_kept_for_the_text_of_the_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.replication.mutants.reach.ROOT", tmp_path)
    (tmp_path / "m.py").write_text("a")
    found = [Reached("check", 0.5, frozenset({("m.py", 3), ("m.py", 1)})), Reached("other", 1.0, frozenset())]
    file = tmp_path / "reach"
    assert kept(file, ["m.py"], lambda: found) == found
    assert kept(file, ["m.py"], list) == found
    (tmp_path / "m.py").write_text("b")
    assert kept(file, ["m.py"], list) == []


def test_the_statement_of_a_place_is_the_innermost_one() -> None:
    source = "def f(a):\n    if (\n        a\n    ):\n        return 1 + \\\n            2\n"
    assert [statement_line(source, line, 12) for line in (3, 6)] == [2, 5]
