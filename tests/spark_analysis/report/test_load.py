"""The tables become the report's values, whatever files and order they come in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from broker.errors import InputError
from spark_analysis.report import rows
from spark_analysis.report.gates import failures
from spark_analysis.report.html import report_html
from spark_analysis.report.load import load_report
from spark_analysis.report.model import Report, ShortenedList
from spark_analysis.tables import schemas
from spark_analysis.tables.columns import Table
from spark_analysis.tables.scan import WHOLE_NAME
from tests.spark_analysis.report import samples


@pytest.mark.parametrize(
    ("table", "kind"),
    [(schemas.MEASURES, rows.Spread), (schemas.VIOLATIONS, rows.Violation)],
    ids=lambda one: one.name if isinstance(one, Table) else "",
)
def test_rows_of_measures_and_violations_have_the_columns_of_their_table(table: Table, kind: Any) -> None:
    assert sorted(field.name for field in attrs.fields(kind)) == sorted(table.column_names)


def test_the_order_of_rows_and_files_does_not_reach_the_page(tmp_path: Path, fleet: Report, fleet_page: str) -> None:
    rows = samples.fleet_rows(30, pairs_of=12, brokers_max=24)
    turned = {name: list(reversed(table)) for name, table in rows.items()}
    samples.write_tables(tmp_path, turned, file_count=5)
    assert report_html(load_report(tmp_path, fleet.run)) == fleet_page


def test_inputs_that_cannot_be_used_stand_first_then_those_with_most_rejects(tmp_path: Path) -> None:
    rows = samples.empty_rows()
    rows["inputs"] = [samples.input_row(name, "kafka-topics", 1, 9, rejected=n) for name, n in (("a", 0), ("b", 5))]
    rows["inputs"] += [
        samples.input_row(f"z{n:03}", "unknown", 0, 1, rejected=1) | {"fault": "why"} for n in range(120)
    ]
    report = load_report(samples.write_tables(tmp_path, rows), samples.DUMPS_RUN)
    assert [row.source for row in report.inputs.rows] == [f"z{n:03}" for n in range(100)]
    assert (report.inputs.count, report.unusable.count, len(report.unusable.rows)) == (122, 120, 100)
    assert failures(report, ("leaderless",), tolerance=0)[99:] == (
        "why; nothing is known of its cluster", "20 more inputs cannot be used",
    )  # fmt: skip
    few = attrs.evolve(report, unusable=ShortenedList(0, ()))
    assert failures(few, ("leaderless",), tolerance=0) == ()


def test_dumps_that_are_alike_are_moments_all_the_same(tmp_path: Path) -> None:
    """Nothing changed between them, so that no row of the table of changes names them."""
    report = load_report(samples.write_tables(tmp_path, samples.dumps_rows() | {"changes": []}), samples.DUMPS_RUN)
    assert [row.facts.cluster for row in report.current_rows] == ["6-restored"]
    assert (report.cluster_count, len(report.earlier_rows), len(report.moments)) == (1, 5, 6)


def test_without_a_table_of_clusters_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_report(tmp_path, samples.FLEET_RUN)
    assert str(caught.value) == f"{tmp_path}/tables/clusters: no table of clusters to report on"


def test_a_damaged_file_is_one_clear_error(tmp_path: Path) -> None:
    folder = tmp_path / "tables" / "clusters"
    folder.mkdir(parents=True)
    (folder / "part-0.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError, match="is not whole, as the run that wrote it was interrupted; repeat it"):
        load_report(tmp_path, samples.FLEET_RUN)
    (folder / WHOLE_NAME).touch()
    with pytest.raises(InputError, match="the tables cannot be read"):
        load_report(tmp_path, samples.FLEET_RUN)


@pytest.mark.parametrize("table", [schemas.CLUSTERS, schemas.MEASURES, schemas.PAIRS])
def test_a_table_that_an_interrupted_run_has_left_is_not_read(tmp_path: Path, table: Table) -> None:
    out = samples.write_tables(tmp_path, samples.fleet_rows(4, pairs_of=2, brokers_max=12))
    (out / "tables" / table.name / WHOLE_NAME).unlink()
    with pytest.raises(InputError) as caught:
        load_report(out, samples.FLEET_RUN)
    assert str(caught.value) == (
        f"{out}/tables/{table.name}: is not whole, as the run that wrote it was interrupted; repeat it"
    )
