"""`brokerside study`: what it prints and writes, that it goes on where it was stopped, and what it refuses."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from broker.cli import run
from replication.studies import COLUMNS
from spark_analysis.cli.study import study_command
from tests.architecture.house import ROOT
from tests.spark_analysis.processes import SECONDS_MAX, wait_until

MAIN = "from spark_analysis.cli import main; main()"
TOML = """
title = "Mine"
seeds = 2
[fixed]
minutes = 0.3
[grid]
acks = ["all", "1"]
min_isr = [2, 4]
"""


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """Write a small study."""
    path = tmp_path / "mine.toml"
    path.write_text(TOML)
    return path


def called(*words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = run(study_command, "brokerside", [str(word) for word in words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_the_cells_are_printed_and_impossible_runs_are_counted(toml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = called(toml, "--jobs", 1, capsys=capsys)
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["all", "2", "0", "%", "0", "%", "2"] in lines
    assert "4 runs refused: min_isr is 4; allowed are whole numbers from 1 to 3 (factor)" in out


def test_rows_chart_and_page_are_written_and_a_second_call_makes_no_run(
    toml: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    status, first, _ = called(toml, "--jobs", 1, "--out", out, capsys=capsys)
    assert status == 0
    table = pq.read_table(out / "rows.parquet")
    assert (table.num_rows, table.column_names) == (8, list(COLUMNS))
    with (out / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["done"] * 2 + ["refused"] * 2 + ["done"] * 2 + ["refused"] * 2
    assert json.loads((out / "study.json").read_text())["cells"][0]["done_count"] == 2
    assert (out / "index.html").read_text().count("<svg") == 1
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    monkeypatch.setattr("replication.studies.running.make_run", lambda *_: pytest.fail("a run was made again"))
    status, second, _ = called(toml, "--jobs", 1, "--out", out, capsys=capsys)
    assert (status, second) == (0, first)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_stopped_study_goes_on(toml: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    called(toml, "--jobs", 1, "--out", out, capsys=capsys)
    whole = (out / "rows.parquet").read_bytes()
    lines = (out / "rows.jsonl").read_text().splitlines()
    (out / "rows.jsonl").write_text("\n".join(lines[:4]) + "\n" + lines[4][:20])
    assert called(toml, "--jobs", 1, "--out", out, capsys=capsys)[0] == 0
    assert (out / "rows.parquet").read_bytes() == whole


@pytest.mark.deep
def test_an_interrupted_study_keeps_the_rows_that_are_done_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out, whole = tmp_path / "long.toml", tmp_path / "out", tmp_path / "whole"
    path.write_text("seeds = 24\n[fixed]\nminutes = 3\nmttf_minutes = 1\n[grid]\nacks = ['all', '1']\n")
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from spark_analysis.cli import main; main()",
            "study",
            path,
            "--jobs",
            "2",
            "--out",
            out,
        ],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    rows = out / "rows.jsonl"
    try:
        wait_until(lambda: rows.exists() and rows.read_text().count("\n") > 3)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=SECONDS_MAX)
    finally:
        process.kill()
    assert (process.returncode, said.splitlines()[-1]) == (130, "brokerside: interrupted")
    kept = rows.read_text().splitlines()
    assert 3 <= len(kept) - 1 < 48, "the head, and some rows but not all"
    status, _, _ = called(path, "--jobs", 1, "--out", out, capsys=capsys)
    assert status == 0
    assert rows.read_text().splitlines()[: len(kept)] == kept, "what was done is not made again"
    assert called(path, "--jobs", 1, "--out", whole, capsys=capsys)[0] == 0
    assert (out / "rows.parquet").read_bytes() == (whole / "rows.parquet").read_bytes()


def test_kept_rows_outlive_an_interrupt_as_the_study_begins_again(
    toml: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    called(toml, "--jobs", 1, "--out", out, capsys=capsys)
    before = (out / "rows.jsonl").read_bytes()

    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("spark_analysis.cli.study.row_line", interrupted)
    assert called(toml, "--jobs", 1, "--out", out, capsys=capsys)[0] == 130
    assert (out / "rows.jsonl").read_bytes() == before


def test_the_folder_of_another_study_is_refused(toml: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    called(toml, "--jobs", 1, "--out", out, capsys=capsys)
    kept = (out / "rows.jsonl").read_bytes()
    status, _, said = called(toml, "--minutes", 0.2, "--out", out, capsys=capsys)
    assert (status, said.count("\n")) == (2, 1)
    assert "holds the rows of another study than mine; name another folder" in said
    assert (out / "rows.jsonl").read_bytes() == kept


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a study: a TOML file, or one of quorum, restarts, settings"),
        (("setings",), "there is no study and no file 'setings'; the nearest is 'settings'"),
        (("restarts", "--seeds", "1000000"), "has 16,000,000 runs; allowed are 1,000,000"),
    ],
)
def test_what_is_no_study_is_one_sentence(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, found = called(*words, capsys=capsys)
    assert (status, found.count("\n")) == (2, 1)
    assert said in found


def test_a_study_of_which_no_run_is_possible_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.toml"
    path.write_text("seeds = 1\n[fixed]\nfactor = 2\nmin_isr = 3\n")
    status, _, said = called(path, "--jobs", 1, capsys=capsys)
    assert status == 1
    assert "study none: no run is possible: min_isr is 3; allowed are whole numbers from 1 to 2 (factor)" in said


def test_each_reason_is_counted_and_the_rarest_are_summed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bounds.toml"
    path.write_text("seeds = 2\n[fixed]\nminutes = 0.2\n[grid]\nmin_isr = [1, 0, 4, 5, 6, 7, 8, 9]\n")
    status, out, _ = called(path, "--jobs", 1, capsys=capsys)
    assert status == 0
    said = [line for line in out.splitlines() if "refused" in line]
    assert [line.split(";")[0] for line in said[:-1]] == [f"2 runs refused: min_isr is {n}" for n in (0, 4, 5, 6, 7)]
    assert said[-1] == "4 runs refused for 2 other reasons"


def test_a_failed_run_is_bad_news(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(
        "seeds = 1\n[fixed]\nminutes = 1\nmttf_minutes = 0.3\n"
        "election = 'tests.replication.studies.test_studies:raising'\n"
    )
    status, out, _ = called(path, "--jobs", 1, capsys=capsys)
    assert status == 1
    assert "1 run failed:" in out
    assert "ZeroDivisionError" in out


def test_the_list_names_each_study() -> None:
    done = CliRunner().invoke(study_command, ["--list"])
    assert [line.split()[0] for line in done.output.splitlines()] == ["quorum", "restarts", "settings"]
