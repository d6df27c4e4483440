"""Work that is shared by processes: equal results, errors in their place, nothing left behind."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from broker import workers
from broker.errors import CorruptDataError, InputError
from broker.workers import Advance, Workers, in_order
from log.errors import LockedError
from tests.log.cli.test_commands import Answer, answer, contents
from tests.log.cli.waiting import until
from tests.log.samples import DIRECTORY, write_sample

pytestmark = pytest.mark.deep

ITEMS = tuple(range(20))


METHODS = ("fork", "forkserver")


@pytest.fixture(autouse=True, params=METHODS)
def method(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Let the smallest work be worth a process, and start processes both ways."""
    monkeypatch.setattr(workers, "PROCESS_COST", 1)
    monkeypatch.setattr(workers, "SERVED_FACTOR", 1)
    monkeypatch.setattr(workers, "RUN_COST", 3)
    monkeypatch.setattr(workers, "start_method", lambda: request.param)
    return str(request.param)


def squared(item: int, advance: Advance) -> tuple[int, int]:
    if item == 13:
        raise InputError("is unlucky", source="13", line=4, value="x")
    return item * item, os.getpid()


def taken(items: Sequence[int], jobs: int | None) -> tuple[list[tuple[int, int]], int]:
    moved: list[int] = []
    found = list(in_order(squared, items, cost=lambda _: 1, jobs=jobs, advance=moved.append))
    return found, sum(moved)


def test_results_are_in_order_and_the_bar_ends_full_for_any_number_of_processes() -> None:
    items = [item for item in ITEMS if item != 13]
    alone, shared = taken(items, 1), taken(items, 3)
    assert [found[0] for found in shared[0]] == [found[0] for found in alone[0]] == [item * item for item in items]
    assert alone[1] == shared[1] == len(items)
    assert {found[1] for found in alone[0]} == {os.getpid()}
    assert os.getpid() not in {found[1] for found in shared[0]}


def met(item: tuple[Path, int], advance: Advance) -> int:
    """Wait for the work on the other item, which another process does at the same time."""
    folder, number = item
    (folder / str(number)).touch()
    until((folder / str(1 - number)).exists)
    return os.getpid()


def test_items_are_worked_on_at_the_same_time(tmp_path: Path) -> None:
    assert len(set(in_order(met, [(tmp_path, 0), (tmp_path, 1)], cost=lambda _: 3, jobs=2))) == 2


def pids(found: Sequence[tuple[int, int]]) -> set[int]:
    return {pid for _, pid in found}


def test_later_work_is_done_by_the_same_processes(tmp_path: Path) -> None:
    pairs = [[(tmp_path / str(number), 0), (tmp_path / str(number), 1)] for number in range(2)]
    for each in pairs:
        each[0][0].mkdir()
    with Workers(2) as both:
        first, second = ([*both.in_order(met, each, cost=lambda _: 3)] for each in pairs)
    assert len(set(first)) == 2
    assert set(first) == set(second)


def test_more_work_than_before_starts_the_processes_that_are_missing() -> None:
    with Workers(3) as three:
        assert pids([*three.in_order(squared, ITEMS[:1], cost=lambda _: 1)]) == {os.getpid()}
        before = [*three.in_order(squared, ITEMS[:2], cost=lambda _: 1)]
        after = [*three.in_order(squared, ITEMS[:13], cost=lambda _: 1)]
    assert len(pids(before)) == 1  # The two items are one run.
    assert os.getpid() not in pids(before) | pids(after)
    assert [square for square, _ in after] == [item * item for item in range(13)]


def slow_first(item: tuple[Path, int], _: Advance) -> int:
    """Wait, with the first item, for the others to be far ahead."""
    folder, number = item
    (folder / str(number)).touch()
    if number == 0:
        until((folder / str(workers.RUNS_AHEAD)).exists)
    return number


def test_a_long_item_does_not_keep_the_other_processes_waiting(tmp_path: Path) -> None:
    items = [(tmp_path, number) for number in range(3 * workers.RUNS_AHEAD)]
    assert [*in_order(slow_first, items, cost=lambda _: 3, jobs=2)] == [number for _, number in items]


def unserved(item: int, _: Advance) -> int:
    if item == 7:
        os._exit(9)
    return item


def test_a_process_that_ends_by_itself_is_an_error_in_one_line() -> None:
    with pytest.raises(ChildProcessError) as error:
        list(in_order(unserved, ITEMS, cost=lambda _: 3, jobs=2))
    assert str(error.value) == "a process that shared the work ended by itself"


def test_little_work_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PROCESS_COST", 1000)
    assert {found[1] for found in taken(ITEMS[:5], 4)[0]} == {os.getpid()}


@pytest.mark.parametrize("jobs", [1, 3])
def test_an_error_comes_whole_after_the_results_before_it(jobs: int) -> None:
    found: list[int] = []
    results = in_order(squared, ITEMS, cost=lambda _: 1, jobs=jobs, advance=lambda _: None)
    with pytest.raises(InputError) as error:
        found.extend(square for square, _ in results)
    assert found == [item * item for item in range(13)]
    assert (str(error.value), error.value.line, error.value.value) == ("13:4: is unlucky (found 'x')", 4, "x")


@pytest.mark.parametrize(
    "error",
    [
        InputError("is wrong", source="f", line=3, value="v"),
        CorruptDataError("is damaged", source="f", position=7),
        LockedError("lock", "p", "is used"),
    ],
)
def test_errors_cross_to_other_processes_whole(error: Exception) -> None:
    error.add_note("a note")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.__dict__) == (type(error), str(error), error.__dict__)


def damaged_logs(folder: Path) -> Path:
    """Write a log directory of six partitions, the third damaged in its records, the fifth in its first header."""
    write_sample("none", folder)
    for number in range(1, 6):
        shutil.copytree(folder / DIRECTORY, folder / f"topic-{number}")
    for number, position in ((2, 100), (4, 16)):
        path = sorted((folder / f"topic-{number}").glob("*.log"))[0]
        content = bytearray(path.read_bytes())
        content[position] ^= 1
        path.write_bytes(content)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("verify", "--keep-going"),
        ("verify", "--json"),
        ("stats", "--json", "--now-ms", "5"),
        ("dump", "--keep-going"),
        ("dump", "--deep-iteration"),
        ("dump", "--json"),
        ("recover", "--out", "OUT", "--now-ms", "5"),
        ("recover", "--in-place", "--yes", "--now-ms", "5"),
        ("compact", "--topic", "topic", "--config", "cleanup.policy=compact", "--out", "OUT", "--now-ms", "5"),
    ],
    ids=lambda words: words[0] + words[1],
)
def test_output_and_files_are_the_same_for_any_number_of_jobs(words: tuple[str, ...], tmp_path: Path) -> None:
    def run(jobs: int) -> tuple[Answer, dict[str, bytes]]:
        folder = tmp_path / "same"
        logs = damaged_logs(folder / "logs")
        found = answer(words[0], logs, *(str(folder / "out") if w == "OUT" else w for w in words[1:]), "--jobs", jobs)
        files = contents(folder)
        shutil.rmtree(folder)
        return found, files

    alone, files = run(1)
    shared, files_of_shared = run(3)
    assert (shared.status, shared.out, shared.err) == (alone.status, alone.out, alone.err)
    assert files_of_shared == files
    assert len(alone.lines) >= 3
