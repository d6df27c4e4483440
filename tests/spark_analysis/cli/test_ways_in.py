"""Commands on a cluster take a dump as a file, compressed, and on standard input, with the same answer."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside

REAL = Path(__file__).parents[2] / "real_data"
BASELINE = REAL / "multiregion" / "1-baseline.txt"
RACKS = REAL / "multiregion-racks.csv"
PLAN = '{"version":1,"partitions":[{"topic":"single-region","partition":0,"replicas":[3,2]}]}'
OBSERVED = (
    "multi-region-async",
    "multi-region-async-op-leader-is-observer",
    "multi-region-async-op-under-min-isr",
    "multi-region-async-op-under-replicated",
    "multi-region-default",
)
"""Topics with observers, which a plan cannot move."""
MORE = {
    "plan": tuple(part for name in OBSERVED for part in ("--exclude-topic", name)),
    "roll": ("--despite-out-of-sync",),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dump, racks and a plan, each as it is and compressed; commands run in it."""
    shutil.copy(BASELINE, tmp_path / "stdin")  # As a cluster on standard input is called.
    shutil.copy(RACKS, tmp_path / "racks.csv")
    (tmp_path / "plan.json").write_text(PLAN)
    for name in ("stdin", "racks.csv", "plan.json"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stdin: Path, *words: str) -> Any:
    """Return the JSON that a command prints with a file on its standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.read_bytes())))
    assert run(brokerside, "brokerside", [*words, "--json"]) in (0, 1), capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


COMMANDS = (
    ("outage", "DUMP", "--racks", "racks.csv"),
    ("roll", "DUMP", "--racks", "racks.csv"),
    ("plan", "DUMP", "--goal", "racks", "--racks", "racks.csv"),
    ("impact", "DUMP", "plan.json", "--racks", "racks.csv"),
    ("compare", "DUMP", str(REAL / "multiregion" / "3-west-region-stopped.txt")),
    ("compare", str(REAL / "multiregion" / "3-west-region-stopped.txt"), "DUMP"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(Path(word).name for word in words))
def test_a_dump_is_the_same_however_it_comes(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    found = []
    for dump in ("stdin", "stdin.gz", "-"):
        words = [dump if word == "DUMP" else word for word in command]
        found.append(answer(capsys, monkeypatch, files / "stdin.gz", *words, *MORE.get(command[0], ())))
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_a_plan_and_racks_are_the_same_however_they_come(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = answer(capsys, monkeypatch, files / "racks.csv", "impact", "stdin", "plan.json", "--racks", "racks.csv")
    for plan, racks in (("plan.json.gz", "racks.csv.gz"), ("-", "racks.csv.gz")):
        words = "impact", "stdin", plan, "--racks", racks
        found = answer(capsys, monkeypatch, files / "plan.json.gz", *words)
        assert found.pop("plans")[0]["source"] == plan
        assert found == {name: value for name, value in plain.items() if name != "plans"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("impact", "-", "-"), "standard input (-) can be the DUMP or one PLAN, not both"),
        (("impact", "stdin", "-", "-"), "standard input (-) can be the DUMP or one PLAN, not both"),
        (("compare", "-", "-"), "standard input (-) can be BEFORE or AFTER, not both"),
    ],
)
def test_standard_input_is_one_thing(
    files: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    assert run(brokerside, "brokerside", list(words)) == 2
    assert capsys.readouterr().err == f"brokerside: {told}\n"


def test_racks_of_a_report_may_be_compressed_and_are_bounded(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(brokerside, "brokerside", ["report", "stdin", "--racks", "racks.csv.gz", "--out", "out", "--quiet"]) == 0
    assert "on fewer racks" in capsys.readouterr().out
    (files / "bomb.gz").write_bytes(gzip.compress(bytes((64 << 20) + 1)))
    assert run(brokerside, "brokerside", ["report", "stdin", "--racks", "bomb.gz", "--out", "out"]) == 2
    assert capsys.readouterr().err == "brokerside: bomb.gz: larger than the 67,108,864 bytes allowed for such a file\n"
