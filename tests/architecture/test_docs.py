"""The API reference is built from the docstrings without a warning; `.ci/run` builds all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture import docs

needs_pdoc = pytest.mark.skipif(not docs.is_possible(), reason="pdoc is not installed; it comes with the extra dev")

# One of each kind that pdoc needs help with: roots, NamedTuples, arrays, and Hypothesis's composite strategies.
SAMPLE = ["broker", "broker.ids", "log", "log.compaction.building", "log.segments.index_file", "log.strategies"]


def test_every_module_has_a_page() -> None:
    names = docs.documented_modules()
    assert {"broker", "placement.placers.striped", "spark_analysis.report.write"} <= set(names)
    assert "spark_analysis.__main__" not in names


@pytest.mark.deep
@needs_pdoc
def test_pages_are_written_without_a_warning(tmp_path: Path) -> None:
    assert docs.build(tmp_path, SAMPLE) == []
    page = (tmp_path / "broker.html").read_text(encoding="utf-8")
    assert 'href="broker/ids.html"' in page
    assert (tmp_path / "log" / "strategies.html").is_file()
    assert "broker.ids" in (tmp_path / "index.html").read_text(encoding="utf-8")
