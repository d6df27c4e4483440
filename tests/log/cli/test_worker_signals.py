"""Processes that share work: how they are started, and that no signal leaves one of them, or its half-done work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.house import ROOT
from tests.log.cli.waiting import until
from tests.log.samples import write_sample

pytestmark = pytest.mark.deep

METHODS = ("fork", "forkserver")
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see other processes")

SLOW = """
import signal
import sys
from pathlib import Path
from broker import workers
from broker.cli import Terminated

def slow(item, advance):
    import time
    made = Path(item[1]) / str(item[0])
    made.write_text(str(os.getpid()))
    try:
        time.sleep(300)  # Longer than any test waits.
    finally:
        made.unlink()

def terminate(number, frame):
    raise Terminated

import os
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ignored, where a test run is in the background.
    signal.signal(signal.SIGTERM, terminate)  # As commands do.
    workers.PROCESS_COST = workers.RUN_COST = workers.SERVED_FACTOR = 1
    workers.start_method = lambda: sys.argv[2]
    items = [(number, sys.argv[1]) for number in range(4)]
    try:
        list(workers.in_order(slow, items, cost=lambda _: 1, jobs=2))
    except KeyboardInterrupt:
        sys.exit(130)
    except Terminated:
        sys.exit(143)
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

LOADING = """
import signal
import sys
import loaded_slowly
from broker import workers

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    workers.PROCESS_COST = workers.RUN_COST = workers.SERVED_FACTOR = 1
    workers.start_method = lambda: "forkserver"
    try:
        list(workers.in_order(loaded_slowly.work, [1, 2, 3, 4], cost=lambda _: 1, jobs=2))
    except KeyboardInterrupt:
        sys.exit(130)
"""

# The command, on what it takes for a terminal, any work being worth a bar and processes; then how they were started.
COMMAND = """
import os, sys
from spark_analysis import cli

set_up, methods = cli.without_matrix_threads, []

def changed():
    set_up()  # Before numpy is loaded, which starts the threads.
    from broker import workers
    from log.cli import output

    output.BAR_SIZE_MIN = workers.PROCESS_COST = workers.RUN_COST = 1
    sys.stderr.isatty = lambda: True
    start = workers.Workers._start

    def noted(self, method, module):
        methods.append((method, len(os.listdir("/proc/self/task"))))
        start(self, method, module)

    workers.Workers._start = noted

cli.without_matrix_threads = changed
try:
    cli.main()
finally:
    print(methods)
"""

THREADED = """
import threading
from broker.workers import start_method

methods, end = [start_method()], threading.Event()
thread = threading.Thread(target=end.wait)
thread.start()
methods.append(start_method())
end.set()
thread.join()
print(methods)
"""


def started(folder: Path, program: str, *words: str) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that a signal reaches all processes as a terminal sends it."""
    (folder / "program.py").write_text(program)
    return subprocess.Popen(
        [sys.executable, "program.py", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def working(folder: Path, method: str) -> tuple[subprocess.Popen[bytes], Path]:
    """Start two processes that work, and return their parent and the folder with a file of each."""
    made = folder / "made"
    made.mkdir()
    process = started(folder, SLOW, str(made), method)
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


@needs_proc
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_all_undoes_what_was_begun_and_ends_all_processes(
    method: str, number: int, status: int, tmp_path: Path
) -> None:
    process, made = working(tmp_path, method)
    os.killpg(process.pid, number)
    _, printed = process.communicate(timeout=60)
    assert (process.returncode, printed, list(made.iterdir())) == (status, b"", [])
    until(lambda: session_is_empty(process.pid))


@needs_proc
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_to_the_parent_alone_does_the_same(method: str, number: int, status: int, tmp_path: Path) -> None:
    process, made = working(tmp_path, method)
    process.send_signal(number)
    _, printed = process.communicate(timeout=60)
    assert (process.returncode, printed, list(made.iterdir())) == (status, b"", [])
    until(lambda: session_is_empty(process.pid))


@needs_proc
@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_of_one_process_ends_all(method: str, tmp_path: Path) -> None:
    process, made = working(tmp_path, method)
    os.kill(int(next(made.iterdir()).read_text()), signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    assert (process.returncode, printed, list(made.iterdir())) == (130, b"", [])
    until(lambda: session_is_empty(process.pid))


@needs_proc
@pytest.mark.parametrize("method", METHODS)
def test_processes_undo_what_they_began_and_end_when_their_parent_is_killed(method: str, tmp_path: Path) -> None:
    process, made = working(tmp_path, method)
    process.kill()
    process.wait(60)
    until(lambda: session_is_empty(process.pid))
    assert list(made.iterdir()) == []


@needs_proc
def test_an_interrupt_while_the_work_is_loaded_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "loaded_slowly.py").write_text(LOADED_SLOWLY)
    process = started(tmp_path, LOADING)
    until((tmp_path / "loading").exists)
    os.killpg(process.pid, signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, b"")
    until(lambda: session_is_empty(process.pid))


def printed_by(*words: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are never forked")
def test_a_process_with_another_thread_is_not_forked() -> None:
    assert printed_by(THREADED) == ["['fork', 'forkserver']"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are never forked")
@pytest.mark.parametrize(
    "words",
    [
        ("verify",),
        ("stats", "--total-only"),
        ("dump",),
        ("recover", "--in-place", "--yes"),
        ("compact", "--topic", "topic", "--in-place", "--yes"),
    ],
    ids=lambda words: words[0],
)
def test_commands_have_one_thread_below_their_bar_and_fork_once(words: tuple[str, ...], tmp_path: Path) -> None:
    for number in range(3):
        write_sample("none", tmp_path / str(number))
        (tmp_path / str(number) / "topic-0").rename(tmp_path / f"topic-{number}")
        (tmp_path / str(number)).rmdir()
    last = printed_by(COMMAND, "log", words[0], str(tmp_path), *words[1:], "--jobs", "2")[-1]
    assert last == str([("fork", 1)])
