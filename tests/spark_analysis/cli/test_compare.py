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


def test_a_lost_region_is_seen_in_leaders_and_isr_by_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(BEFORE, AFTER) == 0
    shown = capsys.readouterr().out
    assert "1-baseline (7 partitions) and 3-west-region-stopped (7 partitions), 7 in both" in shown
    assert "leader lost: 4" in shown
    assert "single-region-0  leader lost: leader 2, then no leader" in shown
    assert "leaders by broker: max over mean     3.43   2.67" in shown


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


def test_a_dump_compared_with_itself_has_no_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(BEFORE, BEFORE) == 0
    assert "Nothing changed." in capsys.readouterr().out


def test_dumps_of_two_clusters_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(BEFORE, str(REAL / "topicmappr" / "optimize_input.json")) == 2
    assert capsys.readouterr().err == (
        "brokerside: 1-baseline and optimize_input have no topic in common (7 and 1 topics); they are not one cluster "
        "at two moments\n"
    )
