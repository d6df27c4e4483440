"""A person opens the page of three clusters: which first, and what to do, in few words, the same as on the terminal."""

from __future__ import annotations

import html
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from broker.cli import run
from spark_analysis.cli.commands import DUMPS as COMMANDS_OF_DUMPS
from spark_analysis.cli.commands import IN_USE, JOINED, brokerside

REPORTED = Path(__file__).parents[2] / "real_data" / "reported"
DUMPS = ("60-dead3.txt", "25.json", "daily/north-2026-11-28.txt")
WORDS_MAX = 1_500


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("three") / "out"
    dumps = [str(REPORTED / name) for name in DUMPS]
    with redirect_stdout(io.StringIO()) as printed:
        assert run(brokerside, "brokerside", ["report", *dumps, "--quiet", "--out", str(folder)]) == 0
    (folder.parent / "terminal.txt").write_text(printed.getvalue())
    return folder


@pytest.fixture(scope="module")
def said(out: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((out / "report.json").read_text())
    return loaded


@pytest.fixture(scope="module")
def page(out: Path) -> str:
    return (out / "report.html").read_text()


def text_of(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def unfolded(page: str) -> str:
    """Return the text of a page that shows before anything is unfolded."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page[page.index("<body>") :], flags=re.S)
    parts, depth = [], 0
    for part in re.split(r"(<details[^>]*>|</details>|<summary>.*?</summary>)", body, flags=re.S):
        is_summary = part.startswith("<summary>")
        if part.startswith("<details"):
            depth += 1 if depth or " open" not in part else 0
            continue
        if part == "</details>":
            depth = max(0, depth - 1)
        elif depth == 0 or (is_summary and depth == 1):
            parts.append(part)
    return text_of(" ".join(parts))


def test_the_page_begins_with_the_clusters_and_the_first_step_of_each(page: str, said: dict[str, Any]) -> None:
    begins = page[page.index("<main") : page.index('class="tile')]
    (listed,) = re.findall(r'<ol class="first">(.*?)</ol>', begins, re.S)
    items = [text_of(item) for item in re.findall(r"<li>(.*?)</li>", listed, re.S)]
    expected = said["first_to_look_at"]
    assert [item.split(" :")[0] for item in items] == [one["cluster"] for one in expected]
    steps = {one["cluster"]: one["steps"][0] for one in said["what_to_do_next"]}
    for item, one in zip(items, expected, strict=True):
        step = steps[one["cluster"]]
        assert one["worst"] in item
        assert f"Next: {step['words']}" in item
        assert item.endswith(" ".join((step["command"] or step["words"]).split()))


def test_few_words_show_before_anything_is_unfolded(page: str) -> None:
    shown = unfolded(page)
    assert "Which clusters first" in shown
    assert "Definitions" in shown
    assert len(shown.split()) <= WORDS_MAX
    for folded in ("rejected rows", "brokerside report ", "Gini"):
        assert folded not in shown


def test_the_terminal_begins_with_the_same_step(out: Path, said: dict[str, Any]) -> None:
    lines = (out.parent / "terminal.txt").read_text().splitlines()
    step = said["what_to_do_next"][0]["steps"][0]
    assert next(line for line in lines if line.startswith(("First, for ", "Next, for "))).endswith(step["words"])


def test_lists_start_at_1_and_notes_of_plans_are_few(page: str) -> None:
    assert re.findall(r"<ol[^>]*\bstart=", page) == []
    assert re.findall(r"<summary><span><b>(\d+)\. ", page) == ["1", "2", "3"]
    for listed in re.findall(r"Every plan, and what it gains(.*?)</details>", page, re.S):
        assert listed.count('class="note"') <= 5


def test_every_tile_and_every_broker_of_the_page_is_a_number_of_report_json(page: str, said: dict[str, Any]) -> None:
    tiles = re.findall(r'<li class="tile[^"]*"><b>([\d,]+)</b><span class="title">partitions ([^<]*)<', page)
    known = {key: one["count"] for key, one in said["states"].items() if one["count"] is not None}
    assert [int(found.replace(",", "")) for found, _ in tiles] == list(known.values())
    clusters = {one["cluster"]: one for one in said["clusters"]}
    for name in ("60-dead3", "25", "north-2026-11-28"):
        (fold,) = re.findall(rf"<b>\d+\. {name}</b>.*?Brokers, in rack order</caption>(.*?)</table>", page, re.S)
        rows = [text_of(row).split() for row in re.findall(r"<tr>(.*?)</tr>", fold.split("<tbody>")[1], re.S)]
        assert [(row[0], row[2]) for row in rows] == [
            (str(one["broker_id"]), str(one["replica_count"])) for one in clusters[name]["brokers"]
        ]
    assert clusters["north-2026-11-28"]["leaderless_count"] == 2
    assert [one["scope"] for one in clusters["25"]["measures"]].count("broker") >= 1


def test_a_new_user_reads_a_thousand_words_from_help_to_restarts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two clusters over two days: which first, what breaks with rack b, what to move, how many at once."""
    daily, racks = str(REPORTED / "daily"), tmp_path / "racks.csv"
    racks.write_text("cluster,broker,rack\n" + "".join(f"south,{n},{'abbcc'[n % 5]}\n" for n in range(1, 6)))
    of_south = ["--cluster", "south", "--racks", str(racks)]
    words = 0
    for arguments in (
        ["--help"],
        ["report", daily, "--moments", "--racks", str(racks), "--quiet", "--out", str(tmp_path / "report")],
        ["outage", daily, "--lose", "rack=b", *of_south],
        ["plan", daily, *of_south, "--out", str(tmp_path / "plan")],
        ["roll", daily, *of_south],
    ):
        assert run(brokerside, "brokerside", arguments) == 0, arguments
        out, err = capsys.readouterr()
        words += len((out + err).split())
    assert words <= 1_000
    assert set(IN_USE) == {name for name, one in JOINED.items() if one.needs == COMMANDS_OF_DUMPS}
