"""Work that is shared by processes: equal results, errors in their place, nothing left behind."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from broker import workers
from broker.errors import CorruptDataError, InputError
from broker.workers import Advance, in_order
from log.errors import LockedError
from tests.log.cli.test_commands import Answer, answer, contents
from tests.log.samples import DIRECTORY, write_sample

ITEMS = tuple(range(20))


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the smallest work be worth a process."""
    monkeypatch.setattr(workers, "PROCESS_COST", 1)
    monkeypatch.setattr(workers, "RUN_COST", 3)


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
        ("dump", "--json", "--kafka", "4.0"),
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


PROGRAM = """
import sys
from pathlib import Path
from broker import workers
workers.PROCESS_COST = workers.RUN_COST = 1

def slow(item, advance):
    import time
    made = Path(item[1]) / str(item[0])
    made.touch()
    try:
        time.sleep(60)
    finally:
        made.unlink()

if __name__ == "__main__":
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ignored, where a test run is in the background.
    items = [(number, sys.argv[1]) for number in range(4)]
    list(workers.in_order(slow, items, cost=lambda _: 1, jobs=2, advance=lambda _: None))
"""


LOADED_SLOWLY = """
import sys
import time
from pathlib import Path

def work(item, advance):
    return item

if sys.argv[0] == "-c":  # So begins the process that the others are forked from.
    Path(__file__).with_name("loading").touch()
    time.sleep(2)
"""

LOADING_PROGRAM = """
import signal
import sys
import loaded_slowly
from broker import workers

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    workers.PROCESS_COST = workers.RUN_COST = 1
    try:
        list(workers.in_order(loaded_slowly.work, [1, 2, 3, 4], cost=lambda _: 1, jobs=2))
    except KeyboardInterrupt:
        sys.exit(130)
"""


def running(folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
    program, made = folder / "program.py", folder / "made"
    program.write_text(PROGRAM)
    made.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(program), str(made)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until(lambda: len(list(made.iterdir())) == 2)
    return process, made


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


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
def test_an_interrupt_undoes_what_was_begun_and_ends_all_processes(tmp_path: Path) -> None:
    process, made = running(tmp_path)
    os.killpg(process.pid, signal.SIGINT)  # As a terminal sends it: to all of them.
    process.wait(60)
    assert list(made.iterdir()) == []
    until(lambda: session_is_empty(process.pid))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see other processes")
def test_processes_end_with_their_parent(tmp_path: Path) -> None:
    process, _ = running(tmp_path)
    process.kill()
    process.wait(60)
    until(lambda: session_is_empty(process.pid))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see other processes")
def test_an_interrupt_while_the_work_is_loaded_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "loaded_slowly.py").write_text(LOADED_SLOWLY)
    (tmp_path / "program.py").write_text(LOADING_PROGRAM)
    process = subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until((tmp_path / "loading").exists)
    os.killpg(process.pid, signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, b"")
    until(lambda: session_is_empty(process.pid))
