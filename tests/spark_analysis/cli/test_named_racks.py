"""Racks files that name clusters: by which names a dump is found in them, and what is said of one that is not."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside

DAILY = Path(__file__).parents[2] / "real_data" / "reported" / "daily"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with racks.csv, of clusters north and south."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{name},{broker},{name}-{broker % 3}\n" for name in ("north", "south") for broker in range(1, 10)]
    Path("racks.csv").write_text("cluster,broker,rack\n" + "".join(rows))
    return tmp_path


def copied(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DAILY / "north-2026-11-28.txt", name)


def brokerside_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run(brokerside, "brokerside", list(arguments))
    shown = capsys.readouterr()
    return status, shown.out, shown.err


@pytest.mark.parametrize(
    "dump", ["north.txt", "north-2026-11-28.txt", "zz=north.txt", "north 2026-11-28=x.txt", "tue/north.txt", "north=x"]
)
def test_a_dump_has_the_racks_of_its_cluster_by_each_name(
    dump: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied(dump.rpartition("=")[2])
    status, shown, err = brokerside_of(capsys, "outage", dump, "--racks", "racks.csv", "--json")
    assert (status in (0, 1), err) == (True, "")
    assert json.loads(shown)["known"][0]["racks_missing"] is None


@pytest.mark.parametrize(
    "arguments", [("plan",), ("roll",), ("outage",), ("compare", "zz.txt"), ("impact",)], ids=lambda given: given[0]
)
@pytest.mark.parametrize("racks", ["racks.csv", "racks.json"])
def test_a_command_refuses_a_racks_file_without_the_cluster(
    arguments: tuple[str, ...], racks: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied("zz.txt")
    Path("racks.json").write_text('{"north": {"1": "a"}, "south": {"1": "b"}}')
    Path("p.json").write_text('{"version": 1, "partitions": []}')
    more = ("p.json",) if arguments == ("impact",) else ()
    status, _, err = brokerside_of(capsys, *arguments, "zz.txt", *more, "--racks", racks)
    assert status == 2
    assert f"--racks {racks}: the racks file gives none to cluster 'zz'; its clusters are 'north', 'south'" in err


def test_a_report_warns_of_it_and_fails_if_it_is_strict(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copied("north.txt", "zz.txt")
    arguments = ("report", "north.txt", "zz.txt", "--racks", "racks.csv", "--quiet", "--out", "out")
    status, shown, _ = brokerside_of(capsys, *arguments)
    sentence = "the racks file gives none to cluster 'zz'; its clusters are 'north', 'south'"
    assert (status, shown.count(sentence)) == (0, 1)
    known = [each["racks_missing"] for each in json.loads(Path("out/report.json").read_text())["known"]]
    assert [each is None or sentence in each for each in known] == [True, True]
    assert known.count(None) == 1
    assert brokerside_of(capsys, *arguments, "--strict")[0] == 1
    good = ("report", "north.txt", "--racks", "racks.csv", "--strict", "--quiet", "--out", "good")
    assert brokerside_of(capsys, *good)[0] == 0


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (("mon/north.txt", "tue/north.txt"), ()),
        (("2026-11-27/north.txt", "2026-11-28/north.txt"), ("--moments",)),
        (("north-2026-11-27.txt", "north-2026-11-28.txt"), ("--moments",)),
    ],
)
def test_the_commands_of_a_report_find_the_same_racks(
    names: tuple[str, ...], options: tuple[str, ...], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied(*(f"d/{name}" for name in names))
    arguments = ("report", "d", *options, "--racks", "racks.csv", "--strict", "--quiet", "--out", "out")
    status, shown, _ = brokerside_of(capsys, *arguments)
    assert status == 0
    assert "racks file gives none" not in shown
    found = re.findall(r'"brokerside (outage [^"]*)"', Path("out/report.json").read_text())
    assert found
    for line in found:
        status, shown, err = brokerside_of(capsys, *shlex.split(line), "--json")
        assert (status in (0, 1), err) == (True, "")
        assert json.loads(shown)["known"][0]["racks_given_count"] == 9
