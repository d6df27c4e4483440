"""The page is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_analysis.report.model import Report
from spark_analysis.report.write import write_page, write_report
from tests.spark_analysis.report import samples


def test_the_page_stands_beside_the_tables(dumps_out: Path, dumps_page: str) -> None:
    path = write_report(dumps_out, samples.DUMPS_RUN)
    assert path == dumps_out / "report.html"
    assert path.read_text(encoding="utf-8") == dumps_page
    assert sorted(entry.name for entry in dumps_out.iterdir()) == ["report.html", "tables"]


def test_a_failed_write_leaves_the_old_page(tmp_path: Path, dumps: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "report.html").write_text("old")

    def fails(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        write_page(tmp_path, dumps)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "old"
