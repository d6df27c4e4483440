"""Who explains the under-replicated partitions, and where the rest of a list is: in words, JSON, page and tables."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import attrs
import duckdb
import pytest

from spark_analysis.report.html import report_html
from spark_analysis.report.load import load_report
from spark_analysis.report.model import Report
from spark_analysis.report.rows import ClusterFacts
from spark_analysis.report.states import cause_in_words
from spark_analysis.report.terminal import summary_json
from tests.spark_analysis.report import samples

COUNT = 120


def rows_of(*, partitions: bool = True) -> samples.Rows:
    """One cluster of which broker 4 is missing from 118 ISRs and broker 2 from two; 100 partitions are explained."""
    rows = samples.empty_rows()
    sample = samples.Sample(cluster_id=7, placer="dump", name="prod", shape=None, sizes=False)
    samples.add_cluster(
        rows, sample, rank=1, format="kafka-topics", under_replicated_count=COUNT, violation_count=COUNT,
        out_of_sync_brokers=[4], out_of_sync_explained_count=118,
    )  # fmt: skip
    for broker in rows["brokers"]:
        broker["missing_from_isr_count"] = {4: 118, 2: 2}.get(broker["broker_id"], 0)
    key: dict[str, Any] = {"cluster_id": 7, "placer": "dump", "topic": "t"}
    for number in range(COUNT):
        if number < 100:
            rows["violations"].append(
                key
                | {
                    "constraint": "under-replicated", "partition": number, "brokers": [1, 4], "racks": ["a", "a"],
                    "detail": "leader 1; in sync 1",
                }
            )  # fmt: skip
        if partitions:
            lists: dict[str, Any] = {"replicas": [1, 4], "racks": ["a", "a"], "isr": [1], "missing_from_isr": [4]}
            rows["partitions"].append(
                key | lists | {"cluster": "prod", "partition": number, "broken": ["under-replicated"]}
            )
    return rows


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return samples.write_tables(tmp_path, rows_of())


@pytest.fixture
def report(out: Path) -> Report:
    return load_report(out, samples.DUMPS_RUN)


def test_the_worst_thing_names_who_explains_it(report: Report) -> None:
    assert report.rows[0].worst == "120 partitions are under-replicated; broker 4 explains 118 of them"


def test_json_has_all_missing_brokers(report: Report) -> None:
    (found,) = json.loads(summary_json(report))["out_of_sync"]
    assert found["cluster"] == "prod"
    assert (found["under_replicated_count"], found["brokers"], found["explained_count"]) == (120, [4], 118)
    assert found["missing"] == [
        {"broker_id": 4, "rack": "a", "missing_from_isr_count": 118},
        {"broker_id": 2, "rack": "b", "missing_from_isr_count": 2},
    ]


def test_the_page_names_them_and_counts_the_whole_list(report: Report) -> None:
    page = report_html(report)
    assert "Broker 4 explains 118 of 120 under-replicated." in page
    assert "Brokers missing from ISRs, the worst cluster first" in page
    assert "under-replicated: 120, the first 100 shown" in page
    assert ">missing from ISRs</th>" in page


def test_the_query_on_the_page_reads_the_whole_list(out: Path, report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(out)
    commands = [html.unescape(found) for found in re.findall(r"<code>(duckdb[^<]*)</code>", report_html(report))]
    assert len(commands) == 2
    for command in commands:
        query = re.fullmatch(r'duckdb -c "(.*)"', command)
        assert query is not None
        assert len(duckdb.sql(query[1]).fetchall()) == COUNT


def test_without_partitions_the_page_says_how_to_have_them(tmp_path: Path) -> None:
    page = report_html(load_report(samples.write_tables(tmp_path, rows_of(partitions=False)), samples.FLEET_RUN))
    assert "The others are not written; brokerside fleet --partitions writes all partitions." in page
    assert "duckdb -c" not in page


@pytest.mark.parametrize(
    ("brokers", "explained", "total", "said"),
    [
        ((4,), 1, 1, "broker 4 explains the only under-replicated one"),
        ((4,), 7, 7, "broker 4 explains all 7 under-replicated"),
        ((5, 4), 9, 10, "brokers 4 and 5 explain 9 of 10 under-replicated"),
        ((4,), 4, 10, None),
        ((), 0, 0, None),
        (None, None, 3, None),
    ],
)
def test_a_cause_is_told_where_it_explains_at_least_half(
    report: Report, brokers: tuple[int, ...] | None, explained: int | None, total: int, said: str | None
) -> None:
    facts: ClusterFacts = attrs.evolve(
        report.rows[0].facts,
        out_of_sync_brokers=brokers,
        out_of_sync_explained_count=explained,
        under_replicated_count=total,
    )
    assert cause_in_words(facts) == said
