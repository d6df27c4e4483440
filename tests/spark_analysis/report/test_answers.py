"""Answers to `--ask`: no columns that say nothing, a reason beside every refusal, and the headline for programs too."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from broker.cli import run
from spark_analysis.answers.registry import QUESTIONS
from spark_analysis.cli.commands import brokerside
from tests.architecture.house import ROOT
from tests.spark_analysis.answers.test_asking import COMMANDS

REAL = ROOT / "tests" / "real_data"
DUMPS = (str(REAL / "multiregion" / "1-baseline.txt"), str(REAL / "kraft-4.3" / "__cluster_metadata-0"))
ASK = [word for name in QUESTIONS for word in ("--ask", name)]
OBSERVED = "broker 1 cannot be removed: it holds multi-region-async-0 of an excluded topic"
RACKLESS = "no broker of cluster '1-baseline' has a rack, so that nothing is known of zones"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a report on two dumps, one without racks, says to all questions: lines, page, JSON."""
    out = tmp_path_factory.mktemp("asked")
    words = [*DUMPS, *ASK, "--assume", "years=10", "--assume", "draws=64", "--quiet", "--out", str(out)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert run(brokerside, "brokerside", ["report", *words]) == 0
    page, said = (out / "report.html").read_text(), json.loads((out / "report.json").read_text())
    return {"lines": printed.getvalue().splitlines(), "page": page, "answers": said["answers"]}


def test_answers_about_dumps_have_no_columns_of_shapes_and_placers_but_json_has(asked: dict[str, Any]) -> None:
    heads = [line.split() for line in asked["lines"] if line.startswith("  ")]
    assert not [head for head in heads if {"shape", "placer", "dump"} & set(head)]
    assert '<th scope="col">placer</th>' not in asked["page"]
    for name, answer in asked["answers"].items():
        first = next(rows for rows in answer.values() if isinstance(rows, list) and rows)
        assert (first[0]["shape"], first[0]["placer"]) == (None, "dump"), name


def test_answers_about_a_fleet_name_shapes_and_placers(tmp_path: Path) -> None:
    words = ["demo", "--clusters", "2", "--engine", "local", "--quiet", "--ask", "storage", "--out", str(tmp_path)]
    lines = COMMANDS["fleet"].run(*words).out.splitlines()
    assert ["shape", "placer", "brokers"] in [line.split()[:3] for line in lines]


def test_a_change_that_is_refused_says_of_which_cluster_and_why(asked: dict[str, Any]) -> None:
    (refusal,) = (line for line in asked["lines"] if line.startswith("Refused, "))
    assert refusal.startswith(f"Refused, the fullest broker leaves: 2 of 2; the first, 1-baseline: {OBSERVED}")
    assert asked["answers"]["movement"]["refusals"] == [refusal]
    assert OBSERVED in asked["page"]


def test_json_has_the_headline_and_the_first_fault(asked: dict[str, Any]) -> None:
    for name, answer in asked["answers"].items():
        assert answer["headline"] in asked["lines"], name
        assert (answer["fault_count"] == 0) == (answer["first_fault"] is None)
    assert (asked["answers"]["traffic"]["fault_count"], asked["answers"]["traffic"]["first_fault"]) == (1, RACKLESS)
    assert any("producers" in line.lower() for line in asked["answers"]["traffic"]["notes"])


def test_headlines_say_the_answer_that_their_table_shows(asked: dict[str, Any]) -> None:
    answers = asked["answers"]
    shares = {row["change"]: row["moved_share_mean"] for row in answers["movement"]["by_change"]}
    said = answers["movement"]["headline"]
    assert said.startswith(f"Of the replicas move: to balance {100 * shares['no change, balance alone']:.1f} %, as ")
    assert f"as a rack joins {100 * shares['a rack joins']:.1f} %" in said
    by_change = {row["change"]: row for row in answers["traffic"]["by_change"]}
    best = max((row["saved_cost"], name) for name, row in by_change.items() if name != "least")
    costs = f"What crosses zones costs {by_change['now']['cost']:.2f} USD a month and cluster; "
    assert answers["traffic"]["headline"].startswith(f"{costs}{best[1]} saves most, {best[0]:.2f}. ")
    crossing = {row["crossing_count"]: row["assignor"] for row in reversed(answers["consumers"]["by_assignor"])}
    fewest = f"Where zones are known. With {crossing[min(crossing)]} the fewest fetches cross zones, "
    assert answers["consumers"]["headline"].startswith(fewest)
    assert f"with {crossing[max(crossing)]} the most" in answers["consumers"]["headline"]
    (year,) = answers["availability"]["years"]
    assert f"under min-ISR for {year['under_min_isr_minutes']:,.0f} minutes. " in answers["availability"]["headline"]
