"""What is shown of a running job, and what is not."""

from __future__ import annotations

import io
import itertools
import threading
from collections.abc import Callable

import pytest

from spark_analysis.session import progress as module
from spark_analysis.session.progress import Bar, progress


@pytest.fixture(autouse=True)
def terminal_that_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(module, "POLLS_PER_LINE", 2)


def times(count: int) -> tuple[Callable[[], int], threading.Event]:
    """A source that says 1, 2, 3, ...; the event tells that it was asked `count` times."""
    numbers, asked = itertools.count(1), threading.Event()

    def done() -> int:
        number = next(numbers)
        if number >= count:
            asked.set()
        return number

    return done, asked


def test_a_bar_never_goes_back_and_a_repeated_task_does_not_exceed_the_total() -> None:
    bar = Bar("Placing", 1_000, "clusters")
    bar.reach(6)
    bar.reach(4)
    assert bar.done == 6
    bar.reach(1_200)
    assert str(bar) == "Placing: 1,000 of 1,000 clusters"
    bar = Bar("Reading", None, "lines")
    bar.advance(1_234_567)
    assert str(bar) == "Reading: 1,234,567 lines"


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_long_work_writes_lines_in_a_log_and_on_a_dumb_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    done, asked = times(5)
    with progress("Placing", total=9_999, unit="clusters", done=done, stream=stream):
        assert asked.wait(30)
    lines = stream.getvalue().splitlines()
    assert len(lines) == len(set(lines)), "a line is written when it changed"
    assert lines[:2] == ["Placing: 2 of 9,999 clusters", "Placing: 4 of 9,999 clusters"]


@pytest.mark.usefixtures("fast")
def test_an_error_passes_through_and_leaves_no_thread_and_a_visible_cursor() -> None:
    stream = Terminal()
    with pytest.raises(RuntimeError, match="broken"), progress("Placing", total=9, unit="clusters", stream=stream):
        raise RuntimeError("broken")
    assert "progress" not in {thread.name for thread in threading.enumerate()}
    written = stream.getvalue()
    assert written.rfind("\x1b[?25h") > written.rfind("\x1b[?25l")


@pytest.mark.usefixtures("fast")
def test_a_source_that_fails_does_not_disturb_the_work() -> None:
    asked = threading.Event()

    def done() -> int:
        asked.set()
        raise OSError("the session is gone")

    with progress("Placing", total=9, unit="clusters", done=done, stream=io.StringIO()) as bar:
        assert asked.wait(30)
        bar.advance(3)
    assert bar.done == 3
