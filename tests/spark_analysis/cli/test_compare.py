"""`brokerside compare`: what it prints, writes and refuses, and its exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from broker.cli import run
from spark_analysis.cli.commands import brokerside

REAL = Path(__file__).parents[2] / "real_data"
BEFORE = str(REAL / "multiregion" / "1-baseline.txt")
AFTER = str(REAL / "multiregion" / "3-west-region-stopped.txt")


def compare(*arguments: str) -> int:
    return run(brokerside, "brokerside", ["compare", *arguments])


def cells(shown: str, heading: str) -> list[list[str]]:
    """Return the cells of the lines after the one that begins with `heading`, up to a blank line."""
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    start = next(place for place, line in enumerate(lines) if line.startswith(heading)) + 1
    rows = lines[start:]
    return [line.split() for line in rows[: rows.index("") if "" in rows else len(rows)]]


def test_a_lost_region_is_seen_in_leaders_and_isr_by_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(BEFORE, AFTER) == 0
    shown = capsys.readouterr().out
    assert "1-baseline (7 partitions) and 3-west-region-stopped (7 partitions), 7 in both" in shown
    assert "leader lost: 4" in shown
    assert "single-region-0  leader lost: leader 2, then no leader" in shown
    assert "leaders by broker: max over mean     3.43   1.33" in shown


def test_json_and_tables_have_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert compare(BEFORE, AFTER, "--json", "--out", str(out)) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["change_counts"]["unclean election"] == 2
    lost = {row["broker_id"]: row["leader_lost_count"] for row in found["turnover"]}
    assert lost == {1: 1, 2: 6, 3: 0, 4: 0}
    assert pq.read_table(out / "turnover.parquet").to_pylist() == found["turnover"]
    assert pq.read_table(out / "partitions.parquet").to_pylist() == found["partitions"]
    assert pq.read_table(out / "topics.parquet").num_rows == len(found["topics"])
    assert json.loads((out / "compare.json").read_text()) == found


def test_dumps_of_two_clusters_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(BEFORE, str(REAL / "topicmappr" / "optimize_input.json")) == 2
    assert capsys.readouterr().err == (
        "brokerside: 1-baseline and optimize_input have no topic in common (7 and 1 topics); they are not one cluster "
        "at two moments\n"
    )


def test_bytes_have_a_unit_and_those_not_known_a_dash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = []
    for name, size in (("before", 1024**2), ("after", 1024)):
        topics = {"single-region": 0, "multi-region-sync": size, "multi-region-async": 0, "multi-region-default": 0}
        others = ("-op-under-min-isr", "-op-under-replicated", "-op-leader-is-observer")
        topics |= {f"multi-region-async{other}": 0 for other in others}
        sizes.append(tmp_path / f"{name}.json")
        sizes[-1].write_text(json.dumps({topic: {"0": {"Size": each}} for topic, each in topics.items()}))
    both = ("--sizes", str(sizes[0]), "--sizes-after", str(sizes[1]))
    for options, expected in ((both, "1 MiB 1 KiB"), (both[:2], "1 MiB –"), (both[2:], "– 1 KiB")):
        assert compare(BEFORE, AFTER, *options) == 0
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        assert f"bytes by broker: max {expected}" in lines
        assert "leaders by broker: max 6 2" in lines
