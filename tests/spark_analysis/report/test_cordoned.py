"""Cordoned brokers and those in controlled shutdown: named on the page, in its table and in JSON."""

from __future__ import annotations

import json
from pathlib import Path

from placement.planning.plan_tables import FLAG_COLUMNS
from spark_analysis.report.html import report_html
from spark_analysis.report.load import load_report
from spark_analysis.report.plan_page import broker_marks
from spark_analysis.report.terminal import summary_json
from tests.spark_analysis.report import samples


def test_cordoned_and_stopping_brokers_are_named_as_such(tmp_path: Path) -> None:
    rows = samples.empty_rows()
    samples.add_cluster(rows, samples.Sample(cluster_id=7, placer="dump", name="prod", shape=None), rank=1)
    plain = report_html(load_report(samples.write_tables(tmp_path / "plain", rows), samples.DUMPS_RUN))
    said = (" cordoned<", ", cordoned<", "in controlled shutdown", "and 3 cordoned")
    assert not any(words in plain for words in said)
    for broker in rows["brokers"]:
        broker["cordoned"] = broker["broker_id"] in (2, 3)
        broker["in_controlled_shutdown"] = broker["broker_id"] == 3
    report = load_report(samples.write_tables(tmp_path / "out", rows), samples.DUMPS_RUN)
    page = report_html(report)
    assert "brokers 2 and 3 cordoned · broker 3 in controlled shutdown" in page
    assert all(words in page for words in said)
    assert ", cordoned</title>" in page
    assert ", cordoned, in controlled shutdown</title>" in page
    assert ">cordoned, in controlled shutdown</td>" in page
    row = dict.fromkeys(("is_added", "is_removed", *FLAG_COLUMNS.values()), False)
    row |= {"is_cordoned": True, "is_stopping": True}
    assert broker_marks(row | {"replicas_before": 1}) == " (cordoned) (in controlled shutdown)"
    assert json.loads(summary_json(report))["cordoned"] == [{"cluster": "prod", "placer": "dump", "brokers": [2, 3]}]
