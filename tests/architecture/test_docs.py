"""The API reference is built from the docstrings; `.ci/run` builds all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture import docs

needs_pdoc = pytest.mark.skipif(not docs.is_possible(), reason="pdoc is not installed; it comes with the extra dev")

SAMPLE = ["broker", "broker.ids", "log.strategies"]


def test_every_module_has_a_page() -> None:
    names = docs.documented_modules()
    assert {"broker", "placement.placers.striped", "spark_analysis.report.write"} <= set(names)
    assert "spark_analysis.__main__" not in names


@pytest.mark.deep
@needs_pdoc
def test_pages_are_written_with_what_a_root_loads_late(tmp_path: Path) -> None:
    docs.build(tmp_path, SAMPLE)
    page = (tmp_path / "broker.html").read_text(encoding="utf-8")
    assert 'href="broker/ids.html"' in page
    assert 'id="ClusterView"' in page
    assert (tmp_path / "log" / "strategies.html").is_file()
    assert "broker.ids" in (tmp_path / "index.html").read_text(encoding="utf-8")
