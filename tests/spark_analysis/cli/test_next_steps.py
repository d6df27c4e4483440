"""From a report to a checked plan: the very commands that the page prints are run, in the folder of the report."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside
from tests.architecture.house import ROOT
from tests.spark_analysis.processes import SECONDS_MAX

pytestmark = pytest.mark.deep

REAL = Path(__file__).parents[2] / "real_data"
TWICE_FROM = 32


def shown_commands(page: str) -> list[list[str]]:
    """Return the words of each command that the page shows below what to do next, as a shell would read them."""
    next_steps = page.split('class="next"', 1)[1].split("<h4>Brokers", 1)[0]
    lines = re.findall(r"<pre><code>(.*?)</code></pre>", next_steps, re.S)
    return [shlex.split(html.unescape(re.sub(r"</?span>", "", line))) for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Report on a real dump in a folder of a new user's own, by a process of its own, and return the folder.

    The dump describes a topic twice, which is left out: of a dump with a rejected row nothing is planned.
    """
    here = tmp_path_factory.mktemp("new user")
    lines = (REAL / "multiregion" / "6-region-restored.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    (here / "it's prod.txt").write_text("".join(lines[:TWICE_FROM]), encoding="utf-8")
    shutil.copy(REAL / "multiregion-racks.csv", here / "the racks.csv")
    arguments = ["report", "it's prod.txt", "--racks", "the racks.csv", "--min-isr", "1", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "spark_analysis", *arguments],
        cwd=here,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
        timeout=SECONDS_MAX,
    )
    return here


@pytest.fixture
def page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the page of the report, in whose folder the test runs."""
    monkeypatch.chdir(folder)
    return Path("brokerside-out/report.html").read_text(encoding="utf-8")


def test_the_commands_of_the_page_lead_to_a_checked_plan(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    commands = shown_commands(page)
    assert [words[:2] for words in commands] == [
        *[["brokerside", "plan"]] * 7,
        ["brokerside", "outage"],
        ["brokerside", "roll"],
    ]
    assert commands[0] == commands[1]  # The first step is the first plan of all.
    # See what is at stake, make the plan that is named first, check it.
    for words in commands[1:]:
        capsys.readouterr()
        assert run(brokerside, "brokerside", words[1:]) == 0, words
        printed = capsys.readouterr().out
        if "--check" in words:
            assert "feasible and at its bound" in printed
    first = commands[1][commands[1].index("--out") + 1]
    assert commands[2][-2:] == ["--check", first]
    for name in ("plan.json", "certificate.json", "commands.txt", "plan.html"):
        assert (Path(first) / name).is_file()


def test_the_plan_that_a_command_makes_is_the_one_that_the_report_promised(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (said,) = json.loads(Path("brokerside-out/report.json").read_text())["what_to_do_next"]
    assert said["first"] == "racks"
    assert [plan["goal"] for plan in said["plans"]] == ["balance", "leaders", "racks"]
    for plan in said["plans"]:
        words = shlex.split(plan["command"])
        assert words in shown_commands(page)
        capsys.readouterr()
        assert run(brokerside, "brokerside", [*words[1:], "--json"]) == 0
        made = json.loads(capsys.readouterr().out)
        assert made["moved"] == plan["moved_count"]
        assert made["moved_bound"] == plan["moved_count_min"]
        assert made["leader_changes"] == plan["leader_change_count"]
        assert made["changed_partition_count"] == plan["changed_partition_count"]
        assert made["notes"] == plan["notes"]


def test_the_restarts_and_outages_are_those_of_the_commands(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    (said,) = json.loads(Path("brokerside-out/report.json").read_text())["what_to_do_next"]
    assert page
    capsys.readouterr()
    assert run(brokerside, "brokerside", [*shlex.split(said["restart_command"])[1:], "--json"]) == 0
    rolled = json.loads(capsys.readouterr().out)
    assert rolled["batch_count"] == said["restarts"]["batch_count"]
    assert rolled["stuck_partition_count"] == said["restarts"]["stuck_partition_count"]
    assert run(brokerside, "brokerside", [*shlex.split(said["outage_command"])[1:], "--json"]) == 0
    looked = json.loads(capsys.readouterr().out)["worst"]
    for scope, outage in zip(("brokers", "racks"), said["outages"], strict=True):
        for name in ("leaderless_count", "under_min_isr_count", "at_risk_count", "failover_count", "failover_share"):
            assert looked[scope][0][name] == outage[name]
