"""Work that is shared by processes: equal results, errors in their place, and no half-done work after a signal."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from broker import workers
from broker.errors import InputError
from broker.workers import Advance, Workers, in_order
from tests.log.cli.test_commands import Answer, answer, contents
from tests.log.samples import DIRECTORY, write_sample

pytestmark = pytest.mark.deep

ITEMS = tuple(range(20))
SECONDS_MAX = 60
SLOW = """
import os, signal, sys, time
from pathlib import Path
from broker import workers
from broker.cli import Terminated

def slow(item, advance):
    made = Path(item[1]) / str(item[0])
    made.write_text(str(os.getpid()))
    try:
        time.sleep(300)  # Longer than any test waits.
    finally:
        made.unlink()

def terminate(number, frame):
    raise Terminated

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ignored, where a test run is in the background.
    signal.signal(signal.SIGTERM, terminate)  # As commands do.
    workers.PROCESS_COST = workers.RUN_COST = 1
    items = [(number, sys.argv[1]) for number in range(4)]
    try:
        list(workers.in_order(slow, items, cost=lambda _: 1, jobs=2))
    except KeyboardInterrupt:
        sys.exit(130)
    except Terminated:
        sys.exit(143)
"""


@pytest.fixture(autouse=True)
def small_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the smallest work be worth a process."""
    monkeypatch.setattr(workers, "PROCESS_COST", 1)
    monkeypatch.setattr(workers, "RUN_COST", 3)


def until(condition: Callable[[], bool]) -> None:
    """Return once the condition holds."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


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


def test_items_are_worked_on_at_the_same_time_and_later_ones_by_the_same_processes(tmp_path: Path) -> None:
    pairs = [[(tmp_path / str(number), 0), (tmp_path / str(number), 1)] for number in range(2)]
    for each in pairs:
        each[0][0].mkdir()
    with Workers(2) as both:
        first, second = ({*both.in_order(met, each, cost=lambda _: 3)} for each in pairs)
    assert len(first) == 2
    assert first == second


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
    with pytest.raises(ChildProcessError, match=r"^a process that shared the work ended by itself$"):
        list(in_order(unserved, ITEMS, cost=lambda _: 3, jobs=2))


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
        ("stats", "--json", "--now-ms", "5"),
        ("dump", "--keep-going"),
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

    alone, shared = run(1), run(3)
    assert alone == shared
    assert len(alone[0].lines) >= 3


def working(folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """Start two processes that work in their own session; return their parent and the folder with a file of each."""
    made = folder / "made"
    made.mkdir()
    (folder / "program.py").write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, "program.py", str(made)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until(lambda: len([path for path in made.iterdir() if path.read_text()]) == 2)
    return process, made


def session_is_empty(leader: int) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                return False
    return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see other processes")
@pytest.mark.parametrize("receiver", ["all", "parent", "child"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_signal_undoes_what_was_begun_and_ends_all_processes(
    receiver: str, number: int, status: int, tmp_path: Path
) -> None:
    """Sent to all as a terminal does, to the parent alone, or to one of its children; only a parent is killed."""
    if (receiver == "child" and number != signal.SIGINT) or (receiver == "all" and number == signal.SIGKILL):
        pytest.skip("no such case")
    process, made = working(tmp_path)
    if receiver == "all":
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid if receiver == "parent" else int(next(made.iterdir()).read_text()), number)
    _, printed = process.communicate(timeout=SECONDS_MAX)
    until(lambda: session_is_empty(process.pid))
    assert (process.returncode, list(made.iterdir())) == (status, [])
    assert printed == b"" or number == signal.SIGKILL
