"""`brokerside study`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from broker.cli import run
from replication.studies import COLUMNS, STUDIES, Study, grid
from spark_analysis.cli.study import study_command


def called(*words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = run(study_command, "brokerside", [str(word) for word in words])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> dict[str, Study]:
    """Return the shipped studies, for a test that adds its own, small ones."""
    studies = dict(STUDIES)
    monkeypatch.setattr("spark_analysis.cli.study.STUDIES", studies)
    return studies


def small(seeds: int = 2, minutes: float = 0.3, **given: Sequence[object]) -> Study:
    return Study(name="mine", title="Mine", seeds=seeds, fixed={"minutes": minutes}, cells=grid(**given))


def test_cells_are_printed_and_rows_written(
    shipped: dict[str, Study], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped["mine"] = small(acks=["all", "1"], min_isr=[2, 4])
    out = tmp_path / "out"
    status, printed, _ = called("mine", "--jobs", 1, "--out", out, capsys=capsys)
    assert status == 0
    assert ["all", "2", "0", "%", "0", "%", "2"] in [line.split() for line in printed.splitlines()]
    assert "4 runs refused: min_isr is 4; allowed are whole numbers from 1 to 3 (factor)" in printed
    table = pq.read_table(out / "rows.parquet")
    assert (table.num_rows, table.column_names) == (8, list(COLUMNS))
    with (out / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["done"] * 2 + ["refused"] * 2 + ["done"] * 2 + ["refused"] * 2
    assert json.loads((out / "study.json").read_text())["cells"][0]["done_count"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a study, one of quorum, restarts, settings"),
        (("setings",), "there is no study 'setings'; the nearest is 'settings'"),
        (("restarts", "--seeds", "1000000"), "has 16,000,000 runs; allowed are 1,000,000"),
    ],
)
def test_what_is_no_study_is_one_sentence(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, found = called(*words, capsys=capsys)
    assert (status, found.count("\n")) == (2, 1)
    assert said in found


def test_a_study_of_which_no_run_is_possible_is_refused(
    shipped: dict[str, Study], capsys: pytest.CaptureFixture[str]
) -> None:
    shipped["mine"] = small(1, factor=[2], min_isr=[3])
    status, _, said = called("mine", "--jobs", 1, capsys=capsys)
    assert status == 1
    assert "study mine: no run is possible: min_isr is 3; allowed are whole numbers from 1 to 2 (factor)" in said


def test_each_reason_is_counted_and_the_rarest_are_summed_up(
    shipped: dict[str, Study], capsys: pytest.CaptureFixture[str]
) -> None:
    shipped["mine"] = small(minutes=0.2, min_isr=[1, 0, 4, 5, 6, 7, 8, 9])
    status, out, _ = called("mine", "--jobs", 1, capsys=capsys)
    assert status == 0
    said = [line for line in out.splitlines() if "refused" in line]
    assert [line.split(";")[0] for line in said[:-1]] == [f"2 runs refused: min_isr is {n}" for n in (0, 4, 5, 6, 7)]
    assert said[-1] == "4 runs refused for 2 other reasons"


def test_a_failed_run_has_status_one(shipped: dict[str, Study], capsys: pytest.CaptureFixture[str]) -> None:
    shipped["mine"] = small(1, 1.0, mttf_minutes=[0.3], election=["tests.replication.studies.test_studies:raising"])
    status, out, _ = called("mine", "--jobs", 1, capsys=capsys)
    assert status == 1
    assert "1 run failed:" in out
    assert "ZeroDivisionError" in out


def test_the_list_names_each_study() -> None:
    done = CliRunner().invoke(study_command, ["--list"])
    assert [line.split()[0] for line in done.output.splitlines()] == ["quorum", "restarts", "settings"]
