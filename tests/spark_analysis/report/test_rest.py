"""A page of many clusters lists the first; every number on it is over all of them, as if all had rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from spark_analysis.report import load, ranking
from spark_analysis.report.html import report_html
from spark_analysis.report.load import load_report
from spark_analysis.report.model import Report
from spark_analysis.report.states import STATES
from spark_analysis.report.terminal import summary_json
from spark_analysis.report.write import prometheus_text, write_for_programs, write_page
from tests.spark_analysis.report import samples
from tests.spark_analysis.report.test_terminal import printed

HELD = 7


@pytest.fixture
def cut(fleet_out: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The fleet of the other tests, of whose 60 rows the page has 7."""
    for module in (load, ranking):
        monkeypatch.setattr(module, "ROWS_MAX", HELD)
    return load_report(fleet_out, samples.FLEET_RUN)


def test_the_summary_for_programs_is_that_of_all_rows(fleet: Report, cut: Report) -> None:
    whole, found = json.loads(summary_json(fleet)), json.loads(summary_json(cut))
    for listed in ("first_to_look_at", "clusters"):
        assert len(whole[listed]) > HELD
        assert found.pop(listed) == whole.pop(listed)[:HELD]
    assert found == whole


def test_the_summary_for_a_terminal_is_that_of_all_rows(fleet: Report, cut: Report) -> None:
    assert printed(cut) == printed(fleet)


def test_the_sections_that_count_are_those_of_all_rows(fleet_page: str, cut: Report) -> None:
    page = report_html(cut)
    for name in ("what", "distance"):
        assert section(page, name) == section(fleet_page, name)
    assert tiles(page) == tiles(fleet_page)


def section(page: str, name: str) -> str:
    found = re.search(rf'<section[^>]* id="{name}".*?</section>|<section id="{name}".*?</section>', page, re.DOTALL)
    assert found, name
    return found.group()


def tiles(page: str) -> str:
    found = re.search(r'<ul class="tiles">.*?</ul>', page, re.DOTALL)
    assert found
    return found.group()


def ranking_rows(page: str) -> list[Any]:
    found = re.search(r'<script[^>]*id="ranking-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found
    rows: list[Any] = json.loads(found.group(1))["rows"]
    return rows


def test_every_dump_keeps_its_row_as_gates_and_alerts_need_it(
    dumps_out: Path, dumps: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (load, ranking):
        monkeypatch.setattr(module, "ROWS_MAX", 2)
    found = load_report(dumps_out, samples.DUMPS_RUN)
    assert found.rows == dumps.rows
    assert found.rest.count == 0
    assert prometheus_text(found) == prometheus_text(dumps)
    page = report_html(found)
    assert len(ranking_rows(page)) == 2
    assert "The table has the first 2 of 6 rows" in page


def test_states_and_racks_are_counted_beyond_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the rows of the page is in any state or without racks; all such clusters rank after them."""
    rows = samples.empty_rows()
    for number in range(12):
        sample = samples.Sample(cluster_id=number, topic_count=1, partition_count=4, racks=("a", "b") * (number < 6))
        states: dict[str, Any] = {state.field: None if number == 11 else int(number > 8) for state in STATES}
        samples.add_cluster(rows, sample, rank=number + 1, **states)
    out = samples.write_tables(tmp_path, rows)
    whole = load_report(out, samples.FLEET_RUN)
    monkeypatch.setattr(load, "ROWS_MAX", 5)
    found = load_report(out, samples.FLEET_RUN)
    assert [json.loads(summary_json(found))[state.field] for state in STATES] == [2] * len(STATES)
    assert json.loads(summary_json(found))["unracked_cluster_count"] == 6
    assert tiles(report_html(found)) == tiles(report_html(whole))
    assert "Partitions without a leader: 2 clusters, the first 0 shown" in report_html(found)


@pytest.mark.deep
def test_a_page_of_many_clusters_is_bounded(tmp_path: Path) -> None:
    """20,000 clusters make a page and files for programs as large as 6,000 do."""
    sizes = []
    for number, count in enumerate((6_000, 20_000)):
        rows = samples.empty_rows()
        samples.add_cluster(rows, samples.Sample(cluster_id=0, topic_count=1, partition_count=4), rank=1)
        for name in ("clusters", "measures"):
            first = [row for row in rows[name] if row.get("scope", "broker") == "broker"]
            rows[name] = [row | {"cluster_id": place, "rank": place + 1} for place in range(count) for row in first]
            if name == "measures":
                rows[name] = [{key: row[key] for key in row if key != "rank"} for row in rows[name]]
        rows["brokers"] = rows["racks"] = rows["topics"] = []
        out = samples.write_tables(tmp_path / str(number), rows)
        report = load_report(out, samples.FLEET_RUN)
        assert report.row_count == count
        write_page(out, report)
        write_for_programs(out, report)
        sizes.append([(out / f"report.{kind}").stat().st_size for kind in ("html", "json", "prom")])
    for small, large in zip(*sizes, strict=True):
        assert abs(large - small) < 1_000, sizes
    assert sizes[1][0] < 5_000_000
